/* SPDX-License-Identifier: MIT */
/* callers.js - one function between those that call it and those that it calls: two flame graphs, merged from all places it
 * is at. A function under itself counts once, at its outermost place. */
import {amountOf, percent, placeOf} from "./data.js";
import {element} from "./dom.js";
import {makeFlame} from "./flame.js";

const makeNode = (tree, label, parent) => {
	const node = {index: tree.n++, label, parent, children: [], value: 0, samples: 0, of: []};
	if (parent)
		parent.children.push(node);
	return node;
};

/* What a merged node stands for: each source counts what its place has. */
function count(node, places) {
	for (const place of places) {
		node.value += place.value;
		node.samples += place.samples;
		node.of.push(place.index);
	}
}

const byName = labels => (a, b) => labels[a.label].text < labels[b.label].text ? -1 : labels[a.label].text > labels[b.label].text ? 1 : a.label - b.label;

/* @next: sources of a source, one step further; @placeOf: where a source counts. */
function merge(labels, label, sources, next, placeOf) {
	const tree = {n: 0}, root = makeNode(tree, label, null), open = [[root, sources]];
	count(root, sources.map(placeOf));
	while (open.length) {
		const [node, from] = open.pop(), groups = new Map();
		for (const source of from)
			for (const one of next(source)) {
				const key = one.node.label;
				groups.set(key, [...groups.get(key) || [], one]);
			}
		for (const [key, group] of groups) {
			const made = makeNode(tree, key, node);
			count(made, group.map(placeOf));
			open.push([made, group]);
		}
		node.children.sort(byName(labels));
	}
	return root;
}

/* Towards the root of the page's tree, and away from it. */
const outwards = source => source.node.parent && source.node.parent.index > 0 ? [{node: source.node.parent, place: source.place}] : [];
const inwards = source => source.node.children.map(node => ({node, place: node}));

/* Where a function is, but not under itself. */
export function placesOf(profile, label) {
	const isInside = [], places = [];
	for (const node of profile.nodes) {
		const isBelow = node.parent !== null && isInside[node.parent.index];
		if (node.label === label && !isBelow && node.value > 0)
			places.push(node);
		isInside.push(isBelow || node.label === label);
	}
	return places;
}

export function sidesOf(profile, label) {
	const sources = placesOf(profile, label).map(node => ({node, place: node}));
	const up = merge(profile.labels, label, sources, outwards, source => source.place);
	const down = merge(profile.labels, label, sources, inwards, source => source.place);
	return profile.inverted ? {callers: down, callees: up} : {callers: up, callees: down};
}

/* @options: name, words, lines, fill of nodes, onPick(label), onLook(node). */
export function makeCallers(profile, options) {
	const side = label => makeFlame({...options, label, onZoom: node => options.onPick(node.label)});
	const callers = side("Callers: arrow keys move, Enter goes to a function"), callees = side("Callees: arrow keys move, Enter goes to a function");
	const name = element("h2", {}), about = element("p", {className: "about"});
	const host = element("div", {className: "view callers"}, name, about, element("h3", {textContent: "Callers"}), callers.host,
		element("h3", {textContent: "Callees"}), callees.host);
	callees.invert(true);

	function show(label, row, all) {
		const sides = sidesOf(profile, label), {value} = sides.callees;
		name.textContent = profile.labels[label].text;
		about.textContent = [placeOf(profile.labels[label]), `self ${percent(row.self, all)}`, `total ${percent(row.total, all)}`, amountOf(profile, sides.callees),
			value < row.total ? `${percent(row.total - value, all)} of all is in boxes that are left out` : ""].filter(Boolean).join(" · ");
		callers.draw(sides.callers);
		callees.draw(sides.callees);
	}

	return {host, show, callers, callees, resize() { callers.resize(); callees.resize(); }, repaint() { callers.repaint(); callees.repaint(); }};
}
