// SPDX-License-Identifier: MIT
// backtrace.js - the view of where processes are now: a card for each thread, or all threads of one or of all processes as one tree.
import { element } from "../../export/html/dom.js";
import { ask } from "./api.js";
import { view } from "./registry.js";
import { change } from "./state.js";

const PERIODS = { "": "by hand", 1: "each second", 5: "each 5 s", 30: "each 30 s" };

const refresh = element("button", { type: "button", textContent: "Refresh" });
const period = element("select", { onchange: () => change({ period: period.value }, true) },
	...Object.entries(PERIODS).map(([value, textContent]) => element("option", { value, textContent })));
const toggle = (name, words, title) => element("button", { type: "button", textContent: words, title,
	onclick: (event) => change({ [name]: event.target.getAttribute("aria-pressed") === "true" ? "" : "1" }) });
const merged = toggle("merged", "Merged", "All threads as one tree");
const all = toggle("all", "All processes", "All processes that this server was given, as one tree");
const python = toggle("python", "Python only", "Without native and kernel frames");
const note = element("p", { id: "stack-note", attributes: { role: "status" } });
const stacks = element("div", { id: "stack", tabIndex: 0, attributes: { role: "region", "aria-label": "Stacks" } });
let timer = 0;
let turn = 0;

/* ---- Text of frames ---- */

const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);
const nameOf = (frame) => frame.function || "[unknown]";
const placeOf = (frame) => frame.file ? `${baseName(frame.file)}${frame.line ? `:${frame.line}` : ""}` : frame.module ? baseName(frame.module) : "";
const threadName = (thread) => thread.python_name || thread.name || "";
const framesOf = (thread, isPython) => thread.frames.filter((frame) => !isPython || frame.kind === "python" || frame.kind === "builtin");

function frameLine(frame, ...more) {
	return element("div", { className: `call ${frame.kind}` }, element("span", { className: "function", textContent: nameOf(frame) }), " ",
		element("span", { className: "soft", textContent: placeOf(frame), title: [frame.file, frame.module].filter(Boolean).join(" · ") }), ...more);
}

function stateOf(thread) {
	return [thread.holds_gil ? "holds the GIL" : thread.waits_for_gil ? "waits for the GIL" : "", thread.gc ? "collects garbage" : "",
		thread.wait && thread.wait.call ? `waits in ${thread.wait.call}` : thread.idle ? "waits" : "runs"].filter(Boolean).join(", ");
}

/* ---- Cards: a thread each, innermost first ---- */

function card(thread, state) {
	return element("article", { className: "card" }, element("h3", {}, `${threadName(thread)} `, element("span", { className: "soft", textContent: `${thread.tid} · ${stateOf(thread)}` })),
		...framesOf(thread, state.python).map((frame) => frameLine(frame)));
}

/* ---- A tree: outermost first; frames are equal by function, file and line ---- */

function treeOf(threads, isPython) {
	const root = { children: new Map(), who: [] };

	for (const { who, thread } of threads) {
		let node = root;

		for (const frame of [...framesOf(thread, isPython)].reverse()) {
			const key = `${nameOf(frame)}\n${frame.file}\n${frame.line}`;

			if (!node.children.has(key))
				node.children.set(key, { frame, children: new Map(), who: [] });
			node = node.children.get(key);
			node.who.push(who);
		}
	}
	return root;
}

const MAX_NAMED = 6;
const namesOf = (who) => who.length > MAX_NAMED ? `${who.slice(0, MAX_NAMED).join(", ")} and ${who.length - MAX_NAMED} more` : who.join(", ");

/* Frames with one callee stay in one level, so that a deep stack is no staircase. */
function branch(node) {
	const lines = [];
	let at = node;

	for (;;) {
		const next = [...at.children.values()];

		if (at.frame)
			lines.push(frameLine(at.frame, ...(at === node || next.length !== 1 || next[0].who.length !== at.who.length
				? [" ", element("span", { className: "who", textContent: `× ${at.who.length}`, title: namesOf(at.who) })] : [])));
		if (next.length !== 1 || (at.frame && next[0].who.length !== at.who.length))
			break;
		[at] = next;
	}
	const children = [...at.children.values()].sort((a, b) => b.who.length - a.who.length);

	if (children.length === 0)
		lines.push(element("div", { className: "soft", textContent: namesOf(at.who) }));
	return element("div", { className: "branch" }, ...lines, ...children.map(branch));
}

/* ---- Asking ---- */

const stacksOf = async (target) => (await ask("/apis/pythonext/callstack", { target }, { headers: { Accept: "application/json" } })).json();
const matches = (thread, wanted) => !wanted || String(thread.tid) === wanted || threadName(thread) === wanted;

async function load(state) {
	const mine = ++turn;
	const targets = state.all ? state.targets.filter((one) => one.kind === "process" && one.running).map((one) => one.target) : [state.target];
	const answers = await Promise.allSettled(targets.map(stacksOf));
	const failures = answers.map((one, i) => one.status === "rejected" ? `${targets[i]}: ${one.reason.message}` : "").filter(Boolean);
	const threads = answers.flatMap((one, i) => one.status === "fulfilled" ? one.value.threads.filter((thread) => matches(thread, state.thread))
		.map((thread) => ({ thread, who: targets.length > 1 ? `${targets[i]} ${threadName(thread)}` : `${threadName(thread)} (${thread.tid})` })) : []);

	if (mine !== turn)
		return;
	note.textContent = failures.join("; ") || `${new Date().toLocaleTimeString()}: ${threads.length} thread${threads.length === 1 ? "" : "s"}`;
	note.classList.toggle("error", failures.length > 0);
	stacks.replaceChildren(...(state.merged || state.all ? [...treeOf(threads, state.python).children.values()].map(branch) : threads.map(({ thread }) => card(thread, state))));
	stacks.className = state.merged || state.all ? "tree" : "cards";
	if (Number(state.period) > 0 && failures.length < targets.length)
		timer = setTimeout(() => load(state), Number(state.period) * 1000);
}

function show(body, state) {
	const processes = state.targets.filter((one) => one.kind === "process");

	if (!body.firstChild)
		body.append(element("div", { className: "controls" }, refresh, element("label", {}, "Again", period), merged, all, python), note, stacks);
	clearTimeout(timer);
	period.value = state.period in PERIODS ? state.period : "";
	all.hidden = processes.length < 2;
	for (const [button, name] of [[merged, "merged"], [all, "all"], [python, "python"]])
		button.setAttribute("aria-pressed", String(Boolean(state[name])));
	refresh.onclick = () => {
		clearTimeout(timer);
		load(state);
	};
	return load(state);
}

function hide() {
	clearTimeout(timer);
	turn++;
}

view({ name: "backtrace", title: "Backtrace", kinds: ["process"], filters: ["thread"], show, hide });
