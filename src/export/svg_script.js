/* SPDX-License-Identifier: MIT */
/* svg_script.js - zoom, search, keys and details for a flame graph.
 *
 * Without it the picture is complete but still. The frames come callers
 * first, so what a frame calls is the run of deeper frames behind it.
 */
"use strict";
(() => {
	const MARGIN = 10, HEAD_HEIGHT = 56, CONTROLS_WIDTH = 400, ROW = 22, MIN_PAGE_WIDTH = 320;
	const COLUMN = 6.63, PADDING = 3, MIN_COLUMNS = 3, MIN_WIDTH = 0.1;
	const SIGNS = {l: "− ", m: "+ "}; /* of classes in a comparison: less, more */
	const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";

	const svg = document.currentScript.ownerSVGElement;
	const standalone = svg === document.documentElement;
	const head = svg.querySelector(".head");
	const legend = svg.querySelector(".legend");
	const note = svg.querySelector(".note");
	const summary = note.textContent;
	const heading = svg.querySelector(".name");
	const title = svg.querySelector("title").textContent;
	const picture = svg.querySelector(".frames");
	const frames = Array.from(picture.children, readFrame);
	const indices = new Map(frames.map((frame, index) => [frame.group, index]));
	const drawnWidth = svg.viewBox.baseVal.width, drawnHeight = svg.viewBox.baseVal.height;
	let width = drawnWidth;
	let zoomed = 0, focused = 0;

	function readFrame(group) {
		const rect = group.querySelector("rect");
		const [name, ...rest] = group.querySelector("title").textContent.split("\n");
		return {
			group, rect, name,
			sign: SIGNS[rect.classList[0][0]] || "",
			share: rest.pop(),
			place: rest.join(" "),
			text: group.querySelector("text"),
			x: Number(rect.getAttribute("x")),
			y: Number(rect.getAttribute("y")),
			width: Number(rect.getAttribute("width")),
			end: 0, /* index behind the last frame called from here */
			caller: -1,
		};
	}

	function findEnds() {
		const open = [];
		frames.forEach((frame, index) => {
			while (open.length && frame.y >= open[open.length - 1].y)
				open.pop().end = index;
			if (open.length)
				frame.caller = indices.get(open[open.length - 1].group);
			open.push(frame);
		});
		open.forEach(frame => { frame.end = frames.length; });
	}

	/* Wide characters (CJK and the like) count twice. */
	function cut(text, columns) {
		let used = 0, kept = "";
		for (const character of text) {
			used += character.codePointAt(0) >= 0x1100 ? 2 : 1;
			if (used > columns)
				return kept.slice(0, -1) + "…";
			kept += character;
		}
		return kept;
	}

	function label(frame, x, w) {
		const columns = Math.floor((w - 2 * PADDING) / COLUMN);
		if (columns < MIN_COLUMNS) {
			if (frame.text)
				frame.text.textContent = "";
			return;
		}
		if (!frame.text) {
			frame.text = document.createElementNS(SVG, "text");
			frame.text.setAttribute("y", frame.y + 12);
			frame.group.append(frame.text);
		}
		frame.text.setAttribute("x", x + PADDING);
		frame.text.textContent = cut(frame.sign + frame.name, columns);
	}

	function place(frame, x, w) {
		frame.group.style.display = w < MIN_WIDTH ? "none" : "";
		if (w < MIN_WIDTH)
			return;
		frame.rect.setAttribute("x", x);
		frame.rect.setAttribute("width", w);
		label(frame, x, w);
	}

	function layout() {
		const full = width - 2 * MARGIN;
		const target = frames[zoomed];
		const scale = full / target.width;
		frames.forEach((frame, index) => {
			const outer = index < zoomed && frame.end > zoomed;
			const inner = index >= zoomed && index < target.end;
			frame.group.classList.toggle("outer", outer);
			if (outer)
				place(frame, MARGIN, full);
			else
				place(frame, MARGIN + (frame.x - target.x) * scale, inner ? frame.width * scale : 0);
		});
		reset.style.visibility = zoomed ? "visible" : "hidden";
	}

	/* The head of a picture that fills a window: what does not fit beside the title and the note gets rows of its own. */
	function arrange() {
		const box = legend.getBBox();
		const isLegendBeside = box.width === 0 || width >= box.width + 420, areControlsBeside = width >= 760;
		const rows = !isLegendBeside + !areControlsBeside, extra = rows * ROW + (rows ? 6 : 0);
		const panelWidth = Math.min(CONTROLS_WIDTH, width - 2 * MARGIN);
		const scale = Math.min(1, (width - 2 * MARGIN) / box.width);
		legend.setAttribute("transform", isLegendBeside ? `translate(${width - drawnWidth},0)` :
			`translate(${MARGIN - box.x * scale},${HEAD_HEIGHT - 2 - box.y * scale}) scale(${scale})`);
		panel.setAttribute("x", areControlsBeside ? width - MARGIN - panelWidth : MARGIN);
		panel.setAttribute("y", areControlsBeside ? 28 : 28 + rows * ROW);
		panel.setAttribute("width", panelWidth);
		bar.style.flexDirection = areControlsBeside ? "" : "row-reverse";
		noteColumns = Math.floor((width - (areControlsBeside ? 3 * MARGIN + panelWidth : 2 * MARGIN)) / COLUMN);
		head.querySelector(".page").setAttribute("height", HEAD_HEIGHT - 2 + extra);
		heading.textContent = title;
		const room = width - 2 * MARGIN - (isLegendBeside && box.width ? box.width + 2 * MARGIN : 0), needed = heading.getComputedTextLength();
		if (needed > room)
			heading.textContent = cut(title, Math.floor([...title].length * room / needed));
		say(null);
		if (standalone) {
			picture.setAttribute("transform", `translate(0,${extra})`);
			svg.setAttribute("height", drawnHeight + extra);
		}
	}

	/* Case matters only where the pattern has a capital letter. */
	function compile(pattern) {
		try {
			return new RegExp(pattern, /[A-Z]/.test(pattern) ? "" : "i");
		} catch (error) {
			return null;
		}
	}

	function mark() {
		const pattern = input.value ? compile(input.value) : null;
		let share = 0, counted = 0;
		input.classList.toggle("bad", input.value !== "" && !pattern);
		frames.forEach((frame, index) => {
			const base = frame.place.split("/").pop();
			const hit = pattern && index > 0 && (pattern.test(frame.name) || pattern.test(base));
			frame.group.classList.toggle("hit", Boolean(hit));
			if (hit && index >= counted) { /* not inside one that was counted */
				share += frame.width / frames[0].width;
				counted = frame.end;
			}
		});
		matched.textContent = pattern ? `matched ${(share * 100).toFixed(2)} %` : "";
	}

	const wordsOf = frame => [frame.share, frame.name, frame.place].filter(Boolean).join("  ·  ");

	/* null: of no frame. */
	function say(frame) {
		note.textContent = cut(frame ? wordsOf(frame) : summary, noteColumns);
	}

	/* ---- Keys: one frame at a time can be reached by Tab, and hands that on. ---- */

	function callees(index) {
		const found = [];
		for (let at = index + 1; at < frames[index].end; at = frames[at].end)
			if (frames[at].group.style.display !== "none")
				found.push(at);
		return found;
	}

	function beside(step) {
		const siblings = focused === 0 ? [0] : callees(frames[focused].caller);
		return siblings[siblings.indexOf(focused) + step];
	}

	const targets = {
		ArrowUp: () => callees(focused).reduce((best, at) => best < 0 || frames[at].width > frames[best].width ? at : best, -1),
		ArrowDown: () => frames[focused].caller,
		ArrowLeft: () => beside(-1),
		ArrowRight: () => beside(1),
		Home: () => 0,
	};

	function focusable(index) {
		for (const name of ["tabindex", "role", "aria-label"])
			frames[focused].group.removeAttribute(name);
		focused = index;
		const frame = frames[focused];
		frame.group.setAttribute("tabindex", "0");
		frame.group.setAttribute("role", "button");
		frame.group.setAttribute("aria-label", `${frame.sign}${frame.name}, ${frame.share}`);
	}

	function onFrameKey(event) {
		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key === "Enter" || event.key === " ") {
			event.preventDefault();
			zoom(focused);
		} else if (Object.hasOwn(targets, event.key)) {
			event.preventDefault();
			const target = targets[event.key]();
			if (target >= 0) {
				focusable(target);
				frames[target].group.focus();
			}
		}
	}

	/* The state stands in the address, so that a view can be bookmarked and Back undoes a zoom. */
	function stateText() {
		const state = new URLSearchParams();
		if (zoomed)
			state.set("zoom", zoomed);
		if (input.value)
			state.set("search", input.value);
		return "#" + state;
	}

	function restore() {
		const state = new URLSearchParams(location.hash.slice(1));
		const wanted = Number(state.get("zoom"));
		zoomed = Number.isInteger(wanted) && wanted > 0 && wanted < frames.length ? wanted : 0;
		input.value = state.get("search") || "";
		layout();
		mark();
		if (frames[focused].group.style.display === "none")
			focusable(zoomed);
	}

	function zoom(index) {
		if (index === zoomed)
			return;
		zoomed = index;
		layout();
		if (frames[focused].group.style.display === "none")
			focusable(zoomed);
		if (standalone)
			location.hash = stateText();
	}

	function search(pattern) {
		input.value = pattern;
		mark();
		if (standalone)
			location.replace(stateText());
	}

	function frameOf(event) {
		return indices.get(event.target.closest(".frames > g"));
	}

	function onKey(event) {
		if (event.key === "Escape") {
			search("");
			input.blur();
			zoom(0);
		} else if (event.key === "f" && (event.ctrlKey || event.metaKey)) {
			event.preventDefault();
			input.focus();
			input.select();
		}
	}

	function onResize() {
		width = Math.max(MIN_PAGE_WIDTH, svg.getBoundingClientRect().width);
		layout();
		arrange();
	}

	function element(name, properties) {
		return Object.assign(document.createElementNS(HTML, name), properties);
	}

	const input = element("input", {
		type: "search", placeholder: "Search (Ctrl-F)", title: "A regular expression on names, files and modules",
		oninput: () => search(input.value), ariaLabel: "Search names, files and modules",
	});
	const matched = element("span", {className: "matched", role: "status"});
	const reset = element("button", {type: "button", textContent: "Reset zoom", title: "Esc", onclick: () => zoom(0)});
	const bar = element("div", {className: "controls"});
	const panel = document.createElementNS(SVG, "foreignObject");
	let noteColumns = Infinity;

	findEnds();
	svg.setAttribute("role", "group");
	svg.setAttribute("aria-label", `Flame graph of ${title}: arrow keys move, Enter zooms, Escape resets`);
	picture.setAttribute("role", "group");
	focusable(0);
	bar.append(matched, reset, input);
	panel.setAttribute("height", HEAD_HEIGHT - 28);
	panel.append(bar);
	head.append(panel);
	svg.addEventListener("click", event => {
		const index = frameOf(event);
		if (index !== undefined)
			zoom(index);
	});
	svg.addEventListener("mouseover", event => {
		const index = frameOf(event);
		say(index === undefined ? null : frames[index]);
	});
	picture.addEventListener("keydown", onFrameKey);
	picture.addEventListener("focusin", () => say(frames[focused]));
	picture.addEventListener("focusout", () => say(null));
	if (!standalone) {
		layout();
		arrange();
		return;
	}
	/* Opened by itself: fill the window, start at the bottom, keep the head in sight. */
	svg.setAttribute("width", "100%");
	svg.removeAttribute("viewBox");
	window.addEventListener("keydown", onKey);
	window.addEventListener("resize", onResize);
	window.addEventListener("hashchange", restore);
	window.addEventListener("scroll", () => head.setAttribute("transform", `translate(0,${window.scrollY})`));
	onResize();
	restore();
	window.scrollTo(0, svg.getBoundingClientRect().height);
})();
