/* svg_script.js - zoom, search and details for a flame graph.
 *
 * Without it the picture is complete but still. The frames come callers
 * first, so what a frame calls is the run of deeper frames behind it.
 */
"use strict";
(() => {
	const MARGIN = 10, HEAD_HEIGHT = 56, CONTROLS_WIDTH = 400;
	const COLUMN = 6.63, PADDING = 3, MIN_COLUMNS = 3, MIN_WIDTH = 0.1;
	const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";

	const svg = document.currentScript.ownerSVGElement;
	const standalone = svg === document.documentElement;
	const head = svg.querySelector(".head");
	const legend = svg.querySelector(".legend");
	const note = svg.querySelector(".note");
	const summary = note.textContent;
	const frames = Array.from(svg.querySelector(".frames").children, readFrame);
	const indices = new Map(frames.map((frame, index) => [frame.group, index]));
	const drawnWidth = svg.viewBox.baseVal.width;
	let width = drawnWidth;
	let zoomed = 0;

	function readFrame(group) {
		const rect = group.querySelector("rect");
		const [name, ...rest] = group.querySelector("title").textContent.split("\n");
		return {
			group, rect, name,
			share: rest.pop(),
			place: rest.join(" "),
			text: group.querySelector("text"),
			x: Number(rect.getAttribute("x")),
			y: Number(rect.getAttribute("y")),
			width: Number(rect.getAttribute("width")),
			end: 0, /* index behind the last frame called from here */
		};
	}

	function findEnds() {
		const open = [];
		frames.forEach((frame, index) => {
			while (open.length && frame.y >= open[open.length - 1].y)
				open.pop().end = index;
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
		frame.text.textContent = cut(frame.name, columns);
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
		legend.setAttribute("transform", `translate(${width - drawnWidth},0)`);
		panel.setAttribute("x", width - MARGIN - CONTROLS_WIDTH);
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

	function describe(frame) {
		const columns = Math.floor((width - 3 * MARGIN - CONTROLS_WIDTH) / COLUMN);
		const words = [frame.share, frame.name, frame.place].filter(Boolean).join("  ·  ");
		note.textContent = cut(words, columns);
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
	}

	function zoom(index) {
		if (index === zoomed)
			return;
		zoomed = index;
		layout();
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
		width = Math.max(400, svg.getBoundingClientRect().width);
		layout();
	}

	function element(name, properties) {
		return Object.assign(document.createElementNS(HTML, name), properties);
	}

	const input = element("input", {
		type: "search", placeholder: "Search (Ctrl-F)", title: "A regular expression on names, files and modules",
		oninput: () => search(input.value),
	});
	const matched = element("span", {className: "matched"});
	const reset = element("button", {textContent: "Reset zoom", title: "Esc", onclick: () => zoom(0)});
	const bar = element("div", {className: "controls"});
	const panel = document.createElementNS(SVG, "foreignObject");

	findEnds();
	bar.append(matched, reset, input);
	panel.setAttribute("y", 28);
	panel.setAttribute("width", CONTROLS_WIDTH);
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
		if (index === undefined)
			note.textContent = summary;
		else
			describe(frames[index]);
	});
	if (!standalone) {
		layout();
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
