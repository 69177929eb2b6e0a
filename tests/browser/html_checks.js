/* SPDX-License-Identifier: MIT */
/* html_checks.js - runs inside an HTML flame graph, behind its own script, and uses it as a reader would.
 * What went wrong ends up in a p element of class "checks", for html_test.py to read. */
"use strict";
(async () => {
	const failures = [];
	const errors = [];
	addEventListener("error", event => errors.push(event.message));
	addEventListener("securitypolicyviolation", event => errors.push(`refused: ${event.blockedURI}`));

	const data = JSON.parse(document.getElementById("profile").textContent);
	const {label, up} = data.nodes;
	const value = data.nodes.value || sumCells();
	const graph = document.querySelector(".graph");
	const input = document.querySelector(".controls input");
	const colours = document.querySelector(".controls .colours");
	const reset = document.querySelector(".controls .reset");
	const icicle = document.querySelector(".controls .icicle");
	const HIT = "#ff5fb0";
	const matched = document.querySelector(".matched");
	const note = document.querySelector(".note");

	function sumCells() {
		const sums = up.map(() => 0);
		let node = 0;
		data.cells.node.forEach((step, i) => { sums[node += step] += data.cells.value[i]; });
		for (let i = up.length - 1; i > 0; i--)
			sums[i - up[i]] += sums[i];
		return sums;
	}

	/* Of a comparison other things are told, by other colours. */
	const told = data.diff ? /^[0-9.]+ % · .+, was .+: (new|[-+][0-9.]+ %)/ : /^[0-9.]+ % · \d+ samples?/;
	const schemes = data.diff ? ["change", "module"] : ["kind", "module", "verdict", "GIL"];

	const check = (good, what) => { if (!good) failures.push(what); };
	const near = (a, b) => Math.abs(a - b) < 1.5;
	const later = () => new Promise(resolve => setTimeout(resolve, 900)); /* behind all transitions */
	const boxes = () => [...graph.querySelectorAll("g.frame")];
	const titleOf = box => box.querySelector("title").textContent.split("\n");
	const placeOf = box => box.querySelector("rect").getBoundingClientRect();
	const colourOf = box => box.querySelector("rect").getAttribute("fill");
	const nameOf = index => data.strings[data.labels.text[label[index]] - 1];
	const callerOf = index => index - up[index];
	const boxOf = name => boxes().find(box => titleOf(box)[0] === name);
	const full = () => placeOf(boxes()[0]).width;
	const snapshot = () => boxes().map(box => `${titleOf(box)[0]} ${placeOf(box).x.toFixed(0)} ${placeOf(box).width.toFixed(0)}`).sort().join();
	const click = element => element.dispatchEvent(new MouseEvent("click", {bubbles: true}));
	const type = text => { input.value = text; input.dispatchEvent(new Event("input", {bubbles: true})); };
	const choose = name => { colours.value = name; colours.dispatchEvent(new Event("change", {bubbles: true})); };
	const press = (key, more) => dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true, ...more}));

	/* As wide as its share, above its caller, and within it. */
	function checkDrawing() {
		const wide = value.map((one, i) => i).filter(i => value[i] / value[0] > 0.01);
		check(wide.length > 3, "nothing to look at");
		check(near(full(), graph.clientWidth), `the root is not as wide as the page: ${full()}, ${graph.clientWidth}`);
		for (const i of wide) {
			const found = boxes().filter(box => titleOf(box)[0] === nameOf(i) && near(placeOf(box).width, value[i] / value[0] * full()));
			check(found.length > 0, `no box for ${nameOf(i)} of ${value[i]}`);
		}
		for (const box of boxes()) {
			const lines = titleOf(box);
			check(lines.some(line => told.test(line)), `a title without a share: ${lines}`);
		}
		if (data.diff)
			return;
		check(boxes().some(box => titleOf(box).some(line => /\.py:\d+/.test(line))), "no title with file and line");
		check(boxes().some(box => titleOf(box).some(line => /^verdict: \w+ [0-9.]+ %/.test(line))), "no title with verdicts");
	}

	/* The heaviest whose name no other has and that is not as wide as the page. */
	function findTarget() {
		const times = new Map();
		label.forEach((_, i) => times.set(nameOf(i), (times.get(nameOf(i)) || 0) + 1));
		return value.map((one, i) => i).filter(i => times.get(nameOf(i)) === 1 && value[i] < 0.95 * value[0])
			.sort((a, b) => value[b] - value[a])[0];
	}

	async function checkZoom(target) {
		const child = value.map((one, i) => i).filter(i => i > target && callerOf(i) === target).sort((a, b) => value[b] - value[a])[0];
		const before = snapshot();
		click(boxOf(nameOf(target)));
		await later();
		check(near(placeOf(boxOf(nameOf(target))).width, full()), "zoom: the frame is not as wide as the page");
		check(near(placeOf(boxes()[0]).width, full()), "zoom: the root is not kept as a caller");
		if (child !== undefined && value[child] / value[target] > 0.1)
			check(boxes().some(box => titleOf(box)[0] === nameOf(child) && near(placeOf(box).width, value[child] / value[target] * full())),
				"zoom: what it calls has not grown with it");
		check(location.hash === `#zoom=${target}`, `zoom: not in the address: ${location.hash}`);
		check(!reset.hidden, "zoom: no button to reset it");
		click(reset);
		await later();
		check(snapshot() === before, "reset: not as before");
		check(reset.hidden, "a button to reset no zoom");
		history.back();
		await later();
		check(near(placeOf(boxOf(nameOf(target))).width, full()), "Back does not lead to the zoom");
		press("Escape");
		await later();
		check(snapshot() === before, "Esc does not reset");
	}

	/* What is inside of a hit is not counted again. */
	function expectedShare(name) {
		const inside = [];
		let sum = 0;
		value.forEach((one, i) => {
			const isInside = i > 0 && inside[callerOf(i)];
			const isHit = i > 0 && nameOf(i) === name;
			if (isHit && !isInside)
				sum += one;
			inside.push(isInside || isHit);
		});
		return sum / value[0] * 100;
	}

	async function checkSearch(name) {
		const before = boxes().map(colourOf).join();
		type(`^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);
		await later();
		const hits = boxes().filter(box => colourOf(box) === HIT);
		check(hits.length > 0 && hits.every(box => titleOf(box)[0] === name), "search: not what was searched for is marked");
		const found = parseFloat(matched.textContent.replace("matched ", ""));
		check(Math.abs(found - expectedShare(name)) < 0.02, `search: ${matched.textContent}, but it is ${expectedShare(name)} %`);
		check(location.hash.includes("search="), "search: not in the address");
		type("(");
		await later();
		check(input.matches(".bad") && !boxes().some(box => colourOf(box) === HIT), "search: half a pattern is not refused");
		type("");
		await later();
		check(boxes().map(colourOf).join() === before && matched.textContent === "", "search: the marks stay");
		check(!press("f", {ctrlKey: true}) && document.activeElement === input, "Ctrl-F does not lead to the search field");
	}

	async function checkColours() {
		const seen = new Map();
		for (const option of colours.options) {
			choose(option.value);
			await later();
			seen.set(option.value, boxes().map(colourOf).join());
			check(option.value === "module" || document.querySelectorAll(".legend svg").length > 1, `colours: no legend for ${option.value}`);
			check(option.value === schemes[0] || location.hash.includes(`colour=${option.value}`), `colours: ${option.value} not in the address`);
		}
		for (const wanted of schemes)
			check(seen.has(wanted), `colours: ${wanted} cannot be chosen`);
		check(new Set(seen.values()).size === seen.size, "colours: two schemes look the same");
		choose(schemes[0]);
		await later();
	}

	/* Red and + is more, striped blue and − less, and of all that took as long as before nothing has either. */
	function checkChanges() {
		const redness = box => {
			if (colourOf(box).startsWith("url(#less"))
				return document.querySelector(colourOf(box).slice(4, -1)).children.length === 2 ? -1 : NaN;
			const [red, , blue] = colourOf(box).match(/#(..)(..)(..)/) ? colourOf(box).match(/[0-9a-f]{2}/g).map(part => parseInt(part, 16))
				: colourOf(box).match(/\d+/g).map(Number);
			return Math.sign(red - blue);
		};
		for (const box of boxes()) {
			const change = titleOf(box).map(line => told.exec(line)).find(Boolean)[1];
			const expected = change === "new" ? 1 : Math.abs(parseFloat(change)) < 0.4 ? 0 : Math.abs(parseFloat(change)) > 0.6 ? Math.sign(parseFloat(change)) : null;
			check(expected === null || redness(box) === expected, `colour ${colourOf(box)} of ${titleOf(box)}`);
			const label = box.querySelector("div"), sign = ["− ", "", "+ "][expected + 1];
			check(expected === null || label.style.display === "none" || label.textContent === sign + titleOf(box)[0], `the sign of ${label.textContent}`);
		}
		check(new Set(data.diff.shade).size > 2, "nothing has changed");
	}

	async function checkIcicle() {
		const root = () => placeOf(boxes()[0]).y;
		const others = () => boxes().slice(1).map(box => placeOf(box).y);
		check(others().every(y => y < root()), "the root is not at the bottom");
		click(icicle);
		await later();
		check(others().every(y => y > root()), `icicle: the root is not at the top: ${root()}, ${Math.min(...others())}`);
		check(location.hash.includes("icicle=1"), "icicle: not in the address");
		click(icicle);
		await later();
		check(others().every(y => y < root()), "icicle: it stays");
	}

	async function checkDetails(target) {
		const summary = document.querySelector(".summary").textContent, hint = note.textContent;
		check(data.diff ? summary === data.diff.note : /^\d+ samples/.test(summary), `no summary: ${summary}`);
		boxOf(nameOf(target)).dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
		check(note.textContent.startsWith(nameOf(target)) && note.textContent.includes(" % · "), `details: ${note.textContent}`);
		boxOf(nameOf(target)).dispatchEvent(new MouseEvent("mouseout", {bubbles: true}));
		check(note.textContent === hint, "details: they stay");
	}

	async function checkAddress() {
		for (const wrong of ["#zoom=-1", "#zoom=999999999", "#zoom=x&search=%E0&colour=toString", "#"]) {
			location.hash = wrong;
			await later();
			check(near(placeOf(boxes()[0]).width, graph.clientWidth), `address: ${wrong} breaks the view`);
		}
	}

	try {
		await later();
		const target = findTarget();
		checkDrawing();
		await checkZoom(target);
		await checkSearch(nameOf(target));
		await checkColours();
		if (data.diff)
			checkChanges();
		await checkIcicle();
		await checkDetails(target);
		await checkAddress();
		check(performance.getEntriesByType("resource").length === 0, "something was fetched");
		check(errors.length === 0, `errors: ${errors}`);
	} catch (error) {
		failures.push(`the checks broke off: ${error.stack}`);
	}
	const result = document.createElement("p");
	result.className = "checks";
	result.textContent = JSON.stringify({frames: value.length, failures});
	document.body.append(result);
})();
