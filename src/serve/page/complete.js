// SPDX-License-Identifier: MIT
// complete.js - completion in a text area: of tables, columns and words of SQL.
//
// The list follows the pattern of an editable field with a list of suggestions: the focus stays in the field, aria-activedescendant
// names the suggestion, Ctrl-Space opens, arrow keys choose, Tab and Enter accept, Escape closes.
import { element } from "../../export/html/dom.js";

const MAX_SHOWN = 12;
const WORDS = ("SELECT FROM WHERE GROUP BY ORDER BY LIMIT HAVING JOIN LEFT JOIN USING ON AS AND OR NOT IN IS NULL LIKE GLOB BETWEEN DISTINCT CASE "
	+ "WHEN THEN ELSE END WITH UNION ALL EXPLAIN DESCRIBE SHOW TABLES count sum avg min max total group_concat round coalesce now interval")
	.split(" ");
const LINE = 19.5; // px: 13 px at 1.5, as style.css has it

/* Tables, then columns of those that the text names, then words; each begins with the prefix. */
export function suggestionsOf(text, prefix, catalogue) {
	const named = [...catalogue].filter(([name]) => new RegExp(`(^|[^\\w.])${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}($|[^\\w.])`).test(text));
	const columns = named.flatMap(([table, list]) => list.map((one) => [one.column_name, [table, one.unit, one.remarks].filter(Boolean).join(" · ")]));
	const tables = [...catalogue.keys()].map((name) => [name, "table"]);
	const all = [...columns, ...tables, ...WORDS.map((word) => [word, ""])];
	const low = prefix.toLowerCase();
	const seen = new Set();

	return all.filter(([word]) => word.toLowerCase().startsWith(low) && word !== prefix && !seen.has(word) && seen.add(word)).slice(0, MAX_SHOWN);
}

/* @catalogue: () -> the tables now: name -> columns. @return: the element that stands for the field. */
export function completing(field, catalogue) {
	const list = element("ul", { id: "suggestions", hidden: true, attributes: { role: "listbox", "aria-label": "Suggestions" } });
	const spoken = element("div", { className: "unseen", attributes: { role: "status" } });
	const probe = element("span", { className: "probe", textContent: "0".repeat(100), attributes: { "aria-hidden": "true" } });
	let shown = [];
	let at = -1;

	field.setAttribute("aria-autocomplete", "list");
	field.setAttribute("aria-controls", list.id);

	const before = () => field.value.slice(0, field.selectionStart);
	const prefixOf = () => /[\w.]*$/.exec(before())[0];

	function close() {
		list.hidden = true;
		field.removeAttribute("aria-activedescendant");
		spoken.textContent = "";
		at = -1;
	}

	function choose(next) {
		at = (next + shown.length) % shown.length;
		[...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
		field.setAttribute("aria-activedescendant", list.children[at].id);
		list.children[at].scrollIntoView({ block: "nearest" });
	}

	function place() {
		const lines = before().split("\n");
		const left = lines[lines.length - 1].length * probe.getBoundingClientRect().width / 100;

		list.style.left = `${Math.max(0, Math.min(left + 10 - field.scrollLeft, field.clientWidth - 240))}px`;
		list.style.top = `${lines.length * LINE + 10 - field.scrollTop}px`;
	}

	function open(isAsked) {
		const prefix = prefixOf();

		shown = prefix || isAsked ? suggestionsOf(field.value, prefix, catalogue()) : [];
		if (shown.length === 0)
			return close();
		list.replaceChildren(...shown.map(([word, about], i) => element("li", { id: `suggestion-${i}`, attributes: { role: "option", "aria-selected": "false" },
			onmousedown: (event) => { event.preventDefault(); accept(i); } }, word, element("span", { className: "soft", textContent: about }))));
		list.hidden = false;
		place();
		spoken.textContent = `${shown.length} suggestions`;
		choose(0);
	}

	function accept(i) {
		const end = field.selectionStart;

		field.setRangeText(shown[i][0], end - prefixOf().length, end, "end");
		close();
		field.dispatchEvent(new Event("change"));
	}

	const keys = {
		ArrowDown: () => choose(at + 1), ArrowUp: () => choose(at - 1), Tab: () => accept(at), Enter: () => accept(at), Escape: close,
	};

	field.addEventListener("keydown", (event) => {
		const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;

		if (event.key === " " && event.ctrlKey)
			open(true);
		else if (!list.hidden && isPlain && Object.hasOwn(keys, event.key))
			keys[event.key]();
		else
			return;
		event.preventDefault();
		event.stopImmediatePropagation();
	});
	field.addEventListener("input", () => open(false));
	field.addEventListener("click", close);
	field.addEventListener("blur", close);
	return element("div", { className: "completing" }, field, list, probe, spoken);
}
