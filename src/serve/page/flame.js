// SPDX-License-Identifier: MIT
// flame.js - the view of a flame graph. Another document draws it, in a frame without rights: its names stay outside of this page.
import { element } from "../../export/html/dom.js";
import { url } from "./api.js";
import { view } from "./registry.js";

const seconds = element("input", { id: "seconds", type: "number", min: 1, max: 60, value: 5 });
const secondsLabel = element("label", {}, "Seconds", seconds);
const drawButton = element("button", { type: "button", textContent: "Draw" });
const note = element("p", { id: "graph-note", attributes: { role: "status" } });
const graph = element("iframe", { id: "graph", title: "Flame graph", hidden: true, attributes: { sandbox: "allow-scripts" } });
let drawn = null;

function draw(state) {
	drawn = state.target;
	note.textContent = "The flame graph is being made.";
	graph.hidden = false;
	graph.onload = () => { note.textContent = ""; };
	graph.src = url("/apis/flamegraph", { target: state.target, seconds: state.targetInfo.kind === "process" ? seconds.value : "" });
}

function show(body, state) {
	if (!body.firstChild)
		body.append(element("div", { className: "controls" }, secondsLabel, drawButton, note), graph);
	secondsLabel.hidden = state.targetInfo.kind !== "process";
	drawButton.onclick = () => draw(state);
	if (drawn === state.target)
		return;
	graph.hidden = true;
	if (state.targetInfo.kind === "recording")
		draw(state);
}

view({ name: "flame", title: "Flame graph", show });
