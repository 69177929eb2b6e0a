// SPDX-License-Identifier: MIT
// backtrace.js - the view of where processes are now: a card for each thread, all threads of a process as one tree, or all ranks as one tree
// with the ranks of each branch.
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
const all = toggle("all", "All ranks", "All ranks as one tree, those that are elsewhere first");
const threads = toggle("threads", "All threads", "Not only the main thread of each rank");
const python = toggle("python", "Python only", "Without native and kernel frames");
const note = element("p", { id: "stack-note", attributes: { role: "status" } });
const classes = element("ul", { className: "classes", attributes: { "aria-label": "Where the ranks are" } });
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

/* Numbers in order as ranges: "0-6,8". */
function rangesOf(numbers) {
	const parts = [];

	for (const number of [...new Set(numbers)].sort((a, b) => a - b)) {
		const last = parts[parts.length - 1];

		if (last && last[1] === number - 1)
			last[1] = number;
		else
			parts.push([number, number]);
	}
	return parts.map(([from, to]) => from === to ? `${from}` : to === from + 1 ? `${from},${to}` : `${from}-${to}`).join(",");
}

/* @who: numbers of ranks, and names of what has none. */
function ranksOf(who) {
	const ranks = who.filter((one) => typeof one === "number");
	const others = [...new Set(who.filter((one) => typeof one !== "number"))];
	const named = ranks.length ? [`${new Set(ranks).size === 1 ? "rank" : "ranks"} ${rangesOf(ranks)}`] : [];

	return [...named, ...others.length ? [namesOf(others)] : []].join(", ");
}

/* Frames with one callee stay in one level, so that a deep stack is no staircase. @isRanks: each branch has its ranks, the odd ones first. */
function branch(node, isRanks) {
	const lines = [];
	let at = node;

	for (;;) {
		const next = [...at.children.values()];

		if (at.frame)
			lines.push(frameLine(at.frame, ...(at === node || (!isRanks && (next.length !== 1 || next[0].who.length !== at.who.length))
				? [" ", element("span", { className: "who", textContent: isRanks ? ranksOf(at.who) : `× ${at.who.length}`, title: isRanks ? "" : namesOf(at.who) })]
				: [])));
		if (next.length !== 1 || (at.frame && next[0].who.length !== at.who.length))
			break;
		[at] = next;
	}
	const children = [...at.children.values()].sort((a, b) => (b.who.length - a.who.length) * (isRanks ? -1 : 1));

	if (children.length === 0 && !isRanks)
		lines.push(element("div", { className: "soft", textContent: namesOf(at.who) }));
	return element("div", { className: "branch" }, ...lines, ...children.map((child) => branch(child, isRanks)));
}

const branches = (root, isRanks) => [...root.children.values()].sort((a, b) => isRanks ? a.who.length - b.who.length : 0).map((one) => branch(one, isRanks));

/* ---- Asking ---- */

const stacksOf = async (target) => (await ask("/apis/pythonext/callstack", { target }, { headers: { Accept: "application/json" } })).json();
const matches = (thread, wanted) => !wanted || String(thread.tid) === wanted || threadName(thread) === wanted;

/* {nodes to show, threads, failures, classes: where ranks are} */
async function readProcess(state) {
	const found = (await stacksOf(state.target)).threads.filter((thread) => matches(thread, state.thread));
	const whose = found.map((thread) => ({ thread, who: `${threadName(thread)} (${thread.tid})` }));

	return { n: found.length, failures: [], classes: [], nodes: state.merged ? branches(treeOf(whose, state.python), false) : found.map((thread) => card(thread, state)) };
}

/* Its number; of several jobs, which number their ranks alike, and of processes without a rank, a text. */
function nameOfRank(rank, host, isAlone) {
	if (typeof rank.rank !== "number")
		return `process ${rank.pid} on ${host.host || host.address}`;
	return isAlone ? rank.rank : `${rank.job} rank ${rank.rank}`;
}

async function readRanks(state) {
	const { hosts, classes: found } = await (await ask("/apis/backtrace", { threads: state.threads, "no-native": state.python })).json();
	const ranks = hosts.flatMap((host) => host.ranks.map((rank) => ({ host, rank })));
	const isAlone = new Set(ranks.map(({ rank }) => rank.job)).size < 2;
	const failures = [...hosts.filter((host) => host.problem).map((host) => `${host.host || host.address}: ${host.problem}`),
		...ranks.filter(({ rank }) => rank.problem).map(({ host, rank }) => `${ranksOf([nameOfRank(rank, host, isAlone)])}: ${rank.problem}`)];
	const whose = ranks.flatMap(({ host, rank }) => rank.threads.filter((thread) => matches(thread, state.thread)).map((thread) => ({ thread, who: nameOfRank(rank, host, isAlone) })));

	return { n: whose.length, failures, nodes: branches(treeOf(whose, state.python), true),
		classes: found.length < 2 ? [] : found.map(({ ranks: names, own, innermost }) => element("li", {}, element("strong", { textContent: names }), " ",
			...(own || innermost ? [frameLine(own || innermost)] : []))) };
}

async function load(state) {
	const mine = ++turn;
	let found = { n: 0, failures: [], classes: [], nodes: [] };

	try {
		found = await (state.all ? readRanks : readProcess)(state);
	} catch (error) {
		found.failures = [error.message];
	}
	if (mine !== turn)
		return;
	note.textContent = found.failures.join("; ") || `${new Date().toLocaleTimeString()}: ${found.n} thread${found.n === 1 ? "" : "s"}`;
	note.classList.toggle("error", found.failures.length > 0);
	classes.replaceChildren(...found.classes);
	classes.hidden = found.classes.length === 0;
	stacks.replaceChildren(...found.nodes);
	stacks.className = state.merged || state.all ? "tree" : "cards";
	if (Number(state.period) > 0 && (found.n > 0 || found.failures.length === 0))
		timer = setTimeout(() => load(state), Number(state.period) * 1000);
}

function show(body, given) {
	const isProcess = given.targetInfo.kind === "process";
	const state = isProcess ? given : { ...given, all: "1" }; // then there are ranks of hosts only
	const processes = state.targets.filter((one) => one.kind === "process");

	if (!body.firstChild)
		body.append(element("div", { className: "controls" }, refresh, element("label", {}, "Again", period), merged, all, threads, python), note, classes, stacks);
	clearTimeout(timer);
	period.value = state.period in PERIODS ? state.period : "";
	all.hidden = !isProcess || (processes.length < 2 && !state.hosts);
	merged.hidden = Boolean(state.all);
	threads.hidden = !state.all;
	for (const [button, name] of [[merged, "merged"], [all, "all"], [threads, "threads"], [python, "python"]])
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

view({ name: "backtrace", title: "Backtrace", kinds: ["process"], ofHosts: true, filters: ["thread"], show, hide });
