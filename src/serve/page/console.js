// SPDX-License-Identifier: MIT
// console.js - the view of a Python prompt in a process. The server runs code only where it was started with --allow-eval.
import { element } from "../../export/html/dom.js";
import { ask } from "./api.js";
import { view } from "./registry.js";

const output = element("div", { id: "console-output", tabIndex: 0, attributes: { role: "log", "aria-label": "Output" } });
const code = element("textarea", { id: "code", rows: 3, spellcheck: false, autocomplete: "off", wrap: "off" });
const form = element("form", {}, element("label", { htmlFor: "code", textContent: "Python: Ctrl-Enter runs it, Ctrl with arrow keys brings back earlier code" }), code,
	element("div", { className: "controls" }, element("button", { type: "submit", textContent: "Run" }),
		element("button", { type: "button", textContent: "Clear", onclick: () => output.replaceChildren() })));
const refusal = element("p", { className: "soft", textContent: "No code is run over HTTP. Start probing serve with --allow-eval, or use probing repl PID." });
const history = [];
let at = 0;

function say(text, className) {
	if (text)
		output.append(element("pre", { textContent: text, className }));
	output.scrollTop = output.scrollHeight;
}

async function run(target) {
	const text = code.value;

	if (!text.trim())
		return;
	history.push(text);
	at = history.length;
	code.value = "";
	say(text, "input");
	try {
		const answer = await (await ask("/apis/pythonext/eval", { target }, { method: "POST", body: text })).json();

		say(answer.output.replace(/\n$/, ""), "");
		say(answer.traceback, "error");
	} catch (error) {
		say(error.message, "error");
	}
}

function recall(step) {
	at = Math.max(0, Math.min(history.length, at + step));
	code.value = history[at] || "";
}

code.addEventListener("keydown", (event) => {
	if (!event.ctrlKey && !event.metaKey)
		return;
	if (event.key === "Enter")
		form.requestSubmit();
	else if (event.key === "ArrowUp" || event.key === "ArrowDown")
		recall(event.key === "ArrowUp" ? -1 : 1);
});

function show(body, state, changed) {
	if (!body.firstChild)
		body.append(refusal, output, form);
	refusal.hidden = state.allowsEval;
	form.hidden = output.hidden = !state.allowsEval;
	if (changed.includes("target"))
		output.replaceChildren();
	form.onsubmit = (event) => {
		event.preventDefault();
		run(state.target);
	};
}

view({ name: "console", title: "Console", kinds: ["process"], show });
