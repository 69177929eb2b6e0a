// SPDX-License-Identifier: MIT
// flame.js - the view of flame graphs: of a recording, of what a process does now, or of the difference to another recording or window.
// The HTML flame graph draws them, with its search, colours, threads, callers and sources.
import { element } from "../../export/html/dom.js";
import { makeFrame } from "./frame.js";
import { view } from "./registry.js";
import { change } from "./state.js";

const GROUPS = { "": "function", thread: "thread", torch: "torch module", step: "step", span: "span", phase: "phase" };
const WINDOW = "window"; // as the base

const note = element("p", { id: "graph-note", attributes: { role: "status" } });
const frame = makeFrame("Flame graph", (text, isError) => {
	note.textContent = text;
	note.classList.toggle("error", Boolean(isError));
});

const group = element("select", { onchange: () => change({ by: group.value }) },
	...Object.entries(GROUPS).map(([value, textContent]) => element("option", { value, textContent })));
const base = element("select", { onchange: () => change({ base: base.value, baseSince: "", baseUntil: "" }) });
const field = (name, title) => element("input", { size: 5, title, autocomplete: "off", onchange: (event) => change({ [name]: event.target.value.trim() }) });
const baseSince = field("baseSince", "Seconds after the start, or 90s, 2m");
const baseUntil = field("baseUntil", "Seconds after the start, or 90s, 2m");
const seconds = element("input", { id: "seconds", type: "number", min: 1, max: 60, value: 3, onchange: () => change({ seconds: seconds.value }, true) });
const toggle = (name, words, title) => element("button", { type: "button", textContent: words, title,
	onclick: (event) => change({ [name]: event.target.getAttribute("aria-pressed") === "true" ? "" : "1" }) });
const inverted = toggle("inverted", "Reversed", "Leaves at the root: what runs, and who calls it");
const sources = toggle("sources", "Sources", "With the hottest source files, and the time of each line");
const python = toggle("python", "Python only", "Without native and kernel frames");
const live = toggle("live", "Live", "Draw again and again");
const draw = element("button", { type: "button", textContent: "Draw", onclick: () => load() });
const labelled = (words, ...inputs) => element("label", {}, words, ...inputs);
const parts = {
	group: labelled("By", group), base: labelled("Against", base), baseSince: labelled("its part from", baseSince), baseUntil: labelled("to", baseUntil),
	seconds: labelled("Seconds", seconds),
};
let state = null;
let drawn = "";
let timer = 0;
let isShown = false;

function parametersOf() {
	const common = { target: state.target, format: state.hasHtml ? "html" : "svg", since: state.since, until: state.until, process: state.rank,
		threads: state.thread, function: state.function, "no-native": state.python };

	if (state.base)
		return { ...common, base: state.base === WINDOW ? state.target : state.base, "base-since": state.baseSince, "base-until": state.baseUntil,
			normalize: "samples" };
	return { ...common, by: state.by === "thread" ? "" : state.by, "by-thread": state.by === "thread" ? "1" : "", inverted: state.inverted,
		sources: state.hasHtml ? state.sources : "", ...(state.targetInfo.kind === "process" ? { seconds: seconds.value } : {}) };
}

async function load() {
	clearTimeout(timer);
	drawn = JSON.stringify(parametersOf());
	const isDrawn = await frame.load("/apis/flamegraph", parametersOf());

	if (isDrawn && isShown && state.live && state.targetInfo.kind === "process")
		timer = setTimeout(load, 200);
}

function showControls() {
	const isProcess = state.targetInfo.kind === "process";
	const isRecording = state.targetInfo.kind === "recording";
	const recordings = state.targets.filter((one) => one.kind === "recording" && one.target !== state.target);

	base.replaceChildren(element("option", { value: "", textContent: "nothing" }), element("option", { value: WINDOW, textContent: "another part of it" }),
		...recordings.map((one) => element("option", { value: one.target, textContent: one.target })));
	base.value = state.base || "";
	group.value = state.by || "";
	baseSince.value = state.baseSince || "";
	baseUntil.value = state.baseUntil || "";
	seconds.value = state.seconds || seconds.value;
	for (const [button, name] of [[inverted, "inverted"], [sources, "sources"], [live, "live"], [python, "python"]])
		button.setAttribute("aria-pressed", String(Boolean(state[name])));
	parts.seconds.hidden = live.hidden = draw.hidden = !isProcess;
	parts.base.hidden = !isRecording;
	parts.baseSince.hidden = parts.baseUntil.hidden = !isRecording || !state.base;
	parts.group.hidden = inverted.hidden = Boolean(state.base);
	sources.hidden = Boolean(state.base) || !state.hasHtml;
}

function show(body, now, changed) {
	if (!body.firstChild)
		body.append(element("div", { className: "controls" }, parts.group, inverted, python, sources, parts.base, parts.baseSince, parts.baseUntil,
			parts.seconds, draw, live), note, frame.host);
	isShown = true;
	state = now;
	showControls();
	clearTimeout(timer);
	if (changed.includes("target")) {
		frame.clear();
		drawn = "";
	}
	if (drawn !== JSON.stringify(parametersOf()) && (now.targetInfo.kind !== "process" || (drawn && !changed.includes("seconds"))))
		return load();
	if (now.live && now.targetInfo.kind === "process")
		return load();
	if (now.targetInfo.kind === "process" && !drawn)
		note.textContent = "Draw records the process for some seconds, and shows what it did.";
	return null;
}

function hide() {
	isShown = false;
	clearTimeout(timer);
}

view({ name: "flame", title: "Flame graph", kinds: ["process", "recording", "fleet"], filters: ["window", "rank", "thread", "function"], show, hide });
