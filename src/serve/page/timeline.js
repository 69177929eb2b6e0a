// SPDX-License-Identifier: MIT
// timeline.js - the view of threads over time: requests to the server, keys and pointers, details, and a table for screen readers.
//
// The server folds to columns of the width of a pixel, so an answer is as large as the picture and not as the recording. Between two
// answers the last ones are drawn, moved and scaled: each frame is drawn from what is there.
import { compile, element } from "../../export/html/dom.js";
import { ask } from "./api.js";
import { view } from "./registry.js";
import { change, link } from "./state.js";
import { firstSlice, formatLength, formatTime, makeLanes, MAX_DEPTH, placeLanes, ROW, RULER, sliceAt, sourceOf } from "./timeline_lanes.js";
import { makePainter } from "./timeline_draw.js";

const OPEN_AT_FIRST = 4;
const MAX_CHOSEN = 64;
const MARGIN = 0.5; // requested on each side, as a fraction of the visible range
const PAUSE_MS = 40; // of the view, before the server is asked
const REST_MS = 400; // before the URL has the range
const LIVE_MS = 2000;
const MIN_SPAN_NS = 200;
const ZOOM = 1.25;
const MAX_TABLE = 60;

const ui = {}; // elements
let painter = null;
let state = null; // of the page
let whole = null, part = null; // answers: of the whole recording, of what is seen
let lanes = [];
const closed = new Set(), deepest = new Map(), known = new Set();
const at = { since: 0, until: 1, top: 0, pattern: null, hovered: null, range: null };
let frame = 0, pause = 0, rest = 0, live = 0;
let isOpen = false; // another view is: the URL is not ours, and nothing is asked
let asking = null, isBehind = false;
let drag = null;

/* ---- Time ---- */

const span = () => at.until - at.since;
const isWhole = () => whole && at.since <= whole.begin_ns && at.until >= whole.end_ns;
const timeAt = (x) => at.since + x / painter.width * span();

/* "1.5", "90s", "2m": seconds after the start. undefined: none. */
function parseTime(text) {
	const found = /^(-?[\d.]+)(ms|s|m|h)?$/.exec(text || "");

	return found ? Number(found[1]) * { ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 }[found[2] || "s"] : undefined;
}

/* Within the recording, and not nearer than some nanoseconds. */
function look(since, until) {
	const length = Math.min(Math.max(until - since, MIN_SPAN_NS), Math.max(whole.end_ns - whole.begin_ns, MIN_SPAN_NS));
	const middle = (since + until) / 2;

	at.since = Math.max(whole.begin_ns, Math.min(middle - length / 2, whole.end_ns - length));
	at.until = at.since + length;
	redraw();
	if (!isOpen)
		return;
	clearTimeout(pause);
	pause = setTimeout(askForPart, PAUSE_MS);
	clearTimeout(rest);
	rest = setTimeout(settle, REST_MS);
}

const zoom = (factor, time) => look(time - (time - at.since) * factor, time + (at.until - time) * factor);
const pan = (ns) => look(at.since + ns, at.until + ns);
const lookAtAll = () => look(whole.begin_ns, whole.end_ns);
const seconds = (ns) => String(Math.round(ns) / 1e9);

/* As short as the length of the range permits. */
function rangeOf(since, until) {
	const digits = Math.min(9, Math.max(0, Math.ceil(13 - Math.log10(Math.max(until - since, 1)))));

	return { since: String(Number((since / 1e9).toFixed(digits))), until: String(Number((until / 1e9).toFixed(digits))) };
}

/* The URL has the range, so other views show the same time. */
function settle() {
	change(isWhole() ? { since: null, until: null } : rangeOf(at.since, at.until), true);
	describe();
	if (ui.table.open)
		fillTable();
}

/* ---- Answers ---- */

const shownLanes = () => lanes.filter((lane) => isShown(lane));

/* Whether the filters of the page leave a lane: a TID or a glob of names, a PID or a glob of processes. */
function isShown(lane) {
	const matches = (pattern, number, name) => !pattern || lane.kind === "curve" || String(number) === pattern || glob(pattern).test(name || "");

	return matches(state.rank, lane.pid, lane.process) && (!lane.tid || matches(state.thread, lane.tid, lane.name));
}

const glob = (pattern) => new RegExp(`^${pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".")}$`, "i");

function openThreads() {
	return shownLanes().filter((lane) => lane.kind === "thread" && !closed.has(lane.key)).slice(0, MAX_CHOSEN).map((lane) => lane.tid);
}

/* Of the busiest threads, stacks are open at first. */
function closeOthers(answer) {
	const busiest = [...answer.threads].sort((a, b) => b.samples - a.samples).slice(0, OPEN_AT_FIRST);

	for (const lane of lanes) {
		if (lane.kind === "thread" && !known.has(lane.key) && !busiest.includes(lane.source))
			closed.add(lane.key);
		known.add(lane.key);
	}
}

const pixelsOf = (width) => Math.min(8192, Math.max(16, Math.ceil(width)));

function parameters(extra) {
	return { target: state.target, pixels: pixelsOf(painter.width * (1 + 2 * MARGIN)), depth: MAX_DEPTH, ...extra };
}

async function fetchAnswer(extra) {
	const mine = new AbortController();

	asking = mine;
	try {
		return await (await ask("/apis/timeline", parameters(extra), { signal: mine.signal })).json();
	} finally {
		if (asking === mine)
			asking = null;
	}
}

/* A question that was given up is no failure. */
function fail(error) {
	if (error.name !== "AbortError")
		say(error.message, true);
}

/* The lanes of the newest answer, each at its place. */
function arrange() {
	const open = document.activeElement && ui.names.contains(document.activeElement) ? document.activeElement.dataset.key : null;

	lanes = makeLanes(part || whole);
	closeOthers(whole);
	const all = shownLanes();
	const height = placeLanes(all, closed, deepest);

	lanes = all;
	ui.names.style.height = ui.space.style.height = `${Math.max(height, ui.lanes.clientHeight)}px`;
	ui.names.replaceChildren(...lanes.map(nameOf));
	if (open)
		[...ui.names.children].find((one) => one.dataset.key === open)?.focus();
	redraw();
}

function nameOf(lane) {
	const button = element("button", { type: "button", title: `${lane.title} · ${lane.detail}`, attributes: { "aria-expanded": String(lane.isOpen) } },
		lane.title, element("small", { textContent: lane.detail }));

	button.dataset.key = lane.key;
	button.style.top = `${lane.top}px`;
	button.addEventListener("click", () => {
		if (!closed.delete(lane.key))
			closed.add(lane.key);
		arrange();
		askForPart(true);
	});
	return button;
}

/* Whether what is seen is known as exactly as it is drawn. */
function isKnown() {
	const pixel = span() / painter.width;
	const answer = part || whole;
	const end = answer.first_ns + answer.columns * answer.column_ns;

	return answer.first_ns <= Math.max(at.since, whole.begin_ns) && end >= Math.min(at.until, whole.end_ns) &&
		(answer.column_ns <= Math.max(pixel, 1)) && answer.column_ns * 8 > pixel;
}

/* One question at a time: the last one asked is what is seen. @isForced: other threads are open. */
async function askForPart(isForced) {
	if (!whole)
		return;
	if (asking) {
		isBehind = true;
		return;
	}
	if (!isForced && isKnown())
		return;
	const target = state.target, margin = MARGIN * span();

	try {
		const answer = await fetchAnswer({ since: seconds(at.since - margin), until: seconds(at.until + margin), threads: openThreads().join(",") || "0" });

		if (target !== state.target)
			return;
		part = answer;
		arrange();
		say("");
	} catch (error) {
		fail(error);
		return;
	}
	if (isBehind) {
		isBehind = false;
		askForPart(false);
	}
}

/* Of a recording that goes on, the end moves on with it. */
async function follow() {
	const target = state.target;

	if (!asking && whole.live) {
		try {
			const answer = await fetchAnswer({ pixels: pixelsOf(painter.width), ...(isWhole() ? { threads: openThreads().join(",") || "0" } : {}) });
			const isSeenWhole = isWhole();

			if (target !== state.target || !isOpen)
				return;
			whole = answer;
			if (isSeenWhole) {
				part = null;
				at.since = whole.begin_ns;
				at.until = whole.end_ns;
			}
			arrange();
			describe();
			askForPart(false); // what is seen whole has just come
		} catch (error) {
			fail(error);
		}
	}
	followLater();
}

/* Once, however many answers it was that asked for it. */
function followLater() {
	clearTimeout(live);
	if (isOpen && whole && whole.live)
		live = setTimeout(follow, LIVE_MS);
}

async function load() {
	const target = state.target;

	[pause, rest, live].forEach(clearTimeout);
	if (asking)
		asking.abort();
	isBehind = false;
	say("The recording is being read.");
	whole = part = null;
	lanes = [];
	[closed, deepest, known].forEach((one) => one.clear());
	at.range = null;
	ui.names.replaceChildren();
	ui.details.replaceChildren();
	redraw();
	try {
		const answer = await fetchAnswer({});

		if (target !== state.target)
			return;
		whole = answer;
	} catch (error) {
		fail(error);
		return;
	}
	if (whole.end_ns <= whole.begin_ns) {
		say("The recording has nothing to show over time.");
		return;
	}
	say("");
	at.since = parseTime(state.since) ?? whole.begin_ns;
	at.until = parseTime(state.until) ?? whole.end_ns;
	look(at.since, at.until);
	arrange();
	showHelp();
	describe();
	askForPart(true);
	followLater();
}

/* ---- Drawing ---- */

function redraw() {
	if (!frame)
		frame = requestAnimationFrame(draw);
}

function draw() {
	frame = 0;
	at.top = ui.lanes.scrollTop;
	painter.paint([whole, part].filter(Boolean), lanes, at);
	if (whole)
		showTimes();
}

function resize() {
	ui.canvas.style.height = `${ui.lanes.clientHeight}px`;
	painter.resize();
	if (whole && isOpen) /* a view that is left has no size */
		look(at.since, at.until);
}

/* ---- What is at a place ---- */

/* {lane, name, file, kind, count, first, last (ns), row}; null: nothing. */
function thingAt(x, y) {
	const lane = lanes.find((one) => y + at.top >= one.top && y + at.top < one.top + one.height);

	if (!lane || y < RULER)
		return null;
	const time = timeAt(x);

	for (const answer of [part, whole].filter(Boolean)) {
		const column = (time - answer.first_ns) / answer.column_ns;
		const source = column >= 0 && column < answer.columns && sourceOf(answer, lane);
		const found = source && thingIn(answer, lane, source, column, y + at.top - lane.top);

		if (found)
			return found;
	}
	return { lane, time };
}

function curveAt(source, column) {
	let i = 0;

	while (i + 2 < source.points.length && source.points[i + 2] <= column)
		i += 2;
	return source.points.length ? source.points[i + 1] : 0;
}

function thingIn(answer, lane, source, column, y) {
	const time = answer.first_ns + column * answer.column_ns;
	const base = { lane, time };

	if (lane.kind === "curve")
		return { ...base, value: `${Number(curveAt(source, column).toPrecision(4))} ${source.unit}` };
	const row = lane.kind === "thread" ? Math.floor((y - lane.strip) / ROW) : Math.floor(y / ROW);
	const list = lane.kind === "gil" ? source.slices : row < 0 ? source.states : (source.rows || [])[row];
	const slice = list && sliceAt(list, column);

	if (!slice)
		return null;
	const first = answer.first_ns + slice.first * answer.column_ns, last = first + slice.n * answer.column_ns;

	if (lane.kind === "gil")
		return { ...base, first, last, value: `held by ${answer.threads[slice.what].name || answer.threads[slice.what].tid}, ${share(slice.count)}` };
	if (row < 0)
		return { ...base, first, last, value: `${answer.states[slice.what]}, ${share(slice.count)}` };
	const [name, file, kind] = answer.names[slice.what];

	return { ...base, first, last, row, name, file, kind, count: slice.count };
}

const share = (parts) => `${Math.round(parts / 16 * 100)} % of the time`;

function lines(thing) {
	if (!thing)
		return [];
	const many = thing.lane.kind === "events" ? "event" : "sample";

	return [
		thing.name || thing.value,
		thing.file,
		thing.count !== undefined && `${thing.count.toLocaleString("en")} ${many}${thing.count === 1 ? "" : "s"}`,
		thing.first !== undefined && `${formatLength(thing.last - thing.first)} from ${formatTime(thing.first, span() / 1000)}`,
		thing.lane.title,
	].filter(Boolean);
}

function hover(event) {
	const box = ui.canvas.getBoundingClientRect();
	const thing = thingAt(event.clientX - box.x, event.clientY - box.y);
	const texts = thing && (thing.name || thing.value) ? lines(thing) : [];

	at.hovered = (thing && thing.name) || null;
	ui.tip.hidden = texts.length === 0;
	ui.tip.textContent = texts.join("\n");
	ui.tip.style.left = `${Math.min(event.clientX + 14, innerWidth - ui.tip.offsetWidth - 8)}px`;
	ui.tip.style.top = `${Math.min(event.clientY + 16, innerHeight - ui.tip.offsetHeight - 8)}px`;
	redraw();
}

/* ---- Details ---- */

function facts(pairs) {
	return element("dl", {}, ...pairs.filter(([, value]) => value !== undefined && value !== "").flatMap(([term, value]) => [
		element("dt", { textContent: term }), element("dd", { textContent: value })]));
}

function links(...anchors) {
	return element("ul", {}, ...anchors.filter(Boolean).map(([text, target]) => element("li", {},
		typeof target === "string" ? element("a", { textContent: text, href: target })
			: element("button", { type: "button", textContent: text, onclick: target }))));
}

function showThing(thing) {
	const isCall = thing.name && thing.kind !== "event";
	const thread = thing.lane.tid > 0 ? { thread: String(thing.lane.tid) } : {};
	const here = rangeOf(at.since, at.until);

	ui.details.replaceChildren(
		element("h3", { textContent: thing.name || thing.value || thing.lane.title }),
		facts([["Kind", thing.name && thing.kind], ["File", thing.file], [thing.lane.kind === "events" ? "Events" : "Samples",
			thing.count && thing.count.toLocaleString("en")], ["Begin", thing.first !== undefined ? formatTime(thing.first, span() / 1000) : ""],
		["Length", thing.first !== undefined ? formatLength(thing.last - thing.first) : ""], ["Depth", thing.row >= 0 && isCall ? thing.row + 1 : ""],
		["Lane", thing.lane.title], ["", thing.lane.detail]]),
		links(
			thing.first !== undefined && ["Zoom to it", () => look(thing.first - 0.05 * (thing.last - thing.first), thing.last + 0.05 * (thing.last - thing.first))],
			thing.first !== undefined && ["Flame graph of this time", link({ view: "flame", ...rangeOf(thing.first, thing.last), ...thread })],
			isCall && ["Flame graph of this function in the visible range", link({ view: "flame", ...here, function: thing.name })],
			thread.thread && ["Flame graph of this thread in the visible range", link({ view: "flame", ...here, ...thread })],
			thing.name && ["Mark its name", () => { ui.search.value = `^${thing.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`; search(); }]));
}

function showRange() {
	const [since, until] = at.range;

	ui.details.replaceChildren(
		element("h3", { textContent: "Range" }),
		facts([["From", formatTime(since, (until - since) / 1000)], ["To", formatTime(until, (until - since) / 1000)], ["Length", formatLength(until - since)]]),
		links(["Flame graph of this range", link({ view: "flame", ...rangeOf(since, until) })],
			["Zoom to it", () => { at.range = null; look(since, until); showHelp(); }],
			["Drop it", () => { at.range = null; redraw(); showHelp(); }]));
}

function showHelp() {
	const keys = [["Wheel, + −, W S", "zoom"], ["Drag, ← →, A D", "move"], ["Drag on the times, or with Shift", "choose a range"],
		["Click", "details"], ["↑ ↓", "scroll"], ["Home", "the whole recording"], ["Esc", "drop range and details"]];

	ui.details.replaceChildren(element("h3", { textContent: "Keys" }), facts(keys),
		links(["Flame graph of the visible range", link({ view: "flame", ...(isWhole() ? { since: null, until: null } : rangeOf(at.since, at.until)) })]));
}

/* ---- For those who do not see the picture ---- */

function describe() {
	const threads = lanes.filter((lane) => lane.kind === "thread").length;

	ui.canvas.setAttribute("aria-label", `Timeline of ${state.target} from ${formatTime(at.since, span() / 1000)} to ${
		formatTime(at.until, span() / 1000)}: ${lanes.length} lanes, ${threads} of them threads. The table below has what they show.`);
}

function showTimes() {
	ui.range.textContent = `${formatTime(at.since, span() / 1000)} to ${formatTime(at.until, span() / 1000)} · ${formatLength(span())}${
		whole.live ? " · live" : ""}${whole.cut ? " · there are more events than are shown" : ""}${
		whole.omitted_threads ? ` · ${whole.omitted_threads} threads with few samples are left out` : ""}`;
}

/* Columns of what is seen, by what a list of slices is about. @inner: the row below, whose columns do not count. */
function addColumns(answer, list, inner, sums) {
	const from = (at.since - answer.first_ns) / answer.column_ns, to = (at.until - answer.first_ns) / answer.column_ns;
	const seen = (rows, i) => Math.max(0, Math.min(rows[i] + rows[i + 1], to) - Math.max(rows[i], from));
	let below = 4 * firstSlice(inner, from);

	for (let i = 4 * firstSlice(list, from); i < list.length && list[i] < to; i += 4) {
		let columns = seen(list, i);

		for (; below < inner.length && inner[below] < list[i] + list[i + 1]; below += 4)
			columns -= seen(inner, below);
		sums.set(list[i + 2], (sums.get(list[i + 2]) || 0) + columns);
	}
	return sums;
}

/* What takes most of what is seen: the innermost of @rows in each column, in words. */
function most(answer, rows, nameOf) {
	const sums = new Map();

	rows.forEach((row, i) => addColumns(answer, row, rows[i + 1] || [], sums));
	return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 3).filter(([, columns]) => columns > 0).map(([what, columns]) =>
		`${nameOf(what)} ${Math.round(100 * columns * answer.column_ns / span())} %`).join(", ");
}

function fillTable() {
	const answer = part || whole;
	const rows = lanes.slice(0, MAX_TABLE).map((lane) => {
		const source = sourceOf(answer, lane);
		const named = (index) => answer.names[index][0];

		if (!source)
			return [lane.title, "", ""];
		if (lane.kind === "curve")
			return [lane.title, "", `${Number(curveAt(source, (at.until - answer.first_ns) / answer.column_ns).toPrecision(4))} ${source.unit} at the end`];
		if (lane.kind === "gil")
			return [lane.title, "", most(answer, [source.slices], (thread) => answer.threads[thread].name || answer.threads[thread].tid)];
		return [lane.title + (lane.kind === "thread" ? ` (${lane.tid})` : ""), lane.kind === "thread" ? most(answer, [source.states], (index) => answer.states[index])
			: "", most(answer, source.rows || [], named)];
	});

	ui.rows.replaceChildren(...rows.map((row) => element("tr", {}, ...row.map((text, i) => element(i ? "td" : "th", {
		textContent: text, ...(i ? {} : { scope: "row" }) })))));
}

/* ---- Keys, wheel, pointer ---- */

function search() {
	const pattern = compile(ui.search.value.trim());

	ui.search.setAttribute("aria-invalid", String(pattern === undefined));
	at.pattern = pattern || (state.function ? glob(state.function) : null);
	redraw();
}

function escape() {
	at.range = null;
	ui.tip.hidden = true;
	if (ui.search.value) {
		ui.search.value = "";
		search();
	}
	showHelp();
	redraw();
}

const KEYS = {
	ArrowLeft: () => pan(-span() / 10), a: () => pan(-span() / 10), ArrowRight: () => pan(span() / 10), d: () => pan(span() / 10),
	"+": () => zoom(1 / ZOOM, (at.since + at.until) / 2), "=": () => zoom(1 / ZOOM, (at.since + at.until) / 2),
	w: () => zoom(1 / ZOOM, (at.since + at.until) / 2), "-": () => zoom(ZOOM, (at.since + at.until) / 2), s: () => zoom(ZOOM, (at.since + at.until) / 2),
	ArrowUp: () => { ui.lanes.scrollTop -= 3 * ROW; }, ArrowDown: () => { ui.lanes.scrollTop += 3 * ROW; }, Home: () => lookAtAll(), Escape: escape,
};

function press(event) {
	const action = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];

	if (!action || !whole || event.ctrlKey || event.altKey || event.metaKey)
		return;
	event.preventDefault();
	action();
}

/* With Shift the wheel scrolls. */
function turn(event) {
	if (!whole || event.shiftKey)
		return;
	event.preventDefault();
	if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
		pan(event.deltaX / painter.width * span());
		return;
	}
	const box = ui.canvas.getBoundingClientRect();
	const notches = event.deltaMode === 0 ? event.deltaY / 100 : event.deltaY / 3;

	zoom(ZOOM ** Math.max(-4, Math.min(4, notches)), timeAt(event.clientX - box.x));
}

function grab(event) {
	const box = ui.canvas.getBoundingClientRect();
	const y = event.clientY - box.y;

	if (!whole || event.button !== 0)
		return;
	ui.canvas.focus({ preventScroll: true });
	ui.canvas.setPointerCapture(event.pointerId);
	drag = { x: event.clientX, y: event.clientY, since: at.since, until: at.until, top: ui.lanes.scrollTop, moved: false,
		selects: event.shiftKey || y < RULER, from: timeAt(event.clientX - box.x) };
}

function move(event) {
	if (!drag) {
		ui.canvas.classList.toggle("selecting", event.shiftKey || event.clientY - ui.canvas.getBoundingClientRect().y < RULER);
		hover(event);
		return;
	}
	const dx = event.clientX - drag.x, dy = event.clientY - drag.y;

	drag.moved = drag.moved || Math.abs(dx) > 3 || Math.abs(dy) > 3;
	if (!drag.moved)
		return;
	ui.tip.hidden = true;
	if (drag.selects) {
		const to = timeAt(event.clientX - ui.canvas.getBoundingClientRect().x);

		at.range = [Math.min(drag.from, to), Math.max(drag.from, to)];
		redraw();
		return;
	}
	ui.canvas.classList.add("dragged");
	ui.lanes.scrollTop = drag.top - dy;
	look(drag.since - dx / painter.width * (drag.until - drag.since), drag.until - dx / painter.width * (drag.until - drag.since));
}

function release(event) {
	const box = ui.canvas.getBoundingClientRect();

	ui.canvas.classList.remove("dragged");
	if (drag && drag.moved && drag.selects && at.range)
		showRange();
	else if (drag && !drag.moved) {
		const thing = thingAt(event.clientX - box.x, event.clientY - box.y);

		if (thing)
			showThing(thing);
	}
	drag = null;
}

/* ---- The view ---- */

function say(text, isError) {
	ui.note.textContent = text;
	ui.note.classList.toggle("error", Boolean(isError));
}

const button = (text, name, action) => element("button", { type: "button", textContent: text, title: name, onclick: () => whole && action(), attributes: { "aria-label": name } });

function makeLegend() {
	return element("ul", { className: "legend", attributes: { "aria-label": "States of threads" } },
		...["running", "runnable", "sleep", "lock", "gil", "io", "child", "blocked"].map((name) => {
			const swatch = element("i", {});

			swatch.style.background = `var(--state-${name})`;
			return element("li", {}, swatch, name);
		}), element("li", { textContent: "dark line: holds the GIL" }));
}

function listen() {
	ui.canvas.addEventListener("wheel", turn, { passive: false });
	ui.canvas.addEventListener("keydown", press);
	ui.canvas.addEventListener("pointerdown", grab);
	ui.canvas.addEventListener("pointermove", move);
	ui.canvas.addEventListener("pointerup", release);
	ui.canvas.addEventListener("pointercancel", () => { drag = null; });
	ui.canvas.addEventListener("pointerleave", () => { ui.tip.hidden = true; at.hovered = null; redraw(); });
	ui.lanes.addEventListener("scroll", redraw, { passive: true });
	ui.search.addEventListener("input", search);
	ui.table.addEventListener("toggle", () => ui.table.open && whole && fillTable());
	new ResizeObserver(resize).observe(ui.lanes);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { painter.retheme(); redraw(); });
}

function make(body) {
	ui.note = element("p", { attributes: { role: "status" } });
	ui.range = element("span", { className: "soft range" });
	ui.search = element("input", { type: "search", size: 18, placeholder: "Name or file", autocomplete: "off", spellcheck: false });
	ui.names = element("div", { className: "names" });
	ui.canvas = element("canvas", { tabIndex: 0, attributes: { role: "img", "aria-label": "Timeline" } });
	ui.space = element("div", { className: "space" }, ui.canvas);
	ui.lanes = element("div", { className: "lanes" }, ui.names, ui.space);
	ui.details = element("div", { className: "details", attributes: { role: "group", "aria-label": "Details", "aria-live": "polite" } });
	ui.rows = element("tbody", {});
	ui.table = element("details", {}, element("summary", { textContent: "Table of the visible range" }), element("div", { className: "scroll" }, element("table", {},
		element("thead", {}, element("tr", {}, ...["Lane", "States", "Most of the time"].map((text) => element("th", { textContent: text, scope: "col" })))), ui.rows)));
	ui.tip = element("div", { className: "tip", hidden: true, attributes: { "aria-hidden": "true" } });
	body.append(element("div", { className: "controls" },
		button("−", "Zoom out", () => zoom(ZOOM ** 2, (at.since + at.until) / 2)), button("+", "Zoom in", () => zoom(ZOOM ** -2, (at.since + at.until) / 2)),
		button("Whole", "Show the whole recording", lookAtAll), element("label", {}, "Mark", ui.search), ui.range), ui.note,
	element("div", { className: "work" }, ui.lanes, ui.details), makeLegend(), ui.table, ui.tip);
	painter = makePainter(ui.canvas);
	listen();
}

function show(body, now, changed) {
	const isSame = state && state.target === now.target && whole;

	if (!body.firstChild)
		make(body);
	isOpen = true;
	state = now;
	resize();
	search();
	if (!isSame) {
		load();
		return;
	}
	followLater();
	const since = parseTime(now.since) ?? whole.begin_ns, until = parseTime(now.until) ?? whole.end_ns;

	if (Math.abs(since - at.since) > span() / 2000 || Math.abs(until - at.until) > span() / 2000)
		look(since, until);
	if (changed.includes("thread") || changed.includes("rank")) {
		arrange();
		askForPart(true);
	}
}

function hide() {
	isOpen = false;
	[pause, rest, live].forEach(clearTimeout);
	if (asking)
		asking.abort();
	ui.tip.hidden = true;
}

view({ name: "timeline", title: "Timeline", kinds: ["recording"], filters: ["window", "thread", "rank", "function"], show, hide });
