/* SPDX-License-Identifier: MIT */
/* svg_checks.js - runs inside a flame graph, behind its own script, and uses it as a reader would.
 * What went wrong ends up in a desc element of class "checks", for svg_test.py to read. */
"use strict";
(async () => {
	const failures = [];
	const svg = document.documentElement;
	const groups = [...svg.querySelectorAll(".frames > g")];
	const input = svg.querySelector(".controls input");
	const reset = svg.querySelector(".controls button");
	const matched = svg.querySelector(".controls .matched");
	const note = svg.querySelector(".note");

	const check = (good, what) => { if (!good) failures.push(what); };
	const near = (a, b) => Math.abs(a - b) < 0.5;
	const rectOf = group => group.querySelector("rect");
	const number = (group, name) => Number(rectOf(group).getAttribute(name));
	const nameOf = group => group.querySelector("title").textContent.split("\n")[0];
	const placeOf = group => group.querySelector("title").textContent.split("\n").slice(1, -1).join(" ");
	const isShown = group => group.style.display !== "none";
	const later = () => new Promise(resolve => setTimeout(resolve, 50));
	const snapshot = () => groups.map(g =>
		isShown(g) ? `${number(g, "x").toFixed(2)} ${number(g, "width").toFixed(2)}` : "hidden").join();
	const press = (key, more) => 
		window.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true, ...more}));
	const click = element => element.dispatchEvent(new MouseEvent("click", {bubbles: true}));
	const type = text => { input.value = text; input.dispatchEvent(new Event("input", {bubbles: true})); };
	const full = number(groups[0], "width");

	function checkTexts(when) {
		for (const group of groups.filter(isShown)) {
			const text = group.querySelector("text");
			if (text && text.getComputedTextLength() > number(group, "width"))
				check(false, `${when}: text wider than its box: ${text.textContent}`);
		}
	}

	function checkTitles() {
		for (const group of groups) {
			const lines = group.querySelector("title").textContent.split("\n");
			check(lines.length >= 2 && lines[0] !== "", `a title without a name: ${lines}`);
			check(/^[0-9.]+ % · \d+ samples?/.test(lines[lines.length - 1]), `a title without a share: ${lines}`);
		}
	}

	/* The frame with most under it that is not as wide as the picture. */
	function findTarget() {
		const inside = group => groups.filter(other => number(other, "y") < number(group, "y") &&
			number(other, "x") >= number(group, "x") - 1e-6 &&
			number(other, "x") + number(other, "width") <= number(group, "x") + number(group, "width") + 1e-6);
		const narrow = groups.filter(g => number(g, "width") < 0.95 * full && number(g, "width") > 1);
		const sized = narrow.slice(0, 300).map(group => ({group, inside: inside(group)}));
		sized.sort((a, b) => b.inside.length - a.inside.length);
		return sized[0];
	}

	function checkZoom(target) {
		const width = number(target.group, "width");
		const child = target.inside.find(g => number(g, "width") > 0.2 * width) || target.inside[0];
		const share = child && number(child, "width") / width;
		click(rectOf(target.group));
		check(near(number(target.group, "width"), full), "zoom: the frame is not as wide as the picture");
		check(near(number(target.group, "x"), number(groups[0], "x")), "zoom: the frame does not start at the left");
		check(near(number(groups[0], "width"), full) && groups[0].matches(".outer"), "zoom: the root is not kept as a caller");
		check(!child || near(number(child, "width"), share * full), "zoom: what it calls has not grown with it");
		for (const group of groups.filter(isShown))
			check(number(group, "x") + number(group, "width") < full + number(groups[0], "x") + 0.5,
				`zoom: a box stands out: ${nameOf(group)}`);
		check(getComputedStyle(reset).visibility === "visible", "zoom: no button to reset it");
		check(location.hash.includes("zoom="), "zoom: not in the address");
		checkTexts("zoomed");
	}

	function expectedShare(pattern) {
		const spans = groups.slice(1).filter(g => pattern.test(nameOf(g)) || pattern.test(placeOf(g).split("/").pop()))
			.map(g => [number(g, "x"), number(g, "x") + number(g, "width")]).sort((a, b) => a[0] - b[0]);
		let covered = 0, end = 0;
		for (const [from, to] of spans) {
			covered += Math.max(0, to - Math.max(from, end));
			end = Math.max(end, to);
		}
		return covered / full * 100;
	}

	function checkSearch(name) {
		const literal = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
		const pattern = new RegExp(literal, /[A-Z]/.test(literal) ? "" : "i");
		type(literal);
		const hits = groups.filter(g => g.matches(".hit"));
		check(hits.some(g => nameOf(g) === name), "search: the wanted frame is not marked");
		check(hits.every(g => pattern.test(nameOf(g)) || pattern.test(placeOf(g))), "search: a wrong frame is marked");
		const found = parseFloat(matched.textContent.replace("matched ", ""));
		check(Math.abs(found - expectedShare(pattern)) < 0.02,
			`search: ${matched.textContent}, but ${expectedShare(pattern)} % is covered`);
		check(location.hash.includes("search="), "search: not in the address");
		type("(");
		check(input.matches(".bad") && !svg.querySelector(".hit"), "search: half a pattern is not refused");
		type("");
		check(!svg.querySelector(".hit") && matched.textContent === "", "search: the marks stay");
	}

	function checkKeys(target, before) {
		check(!press("f", {ctrlKey: true}), "Ctrl-F is left to the browser");
		check(document.activeElement === input, "Ctrl-F does not lead to the search field");
		type("a");
		click(rectOf(target.group));
		press("Escape");
		check(snapshot() === before && input.value === "", "Esc does not reset");
	}

	function checkDetails(group) {
		const summary = note.textContent;
		rectOf(group).dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
		check(note.textContent.includes(nameOf(group).slice(0, 10)), "details: no name");
		check(note.textContent.includes(" % · "), "details: no share");
		svg.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
		check(note.textContent === summary, "details: they stay");
	}

	async function checkAddress(target, before) {
		const index = groups.indexOf(target.group);
		location.hash = `#zoom=${index}`;
		await later();
		check(near(number(target.group, "width"), full), "address: not followed");
		for (const wrong of ["#zoom=-1", "#zoom=999999999", "#zoom=x&search=%E0", "#"]) {
			location.hash = wrong;
			await later();
			check(snapshot().length > 0 && near(number(groups[0], "width"), full), `address: ${wrong} breaks the view`);
		}
		type("");
		await later();
		check(snapshot() === before, "address: the view does not come back");
	}

	function checkScroll() {
		window.scrollTo(0, 10000);
		/* The real event comes with the next painted frame, and nothing is painted here. */
		window.dispatchEvent(new Event("scroll"));
		const top = svg.querySelector(".head .page").getBoundingClientRect().top;
		check(Math.abs(top) < 1, `the head is ${top} pixels away from the window's top`);
	}

	async function checkAll() {
		const before = snapshot();
		const target = findTarget();
		check(groups.length > 1, "nothing but the root");
		checkTitles();
		checkTexts("at first");
		check(getComputedStyle(reset).visibility === "hidden", "a button to reset no zoom");
		if (target) {
			checkZoom(target);
			click(reset);
			check(snapshot() === before, "reset: not as before");
			checkSearch(nameOf(target.group));
			checkKeys(target, before);
			checkDetails(target.group);
			await checkAddress(target, before);
		} else {
			check(false, "no frame to zoom into");
		}
		checkScroll();
		check(performance.getEntriesByType("resource").length === 0, "something was fetched");
	}

	try {
		await checkAll();
	} catch (error) {
		failures.push(`the checks broke off: ${error.stack}`);
	}
	const result = document.createElementNS("http://www.w3.org/2000/svg", "desc");
	result.setAttribute("class", "checks");
	result.textContent = JSON.stringify({frames: groups.length, failures});
	svg.append(result);
})();
