// SPDX-License-Identifier: MIT
// table.js - rows as a table. What targets and recordings contain is text: it reaches the page by textContent.
import { element } from "../../export/html/dom.js";

export const textOf = (value) =>
	value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

function cell(value) {
	if (value instanceof Node)
		return element("td", {}, value);
	return element("td", { textContent: textOf(value), className: typeof value === "number" ? "number" : "" });
}

/* @rows: arrays of values, or of elements. @caption: what it shows, for who listens. */
export function fill(table, names, rows, caption) {
	const head = element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col", textContent: name }))));
	const body = element("tbody", {}, ...rows.map((values) => element("tr", {}, ...values.map(cell))));

	table.replaceChildren(...(caption ? [element("caption", { className: "unseen", textContent: caption })] : []), head, body);
	return table;
}

/* A table that scrolls by itself, by keyboard too. */
export function scroller(label, table) {
	return element("div", { className: "scroll", tabIndex: 0, attributes: { role: "region", "aria-label": label } }, table);
}
