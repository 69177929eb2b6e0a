// SPDX-License-Identifier: MIT
// backtrace.js - the view of the stacks that a process has now.
import { element } from "../../export/html/dom.js";
import { ask } from "./api.js";
import { view } from "./registry.js";

const refresh = element("button", { type: "button", textContent: "Refresh" });
const note = element("p", { className: "error", attributes: { role: "status" } });
const stack = element("pre", { id: "stack", tabIndex: 0, attributes: { role: "region", "aria-label": "Stacks" } });

async function load(target) {
	try {
		stack.textContent = await (await ask("/apis/pythonext/callstack", { target })).text();
		note.textContent = "";
	} catch (error) {
		note.textContent = error.message;
	}
}

function show(body, state) {
	if (!body.firstChild)
		body.append(element("div", { className: "controls" }, refresh, note), stack);
	refresh.onclick = () => load(state.target);
	return load(state.target);
}

view({ name: "backtrace", title: "Backtrace", kinds: ["process"], show });
