/* SPDX-License-Identifier: MIT */
/* sources.js - sources with the time of each line. Their text is only ever text. */
import {percent} from "./data.js";
import {element} from "./dom.js";

export function makeSources(sources, onPick) {
	const picker = element("select", {onchange: () => onPick(picker.selectedIndex), attributes: {"aria-label": "Source file"}},
		...sources.files.map(file => element("option", {textContent: file.file})));
	const about = element("p", {className: "about"});
	const body = element("tbody", {});
	const caption = element("caption", {className: "unseen"});
	const host = element("div", {className: "view sources"}, picker, about, element("table", {}, caption,
		element("thead", {}, element("tr", {}, ...["Line", "Self", "Total", "Source"].map(words => element("th", {scope: "col", textContent: words})))), body));
	const whole = sources.weight;
	let at = -1;

	function amount(value) {
		const cell = element("td", {className: "amount", textContent: value ? percent(value, whole) : ""});
		cell.style.setProperty("--share", `${value / (whole || 1) * 100}%`);
		return cell;
	}

	function line(one, before) {
		const row = element("tr", {id: `line-${one.line}`}, element("th", {scope: "row", textContent: one.line}), amount(one.self), amount(one.total),
			element("td", {className: "text", textContent: one.text === null ? "(not there any more)" : one.text}));
		row.classList.toggle("gap", before !== undefined && one.line > before + 1);
		row.classList.toggle("hot", one.total > 0);
		return row;
	}

	function show(file, number) {
		const {lines, newer, self, source} = sources.files[file];
		if (at !== file)
			body.replaceChildren(...lines.map((one, i) => line(one, i > 0 ? lines[i - 1].line : undefined)));
		at = file;
		picker.selectedIndex = file;
		caption.textContent = `Lines of ${sources.files[file].file}`;
		about.textContent = [`self ${percent(self, whole)} of all threads`, source === null ? "its source was not found" : "",
			newer ? "changed after the recording began: lines may be others" : ""].filter(Boolean).join(" · ");
		body.querySelectorAll(".here").forEach(row => row.classList.remove("here"));
		const here = number > 0 ? document.getElementById(`line-${number}`) : null;
		if (here) {
			here.classList.add("here");
			here.scrollIntoView({block: "center"});
		}
	}

	/* Which file, -1: none. */
	const find = path => sources.files.findIndex(file => file.file === path);

	return {host, show, find};
}
