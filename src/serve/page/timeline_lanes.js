// SPDX-License-Identifier: MIT
// timeline_lanes.js - an answer of /apis/timeline as lanes with places and heights, and what is at a place.

export const ROW = 17;
export const RULER = 26;
const STRIP = 12;
const CURVE = 36;
const GAP = 5;
export const MAX_DEPTH = 64;

const threadKey = (thread) => `thread ${thread.pid} ${thread.tid}`;

/* makeLanes - the lanes of an answer, in their order: the curves of most interest; what is about a process, and its threads
 * with what is theirs; the other curves. */
export function makeLanes(answer) {
	const lanes = [];
	const pids = [...new Set([...answer.threads.map((one) => one.pid), ...answer.events.map((one) => one.pid)])];
	const manyProcesses = pids.filter((pid) => pid > 0).length > 1;
	const nameOf = (pid) => (answer.threads.find((one) => one.pid === pid) || {}).process || "process";
	const of = (pid) => (manyProcesses && pid > 0 ? ` · ${nameOf(pid)} (${pid})` : "");
	const addEvents = (event, thread) => lanes.push({
		kind: "events", key: `${event.kind} ${event.title} ${event.pid} ${event.tid}`, title: event.title + (thread ? ` · ${thread.name || thread.tid}` : of(event.pid)),
		detail: event.events.toLocaleString("en"), pid: event.pid, tid: event.tid, name: thread && thread.name, source: event,
	});
	const addCurve = (curve) => lanes.push({ kind: "curve", key: `curve ${curve.name}`, title: curve.name,
		detail: `up to ${Number(curve.top.toPrecision(3)).toLocaleString("en")} ${curve.unit}`, source: curve });
	const isFirst = (curve) => /^(CPU|memory|GPU)/.test(curve.name);

	answer.curves.filter(isFirst).forEach(addCurve);
	for (const pid of pids) {
		answer.events.filter((one) => one.pid === pid && one.tid === 0).forEach((one) => addEvents(one, null));
		answer.gil.filter((one) => one.pid === pid).forEach((gil) => lanes.push({
			kind: "gil", key: `gil ${pid}`, title: `GIL${of(pid)}`, detail: "the thread that held it longest", pid, source: gil }));
		for (const thread of answer.threads.filter((one) => one.pid === pid)) {
			answer.events.filter((one) => one.pid === pid && one.tid === thread.tid).forEach((one) => addEvents(one, thread));
			lanes.push({ kind: "thread", key: threadKey(thread), title: (thread.name || "thread") + of(pid), detail: `TID ${thread.tid}`,
				pid, tid: thread.tid, name: thread.name, process: thread.process, source: thread });
		}
		answer.events.filter((one) => one.pid === pid && one.tid !== 0 && !answer.threads.some((thread) => thread.pid === pid &&
			thread.tid === one.tid)).forEach((one) => addEvents(one, { tid: `TID ${one.tid}` }));
	}
	answer.curves.filter((curve) => !isFirst(curve) && curve.top > 0).forEach(addCurve);
	return lanes;
}

/* Rows below the strip; a lane that is closed has none. */
function rowsOf(lane, isOpen, deepest) {
	if (lane.kind === "events")
		return isOpen ? lane.source.rows.length : 1;
	return lane.kind === "thread" && isOpen ? Math.min(deepest.get(lane.key) || 0, MAX_DEPTH) : 0;
}

/*
 * placeLanes - set top, height and rows of each lane. Returns the height of all.
 * @deepest: rows that a thread has had, by key: lanes do not jump while the view moves.
 */
export function placeLanes(lanes, closed, deepest) {
	let top = RULER + GAP;

	for (const lane of lanes) {
		const isOpen = !closed.has(lane.key);

		if (lane.kind === "thread" && lane.source.rows)
			deepest.set(lane.key, Math.max(deepest.get(lane.key) || 0, lane.source.rows.length));
		lane.isOpen = isOpen;
		lane.strip = lane.kind === "thread" ? STRIP : 0;
		lane.rows = rowsOf(lane, isOpen, deepest);
		lane.height = lane.kind === "curve" ? (isOpen ? CURVE : ROW) : lane.kind === "gil" ? ROW : Math.max(lane.strip + lane.rows * ROW, ROW);
		lane.top = top;
		top += lane.height + GAP;
	}
	return top;
}

/* The index of the first slice that ends behind a column. */
export function firstSlice(list, column) {
	let low = 0, high = list.length / 4;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (list[4 * middle] + list[4 * middle + 1] > column)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The slice at a column, as {first, n, what, count}; null: none. */
export function sliceAt(list, column) {
	const at = 4 * firstSlice(list, column);

	return at < list.length && list[at] <= column ? { first: list[at], n: list[at + 1], what: list[at + 2], count: list[at + 3] } : null;
}

/* The part of an answer that draws a lane; undefined: it has none. */
export function sourceOf(answer, lane) {
	if (lane.kind === "thread")
		return answer.threads.find((one) => one.pid === lane.pid && one.tid === lane.tid);
	if (lane.kind === "gil")
		return answer.gil.find((one) => one.pid === lane.pid);
	if (lane.kind === "curve")
		return answer.curves.find((one) => one.name === lane.title);
	return answer.events.find((one) => `${one.kind} ${one.title} ${one.pid} ${one.tid}` === lane.key);
}

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

/* A length of time with three or four digits. */
export function formatLength(ns) {
	const [size, unit] = UNITS.find(([one]) => Math.abs(ns) >= one) || UNITS[3];
	const value = ns / size;

	if (ns >= 600e9)
		return formatTime(ns, 1e9);
	return `${value >= 100 || size === 1 ? Math.round(value) : value.toPrecision(3)} ${unit}`;
}

/* A time after the start, as exact as steps of @step ns need. */
export function formatTime(ns, step) {
	const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(step, 1)) - 1e-9)));
	const seconds = Math.abs(ns) / 1e9;
	const sign = ns < 0 ? "−" : "";
	const minutes = Math.floor(seconds / 60);

	if (minutes === 0 || step < 1e6)
		return `${sign}${seconds.toFixed(digits)} s`;
	const rest = (seconds - 60 * minutes).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");

	return sign + (minutes >= 60 ? `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`);
}
