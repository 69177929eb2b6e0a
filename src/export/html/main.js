/* SPDX-License-Identifier: MIT */
/* main.js - the page of an HTML flame graph: its controls, its views, and what is looked at. */
import {amountOf, baseName, functionsOf, linesOf, load, percent, sumUp} from "./data.js";
import {makeCallers} from "./callers.js";
import {colourOf, onThemeChange, patterns, schemesOf, swatch} from "./colours.js";
import {compile, element} from "./dom.js";
import {makeFlame} from "./flame.js";
import {makeFunctions, sorts} from "./functions.js";
import {makeSources} from "./sources.js";
import {makeState} from "./state.js";
import {makeTabs} from "./tabs.js";
import {choicesOf, makePicker} from "./threads.js";
import "./style.css";

const profile = load(document.getElementById("profile").textContent);
const hasFunctions = !profile.diff, hasSources = Boolean(profile.sources);
const choices = choicesOf(profile);
if (!profile.diff)
	sumUp(profile, choices[0].threads);
const all = profile.nodes[0].value;
const schemes = schemesOf(profile);
const hits = new Set(); /* labels */

const {state, change, restore} = makeState({
	views: ["flame", ...hasFunctions ? ["functions", "callers"] : [], ...hasSources ? ["sources"] : []], nodes: profile.nodes.length,
	colours: Object.keys(schemes), threads: choices.map(choice => choice.key), labels: profile.labels.length, sorts,
	sources: hasSources ? profile.sources.files.length : 0,
}, show);

/* ---- What is said of a box ---- */

const labelOf = node => profile.labels[node.label];
const signOf = node => profile.diff ? ["− ", "", "+ "][Math.sign(profile.diff.shade[node.index]) + 1] : "";
const nameOf = node => signOf(node) + labelOf(node).text;
const wordsOf = node => profile.diff ? `${labelOf(node).text}, ${profile.diff.says[node.index]}` :
	`${labelOf(node).text}, ${percent(node.value, profile.nodes[0].value)}`;
const linesOfNode = node => linesOf(profile, node);
const fillOf = node => colourOf(schemes[state.colour], labelOf(node), node, hits.has(node.label));

const summaryOf = () => profile.diff ? profile.diff.note : [amountOf(profile, profile.nodes[0]), profile.inverted ? "callers beyond what they call" : "",
	profile.left_out ? `${profile.left_out} boxes below ${profile.limit} %${profile.depth ? ` or deeper than ${profile.depth}` : ""} left out` : "",
].filter(Boolean).join(" · ");

/* ---- The page ---- */

const HINT = "Point at a box, or Tab to the graph: arrow keys move, Enter zooms, Escape resets";
const input = element("input", {
	type: "search", placeholder: "Search (Ctrl-F)", title: "A regular expression on names, files and modules",
	oninput: () => change({search: input.value}, true), attributes: {"aria-label": "Search names, files and modules"},
});
const colours = element("select", {className: "colours", onchange: () => change({colour: colours.value}, true)},
	...Object.keys(schemes).map(name => element("option", {value: name, textContent: name})));
const icicle = element("button", {type: "button", className: "icicle", textContent: "Icicle", title: "Draw callers at the top",
	onclick: () => change({icicle: state.icicle ? "" : "1"}, true)});
const reset = element("button", {type: "button", className: "reset", textContent: "Reset zoom", title: "Esc", onclick: () => change({zoom: 0})});
const matched = element("span", {className: "matched", attributes: {role: "status"}});
const legend = element("div", {className: "legend"});
const note = element("div", {className: "note", attributes: {role: "status"}});
const toCallers = element("button", {type: "button", className: "to-callers", textContent: "Callers & callees",
	onclick: () => change({view: "callers", function: profile.nodes[state.zoom].label})});
const toSource = element("button", {type: "button", className: "to-source", textContent: "Source", onclick: () => change(sourceOf(labelShown()))});
const flame = makeFlame({
	label: "Flame graph: arrow keys move, Enter zooms, Escape resets", name: nameOf, words: wordsOf, lines: linesOfNode,
	fill: fillOf, onZoom: node => change({zoom: node.index}), onLook: describe,
});
const view = element("div", {className: "view flame"}, flame.host);
const table = hasFunctions ? makeFunctions(profile, {onPick: label => change({view: "callers", function: label}), onSort: sort => change({sort}, true)}) : null;
const callers = hasFunctions ? makeCallers(profile, {
	name: nameOf, words: wordsOf, lines: linesOfNode, fill: fillOf, onPick: label => change({function: label}), onLook: describe}) : null;
const sources = hasSources ? makeSources(profile.sources, source => change({source, line: 0})) : null;
const picker = makePicker(choices, thread => change({thread, zoom: 0}));
const tabs = makeTabs([{name: "flame", words: "Flame graph", host: view},
	...hasFunctions ? [{name: "functions", words: "Functions", host: table.host}, {name: "callers", words: "Callers & callees", host: callers.host}] : [],
	...hasSources ? [{name: "sources", words: "Sources", host: sources.host}] : []], name => change({view: name}));
const forColour = element("label", {}, "Colour", colours), forThread = element("label", {}, "Thread", picker);
const summary = element("p", {className: "summary"});
const controls = element("div", {className: "controls"}, ...tabs.host ? [tabs.host] : [],
	...choices.length > 2 ? [forThread] : [], forColour, icicle, reset, toCallers, toSource,
	element("label", {className: "search"}, matched, input));
const footer = element("footer", {}, note, legend);

let paint = patterns();
document.body.append(paint, element("header", {}, element("h1", {textContent: document.title, title: document.title}), summary, controls),
	element("main", {}, ...[view, table, callers, sources].filter(Boolean).map(one => one.host || one)), footer);

function describe(node) {
	const focused = [flame, ...callers ? [callers.callers, callers.callees] : []].find(one => one.host === document.activeElement);
	const shown = node || (focused ? focused.current() : null);
	note.textContent = shown ? linesOf(profile, shown).join("  ·  ") : HINT;
	note.classList.toggle("hint", !shown);
}

/* ---- Searching ---- */

/* What is inside of a box that was counted is not counted again. */
function sumOfHits() {
	const inside = [];
	let sum = 0;
	for (const node of profile.nodes) {
		const isInside = node.parent !== null && inside[node.parent.index];
		const isHit = node.index > 0 && hits.has(node.label);
		if (isHit && !isInside)
			sum += node.value;
		inside.push(isInside || isHit);
	}
	return sum;
}

function mark() {
	const pattern = compile(state.search);
	hits.clear();
	if (pattern)
		profile.labels.forEach((label, i) => {
			if (pattern.test(label.text) || pattern.test(baseName(label.file)) || pattern.test(baseName(label.module)))
				hits.add(i);
		});
	hits.delete(profile.nodes[0].label);
	input.classList.toggle("bad", pattern === undefined);
	input.setAttribute("aria-invalid", String(pattern === undefined));
	matched.textContent = pattern && state.view !== "functions" ? `matched ${(sumOfHits() / (profile.nodes[0].value || 1) * 100).toFixed(2)} %` : "";
}

/* ---- Threads and functions ---- */

let rows = [], rowsOf = null;

/* The sums of the thread that is picked, where they are not there yet. */
function pickThread() {
	if (profile.diff || rowsOf === state.thread)
		return false;
	const {threads} = choices.find(choice => choice.key === state.thread);
	sumUp(profile, threads);
	rows = functionsOf(profile, threads);
	rowsOf = state.thread;
	return true;
}

/* The function of the middle view: the one that was chosen, or that took most itself. */
function functionShown() {
	const none = {label: 0, self: 0, total: 0};
	if (state.function)
		return rows.find(row => row.label === state.function) || {...none, label: state.function};
	return rows.reduce((best, row) => row.self > best.self ? row : best, rows[0] || none);
}

const labelShown = () => state.view === "callers" ? functionShown().label : profile.nodes[state.zoom].label;

function sourceOf(index) {
	const label = profile.labels[index], source = sources.find(label.file);
	return {view: "sources", source: Math.max(source, 0), line: source < 0 ? 0 : label.first};
}

/* ---- Showing ---- */

function showControls() {
	const isFlame = state.view === "flame", isZoomed = isFlame && state.zoom > 0, isDrawn = isFlame || state.view === "callers";
	const {kind, file} = profile.labels[labelShown()];
	tabs.show(state.view);
	forColour.hidden = footer.hidden = !isDrawn;
	forThread.hidden = state.view === "sources"; /* whose times are those of all */
	icicle.hidden = !isFlame;
	reset.hidden = !isZoomed;
	toCallers.hidden = !isZoomed || !hasFunctions || kind === "";
	toSource.hidden = !(isZoomed || state.view === "callers") || !hasSources || sources.find(file) < 0;
	if (document.activeElement !== input || input.value !== state.search)
		input.value = state.search;
	colours.value = state.colour;
	picker.value = state.thread;
	icicle.setAttribute("aria-pressed", String(Boolean(state.icicle)));
	legend.replaceChildren(...schemes[state.colour].legend().map(([fill, words]) => element("span", {}, swatch(fill), words)));
	summary.textContent = summaryOf();
}

const showers = {
	flame(changed, isNew) {
		view.classList.toggle("icicle", Boolean(state.icicle));
		flame.invert(Boolean(state.icicle));
		if (isNew)
			flame.draw(profile.nodes[0]);
		flame.show(profile.nodes[state.zoom]);
		if (isNew || ["zoom", "icicle", "view"].some(name => changed.includes(name)))
			flame.scroll(view);
	},
	functions: () => table.show(rows, all, state.sort, compile(state.search)),
	callers(changed, isNew) {
		const row = functionShown();
		if (isNew || ["function", "view"].some(name => changed.includes(name)))
			callers.show(row.label, row, all);
		else
			callers.repaint();
	},
	sources: () => sources.show(state.source, state.line),
};
const drawnFor = {}; /* view -> the thread that it has been drawn for */

function show(changed) {
	pickThread();
	mark();
	showControls();
	const isNew = drawnFor[state.view] !== state.thread;
	drawnFor[state.view] = state.thread;
	showers[state.view](changed, isNew);
}

function onKey(event) {
	if (event.key === "Escape") {
		if (document.activeElement === input)
			input.blur();
		change({zoom: 0, search: ""});
	} else if (event.key === "f" && (event.ctrlKey || event.metaKey)) {
		event.preventDefault();
		input.focus();
		input.select();
	}
}

/* Enter in the search field leads to the next box that matches. */
input.addEventListener("keydown", event => {
	if (event.key !== "Enter" || hits.size === 0 || state.view !== "flame")
		return;
	const from = flame.current().index, {nodes} = profile;
	for (let i = 1; i <= nodes.length; i++) {
		const node = nodes[(from + i) % nodes.length];
		if (hits.has(node.label) && flame.isShown(node)) {
			flame.host.focus();
			flame.look(node);
			return;
		}
	}
});

describe(null);
restore();
addEventListener("keydown", onKey);
addEventListener("hashchange", restore);
addEventListener("popstate", restore);
addEventListener("resize", () => {
	flame.resize();
	if (callers)
		callers.resize();
});
onThemeChange(() => {
	const made = patterns();
	paint.replaceWith(made);
	paint = made;
	for (const name of Object.keys(drawnFor))
		delete drawnFor[name];
	show([]);
});
