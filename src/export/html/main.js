/* main.js - the HTML flame graph: d3-flame-graph draws, this finds, colours and tells.
 *
 * The state (zoom, search, colours, direction) stands in the address, so that a view can be bookmarked and Back
 * undoes a zoom.
 */
import flamegraph from "d3-flame-graph/src/flamegraph.js";
import {select} from "d3-selection";
import {amountOf, baseName, linesOf, load} from "./data.js";
import {colourOf, schemesOf} from "./colours.js";
import "./style.css";

const profile = load(document.getElementById("profile").textContent);
const schemes = schemesOf(profile);
const quiet = matchMedia("(prefers-reduced-motion: reduce)").matches;
const usual = Object.keys(schemes)[0];
const state = {zoom: 0, search: "", colour: usual, icicle: false};
const hits = new Set(); /* labels */

function element(name, properties, ...children) {
	const made = Object.assign(document.createElement(name), properties);
	made.append(...children);
	return made;
}

/* ---- The page ---- */

const input = element("input", {
	type: "search", placeholder: "Search (Ctrl-F)", title: "A regular expression on names, files and modules",
	oninput: () => change({search: input.value}, true),
});
const colours = element("select", {title: "What colours say", onchange: () => change({colour: colours.value}, true)},
	...Object.keys(schemes).map(name => element("option", {value: name, textContent: `colour: ${name}`})));
const icicle = element("button", {textContent: "Icicle", title: "Draw callers at the top", onclick: () => change({icicle: !state.icicle}, true)});
const reset = element("button", {textContent: "Reset zoom", title: "Esc", onclick: () => change({zoom: 0})});
const matched = element("span", {className: "matched"});
const legend = element("span", {className: "legend"});
const note = element("div", {className: "note"});
const graph = element("div", {className: "graph"});
const head = element("header", {}, element("h1", {textContent: document.title}),
	element("div", {className: "controls"}, legend, matched, reset, icicle, colours, input), note);

const summary = profile.diff ? profile.diff.note : [amountOf(profile, profile.nodes[0]), profile.inverted ? "callers beyond what they call" : "",
	profile.left_out ? `${profile.left_out} boxes below ${profile.limit} %${profile.depth ? ` or deeper than ${profile.depth}` : ""} left out` : "",
].filter(Boolean).join(" · ");

/* ---- Drawing ---- */

const chart = flamegraph()
	.cellHeight(18).minFrameSize(0.5).transitionDuration(quiet ? 0 : 200).sort(false).resetHeightOnZoom(true)
	.setLabelHandler(d => linesOf(profile, d.data).join("\n"))
	.setDetailsHandler(text => { if (text === null) note.textContent = summary; })
	.getName(d => profile.labels[d.data.label].text)
	.setColorMapper(d => colourOf(schemes[state.colour], profile.labels[d.data.label], d.data, hits.has(d.data.label)))
	.onHover(d => { note.textContent = linesOf(profile, d.data).join("  ·  "); })
	.onClick(d => { if (d.data.index !== state.zoom) change({zoom: d.data.index}); });

/* d3-flame-graph keeps a node of its own for each of ours. */
const drawnOf = [];

function draw() {
	chart.width(graph.clientWidth);
	select(graph).datum(profile.nodes[0]).call(chart);
	select(graph).datum().each(node => { drawnOf[node.data.index] = node; });
}

/* ---- Searching ---- */

/* Case matters only where the pattern has a capital letter. */
function compile(pattern) {
	try {
		return pattern ? new RegExp(pattern, /[A-Z]/.test(pattern) ? "" : "i") : null;
	} catch (error) {
		return undefined;
	}
}

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
	matched.textContent = pattern ? `matched ${(sumOfHits() / (profile.nodes[0].value || 1) * 100).toFixed(2)} %` : "";
}

/* ---- State ---- */

function show() {
	const scheme = schemes[state.colour];
	mark();
	input.value = state.search;
	colours.value = state.colour;
	icicle.classList.toggle("on", state.icicle);
	reset.style.visibility = state.zoom ? "visible" : "hidden";
	legend.replaceChildren(...scheme.legend.map(([colour, words]) => {
		const box = element("i");
		box.style.background = colour;
		return element("span", {}, box, words);
	}));
	note.textContent = summary;
	chart.inverted(state.icicle);
	chart.zoomTo(drawnOf[state.zoom]);
}

function stateText() {
	const text = new URLSearchParams();
	if (state.zoom)
		text.set("zoom", state.zoom);
	if (state.search)
		text.set("search", state.search);
	if (state.colour !== usual)
		text.set("colour", state.colour);
	if (state.icicle)
		text.set("icicle", "1");
	return "#" + text;
}

function change(what, isSmall) {
	Object.assign(state, what);
	show();
	if (isSmall)
		history.replaceState(null, "", stateText());
	else
		history.pushState(null, "", stateText());
}

function restore() {
	const text = new URLSearchParams(location.hash.slice(1));
	const zoom = Number(text.get("zoom"));
	state.zoom = Number.isInteger(zoom) && zoom > 0 && zoom < profile.nodes.length ? zoom : 0;
	state.search = text.get("search") || "";
	state.colour = Object.hasOwn(schemes, text.get("colour")) ? text.get("colour") : usual;
	state.icicle = text.get("icicle") === "1";
	show();
}

function onKey(event) {
	if (event.key === "Escape") {
		input.blur();
		change({zoom: 0, search: ""});
	} else if (event.key === "f" && (event.ctrlKey || event.metaKey)) {
		event.preventDefault();
		input.focus();
		input.select();
	}
}

document.body.append(head, graph);
draw();
restore();
if (!state.icicle)
	scrollTo(0, document.body.scrollHeight);
addEventListener("keydown", onKey);
addEventListener("hashchange", restore);
addEventListener("popstate", restore);
addEventListener("resize", () => {
	chart.width(graph.clientWidth);
	chart.zoomTo(drawnOf[state.zoom]);
});
