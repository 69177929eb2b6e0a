// SPDX-License-Identifier: MIT
// filters.js - the bar with the parts of the state that views share: time range, process, thread, function.
import { element } from "../../export/html/dom.js";
import { change } from "./state.js";

const FIELDS = {
	since: { words: "From", title: "Seconds after the start, or 90s, 2m", size: 6 },
	until: { words: "To", title: "Seconds after the start, or 90s, 2m", size: 6 },
	rank: { words: "Process", title: "A PID, or a glob of names", size: 10 },
	thread: { words: "Thread", title: "A TID, or a glob of names", size: 10 },
	function: { words: "Function", title: "A glob: only stacks through this function", size: 16 },
};
const PARTS = { window: ["since", "until"], rank: ["rank"], thread: ["thread"], function: ["function"] };

export function makeFilters(form) {
	const inputs = {};
	const labels = Object.entries(FIELDS).map(([name, { words, title, size }]) => {
		inputs[name] = element("input", { name, title, size, autocomplete: "off", spellcheck: false });
		return element("label", {}, words, inputs[name]);
	});
	const clear = element("button", { type: "reset", textContent: "Clear" });

	form.replaceChildren(...labels, element("button", { type: "submit", textContent: "Apply" }), clear);
	form.addEventListener("submit", (event) => {
		event.preventDefault();
		change(Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value.trim()])));
	});
	form.addEventListener("reset", (event) => {
		event.preventDefault();
		change(Object.fromEntries(Object.keys(inputs).map((name) => [name, ""])));
	});

	/* @parts: those of the open view. */
	return function show(parts, state) {
		const names = parts.flatMap((part) => PARTS[part]);

		form.hidden = names.length === 0;
		Object.keys(inputs).forEach((name, i) => {
			labels[i].hidden = !names.includes(name);
			inputs[name].value = state[name] || "";
		});
		clear.hidden = !names.some((name) => state[name]);
	};
}
