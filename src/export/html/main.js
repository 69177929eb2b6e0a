/* main.js - the page of an HTML flame graph: its controls, its views, and what is looked at. */
import {amountOf, baseName, linesOf, load, percent} from "./data.js";
import {colourOf, onThemeChange, patterns, schemesOf, swatch} from "./colours.js";
import {compile, element} from "./dom.js";
import {makeFlame} from "./flame.js";
import {makeState} from "./state.js";
import "./style.css";

const profile = load(document.getElementById("profile").textContent);
const schemes = schemesOf(profile);
const hits = new Set(); /* labels */

const {state, change, restore} = makeState({
	views: ["flame"], nodes: profile.nodes.length, colours: Object.keys(schemes), threads: [""], labels: profile.labels.length,
	sorts: [""], sources: 0,
}, show);

/* ---- What is said of a box ---- */

const labelOf = node => profile.labels[node.label];
const signOf = node => profile.diff ? ["− ", "", "+ "][Math.sign(profile.diff.shade[node.index]) + 1] : "";
const nameOf = node => signOf(node) + labelOf(node).text;
const wordsOf = node => profile.diff ? `${labelOf(node).text}, ${profile.diff.says[node.index]}` :
	`${labelOf(node).text}, ${percent(node.value, profile.nodes[0].value)}`;
const fillOf = node => colourOf(schemes[state.colour], labelOf(node), node, hits.has(node.label));

const summary = profile.diff ? profile.diff.note : [amountOf(profile, profile.nodes[0]), profile.inverted ? "callers beyond what they call" : "",
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
const flame = makeFlame({
	label: "Flame graph: arrow keys move, Enter zooms, Escape resets", name: nameOf, words: wordsOf, lines: node => linesOf(profile, node),
	fill: fillOf, onZoom: node => change({zoom: node.index}), onLook: describe,
});
const view = element("div", {className: "view flame"}, flame.host);
const controls = element("div", {className: "controls"}, element("label", {}, "Colour", colours), icicle, reset,
	element("label", {className: "search"}, matched, input));

let paint = patterns();
document.body.append(paint,
	element("header", {}, element("h1", {textContent: document.title, title: document.title}), element("p", {className: "summary", textContent: summary}),
		controls),
	element("main", {}, view), element("footer", {}, note, legend));

function describe(node) {
	const shown = node || (document.activeElement === flame.host ? flame.current() : null);
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
	matched.textContent = pattern ? `matched ${(sumOfHits() / (profile.nodes[0].value || 1) * 100).toFixed(2)} %` : "";
}

/* ---- Showing ---- */

function show(changed) {
	mark();
	if (document.activeElement !== input || input.value !== state.search)
		input.value = state.search;
	colours.value = state.colour;
	icicle.setAttribute("aria-pressed", String(Boolean(state.icicle)));
	reset.hidden = state.zoom === 0;
	legend.replaceChildren(...schemes[state.colour].legend().map(([fill, words]) => element("span", {}, swatch(fill), words)));
	view.classList.toggle("icicle", Boolean(state.icicle));
	flame.invert(Boolean(state.icicle));
	flame.show(profile.nodes[state.zoom]);
	if (changed.includes("zoom") || changed.includes("icicle"))
		flame.scroll(view);
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
	if (event.key !== "Enter" || hits.size === 0)
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
flame.draw(profile.nodes[0]);
restore();
flame.scroll(view);
addEventListener("keydown", onKey);
addEventListener("hashchange", restore);
addEventListener("popstate", restore);
addEventListener("resize", () => flame.resize());
onThemeChange(() => {
	const made = patterns();
	paint.replaceWith(made);
	paint = made;
	show([]);
});
