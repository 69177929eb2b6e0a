// SPDX-License-Identifier: MIT
// chart.js - small charts as SVG: lines over a number, and bars of categories. The numbers stand in a table beside them.
import { element } from "../../export/html/dom.js";
import { number } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes, ...children) {
	const made = document.createElementNS(SVG, name);

	Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
	made.append(...children);
	return made;
}

/* @points: [[x, y]...], by x. @label: what a screen reader says. Fills the width of its parent. */
export function spark(points, label, height = 32) {
	const xs = points.map(([x]) => x);
	const ys = points.map(([, y]) => y);
	const left = Math.min(...xs);
	const width = Math.max(...xs) - left || 1;
	const top = Math.max(...ys) || 1;
	const at = ([x, y]) => `${((x - left) / width * 100).toFixed(2)},${((1 - Math.max(y, 0) / top) * 28 + 2).toFixed(2)}`;
	const line = points.map(at).join(" ");

	return svg("svg", { class: "spark", viewBox: "0 0 100 32", preserveAspectRatio: "none", height, role: "img", "aria-label": label },
		svg("polygon", { points: `0,32 ${line} 100,32` }), svg("polyline", { points: line }));
}

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
	return numeric(first) ? lines(first, values.slice(0, 4), rows) : bars(first, values[0], rows.slice(0, 30));
}

function lines(first, values, rows) {
	const byFirst = [...rows].sort((a, b) => a[first] - b[first]);

	return element("div", { className: "charts" }, ...values.map((name) => {
		const points = byFirst.filter((row) => row[first] !== null && row[name] !== null).map((row) => [row[first], row[name]]);
		const ys = points.map(([, y]) => y);
		const words = `${number(Math.min(...ys))} to ${number(Math.max(...ys))}`;

		return element("figure", {}, element("figcaption", { textContent: `${name} by ${first}: ${words}` }),
			spark(points, `${name} by ${first}, ${words}`, 120));
	}));
}

function bars(first, name, rows) {
	const top = Math.max(...rows.map((row) => row[name] || 0)) || 1;

	return element("div", { className: "bars", attributes: { role: "img", "aria-label": `${name} by ${first}, as in the table` } },
		...rows.flatMap((row) => {
			const bar = element("span", { className: "bar" });

			bar.style.setProperty("--share", `${Math.max(row[name] || 0, 0) / top * 100}%`);
			return [element("span", { className: "of", textContent: String(row[first]), title: String(row[first]) }), bar,
				element("span", { className: "value", textContent: row[name] === null ? "" : number(row[name]) })];
		}));
}
