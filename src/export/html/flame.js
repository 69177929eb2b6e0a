/* SPDX-License-Identifier: MIT */
/* flame.js - one flame graph: d3-flame-graph draws, this brings keys, a focus, and words for who listens.
 *
 * The picture is for the eye alone. Beside it stands a tree of the boxes around the one in focus (its callers, its
 * siblings, what it calls), which is made again when that moves: a page may draw 100,000 boxes, and as many elements
 * with roles would take it seconds.
 */
import flamegraph from "d3-flame-graph/src/flamegraph.js";
import {select} from "d3-selection";
import {element} from "./dom.js";

const CELL = 18, NEAR = 20; /* NEAR: siblings and callees told to each side */
const stillness = matchMedia("(prefers-reduced-motion: reduce)");
let nFlames = 0;

/*
 * makeFlame - @options: label, name(node), words(node), lines(node), fill(node), onZoom(node), onLook(node or null).
 * Nodes are {index, value, parent, children}; the indices of a tree are all different.
 */
export function makeFlame(options) {
	const prefix = `flame${nFlames++}-`;
	const canvas = element("div", {className: "canvas", attributes: {"aria-hidden": "true"}});
	const focus = element("div", {className: "focus", attributes: {"aria-hidden": "true"}});
	const items = element("div", {className: "unseen", attributes: {role: "presentation"}});
	const host = element("div", {className: "graph", tabIndex: 0, onkeydown: onKey, onfocus: () => look(current),
		attributes: {role: "tree", "aria-label": options.label}}, canvas, focus, items);
	const drawnOf = new Map(); /* by index: the node that d3-flame-graph keeps for ours */
	let chart, root, current, zoomed, inverted = false;

	/* ---- Drawing ---- */

	function makeChart() {
		return flamegraph().cellHeight(CELL).minFrameSize(0.5).sort(false).resetHeightOnZoom(true)
			.transitionDuration(stillness.matches ? 0 : 200).inverted(inverted).width(canvas.clientWidth)
			.setLabelHandler(d => options.lines(d.data).join("\n"))
			.setDetailsHandler(text => { if (text === null) options.onLook(null); })
			.getName(d => options.name(d.data))
			.setColorMapper(d => options.fill(d.data))
			.onHover(d => options.onLook(d.data))
			.onClick(d => { if (d.data !== zoomed) options.onZoom(d.data); });
	}

	function draw(tree) {
		root = current = zoomed = tree;
		chart = makeChart();
		drawnOf.clear();
		canvas.replaceChildren();
		select(canvas).datum(tree).call(chart);
		select(canvas).datum().each(drawn => drawnOf.set(drawn.data.index, drawn));
		tell();
	}

	/* The outermost caller stays in sight: that of a flame graph at the bottom, that of an icicle at the top. */
	function show(node) {
		zoomed = node;
		chart.inverted(inverted);
		chart.zoomTo(drawnOf.get(node.index));
		if (!isShown(current))
			current = node;
		tell();
	}

	const isShown = node => drawnOf.get(node.index).value > 0 || node === root;

	/* ---- Where the focus is ---- */

	function placeFocus() {
		const drawn = drawnOf.get(current.index);
		focus.style.left = `${drawn.x0 * chart.width()}px`;
		focus.style.width = `${(drawn.x1 - drawn.x0) * chart.width()}px`;
		focus.style.top = `${inverted ? drawn.depth * CELL : chart.height() - (drawn.depth + 1) * CELL}px`;
	}

	const shownChildren = node => node.children.filter(isShown);
	const siblingsOf = node => node.parent ? shownChildren(node.parent) : [node];

	function item(node, level, siblings) {
		const children = shownChildren(node);
		const attributes = {role: "treeitem", "aria-level": level, "aria-posinset": siblings.indexOf(node) + 1, "aria-setsize": siblings.length,
			"aria-selected": String(node === zoomed)};
		if (children.length)
			attributes["aria-expanded"] = "true";
		return element("div", {id: prefix + node.index, textContent: options.words(node), attributes});
	}

	const near = (list, at) => list.slice(Math.max(0, at - NEAR), at + NEAR + 1);

	function tell() {
		const callers = [];
		for (let node = current.parent; node; node = node.parent)
			callers.unshift(node);
		const level = callers.length + 1, siblings = siblingsOf(current), children = shownChildren(current);
		items.replaceChildren(...callers.map((node, i) => item(node, i + 1, siblingsOf(node))),
			...near(siblings, siblings.indexOf(current)).flatMap(node => [item(node, level, siblings),
				...(node === current ? near(children, 0).map(child => item(child, level + 1, children)) : [])]));
		host.setAttribute("aria-activedescendant", prefix + current.index);
		placeFocus();
	}

	function look(node) {
		current = node;
		tell();
		options.onLook(current);
		focus.scrollIntoView({block: "nearest", inline: "nearest"});
	}

	/* ---- Keys ---- */

	const widest = nodes => nodes.reduce((best, node) => !best || node.value > best.value ? node : best, null);

	function beside(step) {
		const siblings = siblingsOf(current);
		return siblings[siblings.indexOf(current) + step];
	}

	const targets = {
		ArrowUp: () => inverted ? current.parent : widest(shownChildren(current)),
		ArrowDown: () => inverted ? widest(shownChildren(current)) : current.parent,
		ArrowLeft: () => beside(-1),
		ArrowRight: () => beside(1),
		Home: () => root,
	};

	function onKey(event) {
		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key === "Enter" || event.key === " ") {
			event.preventDefault();
			options.onZoom(current);
		} else if (Object.hasOwn(targets, event.key)) {
			event.preventDefault();
			const target = targets[event.key]();
			if (target)
				look(target);
		}
	}

	return {
		host, draw, show, look, isShown,
		current: () => current,
		invert(is) { inverted = is; },
		repaint() { show(zoomed); },
		resize() {
			if (!chart || canvas.clientWidth === 0)
				return;
			chart.width(canvas.clientWidth);
			show(zoomed);
		},
		/* The side of the root, and what is zoomed into. */
		scroll(view) {
			view.scrollTop = inverted ? 0 : view.scrollHeight;
			focus.scrollIntoView({block: "nearest", inline: "nearest"});
		},
	};
}
