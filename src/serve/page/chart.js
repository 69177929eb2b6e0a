// SPDX-License-Identifier: MIT
// chart.js - what of a result is drawn: lines over a number, and bars of categories. The numbers are in a table beside them.
//
// Bars are rows of text: categories are often long names of functions, which a canvas would cut.
import { element } from "../../export/html/dom.js";
import { number } from "./format.js";
import { lines } from "./libraries/plot.js";

const MAX_LINES = 4;
const MAX_BARS = 30;
const UNIX_S = [1e9, 4e9]; // 2001 to 2096: such numbers are times

/*
 * chart - rows of a result, where they are fit for it: numbers by the first column, a line each, or bars where that is text.
 * @return: an element, or null: there is nothing to draw.
 */
export function chart(columns, rows) {
	const numeric = (name) => rows.every((row) => row[name] === null || typeof row[name] === "number");
	const [first] = columns;
	const values = columns.slice(1).filter((name) => numeric(name) && rows.some((row) => row[name] !== null));

	if (rows.length < 2 || values.length === 0)
		return null;
	return numeric(first) ? linesOf(first, values.slice(0, MAX_LINES), rows) : barsOf(first, values[0], rows.slice(0, MAX_BARS));
}

function linesOf(first, values, rows) {
	const byFirst = rows.filter((row) => row[first] !== null).sort((a, b) => a[first] - b[first]);
	const isTime = byFirst.every((row) => row[first] > UNIX_S[0] && row[first] < UNIX_S[1]);

	return element("div", { className: "charts" }, ...values.map((name) => {
		const points = byFirst.filter((row) => row[name] !== null).map((row) => [row[first], row[name]]);
		const ys = points.map(([, y]) => y);
		const words = `${name} by ${first}: ${number(Math.min(...ys))} to ${number(Math.max(...ys))}`;

		return element("figure", {}, element("figcaption", { textContent: words }), lines(points, [first, name], isTime, words));
	}));
}

function barsOf(first, name, rows) {
	const top = Math.max(...rows.map((row) => row[name] || 0)) || 1;

	return element("div", { className: "bars", attributes: { role: "img", "aria-label": `${name} by ${first}, as in the table` } },
		...rows.flatMap((row) => {
			const bar = element("span", { className: "bar" });

			bar.style.setProperty("--share", `${Math.max(row[name] || 0, 0) / top * 100}%`);
			return [element("span", { className: "of", textContent: String(row[first]), title: String(row[first]) }), bar,
				element("span", { className: "value", textContent: row[name] === null ? "" : number(row[name]) })];
		}));
}
