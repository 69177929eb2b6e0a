/* SPDX-License-Identifier: MIT */
/* functions.js - the table of functions: self and total time, sorted by what its heads say, filtered by the search. */
import {percent, placeOf, weightOf} from "./data.js";
import {element} from "./dom.js";

const FIRST = 200; /* rows before the button that shows all */

/* name -> heading, and whether the first of two rows is in front. */
const COLUMNS = {
	self: ["Self", (a, b) => b.self - a.self || b.total - a.total],
	total: ["Total", (a, b) => b.total - a.total || b.self - a.self],
	name: ["Function", (a, b) => a.text < b.text ? -1 : a.text > b.text],
	place: ["Where", (a, b) => a.place < b.place ? -1 : a.place > b.place || b.self - a.self],
};

/* By these, or the other way round: "-self". */
export const sorts = Object.keys(COLUMNS).flatMap(name => [name, `-${name}`]);

export function makeFunctions(profile, {onPick, onSort}) {
	const heads = Object.entries(COLUMNS).map(([name, [words]]) => element("th", {scope: "col", className: name},
		element("button", {type: "button", textContent: words, onclick: () => onSort(sort === name ? `-${name}` : name)})));
	const body = element("tbody", {});
	const count = element("p", {className: "count", attributes: {role: "status"}});
	const more = element("button", {type: "button", onclick: () => fill(Infinity)});
	const host = element("div", {className: "view functions"}, count,
		element("table", {}, element("caption", {className: "unseen", textContent: "Functions with their own time, and with what they call"}),
			element("thead", {}, element("tr", {}, ...heads)), body), more);
	let shown = [], sort = "self", whole = 0;

	function amount(name, value) {
		const cell = element("td", {className: `amount ${name}`, title: weightOf(profile, value)}, element("b", {textContent: percent(value, whole)}),
			element("span", {textContent: weightOf(profile, value, 3) || value}));
		cell.style.setProperty("--share", `${value / (whole || 1) * 100}%`);
		return cell;
	}

	function line(row) {
		const name = element("button", {type: "button", className: "link", textContent: row.text, title: "Callers and callees", onclick: () => onPick(row.label)});
		return element("tr", {}, amount("self", row.self), amount("total", row.total), element("td", {className: "name"}, name),
			element("td", {className: "place", textContent: row.place}));
	}

	function fill(n) {
		body.replaceChildren(...shown.slice(0, n).map(line));
		more.hidden = shown.length <= n;
		more.textContent = `Show all ${shown.length}`;
	}

	/* @rows: of functionsOf(). @all: what 100 % is. */
	function show(rows, all, order, pattern) {
		whole = all;
		sort = order;
		const compare = COLUMNS[order.replace("-", "")][1], sign = order[0] === "-" ? -1 : 1;
		shown = rows.map(row => ({...row, text: profile.labels[row.label].text, place: placeOf(profile.labels[row.label])}))
			.filter(row => row.total > 0 && (!pattern || pattern.test(row.text) || pattern.test(row.place))).sort((a, b) => sign * compare(a, b));
		count.textContent = [`${shown.length} function${shown.length === 1 ? "" : "s"}${pattern ? ` of ${rows.length}` : ""}`,
			profile.functions_left_out ? `${profile.functions_left_out} below 0.005 % left out` : ""].filter(Boolean).join(" · ");
		Object.keys(COLUMNS).forEach((name, i) => {
			const isDown = (name === "self" || name === "total") === (sign > 0);
			if (order.replace("-", "") === name)
				heads[i].setAttribute("aria-sort", isDown ? "descending" : "ascending");
			else
				heads[i].removeAttribute("aria-sort");
		});
		fill(FIRST);
	}

	return {host, show};
}
