// SPDX-License-Identifier: MIT
// tables.js - the view of tables: an editor for SQL with completion, its results, a chart, downloads, and a history of queries.
// The editor is large, and is loaded when the view is opened.
import { element } from "../../export/html/dom.js";
import { ask, catalogueOf, query } from "./api.js";
import { chart } from "./chart.js";
import { plural } from "./format.js";
import { view } from "./registry.js";
import { change, link } from "./state.js";
import { fill, scroller } from "./table.js";

const FIRST = {
	process: "SELECT thread, depth, func, file, lineno FROM python.backtrace ORDER BY tid, depth LIMIT 100",
	fleet: "SHOW TABLES",
	recording: "SELECT name, kind, self_share, total_share, file FROM hot_function ORDER BY self_share DESC LIMIT 20",
};
const KEY = "probing.queries";
const MAX_HISTORY = 50;
const MAX_DRAWN = 1000; // rows, before the button for all

let sql = null; // the editor, once it is loaded
let loading = null;
let target = "";
let results = [];
let turn = 0;

/* ---- History: in this browser, never sent ---- */

function readHistory() {
	try {
		const list = JSON.parse(localStorage.getItem(KEY) || "[]");

		return Array.isArray(list) ? list.filter((one) => typeof one === "string") : [];
	} catch {
		return []; // no storage in this browser, or not ours
	}
}

function remember(text) {
	const list = [text, ...readHistory().filter((one) => one !== text)].slice(0, MAX_HISTORY);

	try {
		localStorage.setItem(KEY, JSON.stringify(list));
	} catch {
		return; // private windows may have no storage
	}
	showHistory();
}

function showHistory() {
	const list = readHistory();

	past.replaceChildren(element("option", { value: "", textContent: "History" }),
		...list.map((text) => element("option", { value: text, textContent: text.replace(/\s+/g, " ").slice(0, 100) })));
	past.disabled = list.length === 0;
}

/* ---- The editor ---- */

const LABEL = "SQL: Ctrl-Enter runs it, Ctrl-Space completes, Escape then Tab leaves it";
const note = element("p", { id: "note", attributes: { role: "status" } });
const past = element("select", { attributes: { "aria-label": "History" }, onchange: () => {
	if (past.value)
		sql.value = past.value;
	past.value = "";
	sql.focus();
} });
const chartButton = element("button", { type: "button", textContent: "Chart", onclick: () => change({ chart: chartButton.ariaPressed === "true" ? "" : "1" }, true) });
const csvButton = element("button", { type: "button", textContent: "CSV", title: "Download as CSV", onclick: () => download("csv") });
const jsonButton = element("button", { type: "button", textContent: "JSON", title: "Download as JSON", onclick: () => download("json") });
const arrowButton = element("button", { type: "button", textContent: "Arrow", title: "Download as Arrow IPC, for pandas, polars or DuckDB", onclick: () => download("arrow") });
const copyButton = element("button", { type: "button", textContent: "Copy link", onclick: copyLink });
const form = element("form", { id: "query" }, element("p", { className: "soft", textContent: LABEL, onclick: () => sql.focus() }),
	element("div", { className: "controls" }, element("button", { type: "submit", textContent: "Run" }), past, chartButton, csvButton, jsonButton, arrowButton, copyButton));
const output = element("div", { className: "output" });
const list = element("div", { className: "catalogue" });
const side = element("div", { className: "side", attributes: { role: "region", "aria-label": "Catalogue" } }, element("h3", { textContent: "Tables" }), list);

function say(text, isError) {
	note.textContent = text;
	note.classList.toggle("error", Boolean(isError));
}

async function loadEditor() {
	const { makeEditor } = await import("./libraries/editor.js");

	sql = Object.assign(makeEditor(LABEL, () => form.requestSubmit()), { id: "sql" });
	form.firstChild.after(sql);
}

function columnsOf(columns) {
	return element("ul", {}, ...columns.map(({ column_name: name, unit, remarks }) => element("li", { title: remarks || "" }, name,
		element("span", { className: "soft", textContent: [unit, remarks].filter(Boolean).join(" · ") }))));
}

function tableEntry([name, columns]) {
	const made = element("details", {}, element("summary", { textContent: name }));

	made.addEventListener("toggle", () => {
		if (made.open && made.children.length === 1)
			made.append(element("a", { textContent: "Show rows", href: link({ view: "tables", sql: `SELECT * FROM ${name} LIMIT 100` }) }), columnsOf(columns));
	});
	return made;
}

async function showCatalogue(kind) {
	const mine = target;

	try {
		const found = await catalogueOf(mine, kind);

		if (mine !== target)
			return;
		sql.setCatalogue(found);
		list.replaceChildren(...[...found].sort(([a], [b]) => a < b ? -1 : 1).map(tableEntry));
	} catch (error) {
		list.replaceChildren(element("p", { className: "error", textContent: error.message }));
	}
}

/* ---- Results ---- */

function resultOf({ rows, columns }, isCharted) {
	const table = element("table", { className: "result" });
	const draw = (n) => fill(table, columns, rows.slice(0, n).map((row) => columns.map((name) => row[name])), "Result");
	const all = element("button", { type: "button", textContent: `Show all ${rows.length.toLocaleString("en")} rows`, onclick: () => { draw(rows.length); all.remove(); } });
	const drawn = isCharted ? chart(columns, rows) : null;

	draw(MAX_DRAWN);
	return element("div", {}, ...(drawn ? [drawn] : isCharted && rows.length ? [element("p", { className: "soft",
		textContent: "No chart: it needs two rows, and a number behind the first column." })] : []), scroller("Result", table), ...(rows.length > MAX_DRAWN ? [all] : []));
}

function showResults(state) {
	chartButton.ariaPressed = String(Boolean(state.chart));
	csvButton.disabled = jsonButton.disabled = arrowButton.disabled = chartButton.disabled = results.length === 0;
	output.replaceChildren(...results.filter((one) => one.rows.length > 0).map((one) => resultOf(one, state.chart)));
}

async function run(state) {
	const mine = ++turn;

	say("Running.");
	results = [];
	showResults(state);
	try {
		const start = performance.now();
		const answer = await query(target, sql.value);

		if (mine !== turn)
			return;
		results = answer.results;
		say(answer.note || `${results.map(({ rows }) => plural(rows.length, "row")).join(", ") || "No result"} in ${Math.round(performance.now() - start)} ms`);
	} catch (error) {
		if (mine === turn)
			say(error.message, true);
	}
	showResults(state);
}

const FILES = { csv: ["text/csv", "csv"], json: ["application/json", "json"], arrow: ["application/vnd.apache.arrow.stream", "arrows"] };

/* The same answer again, as a file: the server writes all formats, and sends long ones while it does. */
async function download(format) {
	const [accept, suffix] = FILES[format];

	try {
		const response = await ask("/query", { target, stream: 1 }, { method: "POST", body: sql.value, headers: { Accept: accept } });
		const address = URL.createObjectURL(await response.blob());

		element("a", { href: address, download: `query.${suffix}` }).click();
		setTimeout(() => URL.revokeObjectURL(address), 1000);
	} catch (error) {
		say(error.message, true);
	}
}

async function copyLink() {
	try {
		await navigator.clipboard.writeText(new URL(link({ sql: sql.value }), location.href).href);
		say("The link is copied.");
	} catch {
		say("The browser does not let this page copy: take the link from its address bar.", true);
	}
}

async function show(body, state, changed) {
	loading ||= loadEditor();
	await loading.catch((error) => {
		loading = null; // once more when the view is opened again
		throw error;
	});
	if (!body.firstChild) {
		body.append(element("div", { className: "columns" }, element("div", { className: "wide" }, form, note, output), side));
		showHistory();
	}
	form.onsubmit = (event) => {
		event.preventDefault();
		remember(sql.value);
		change({ sql: sql.value }, true);
		run({ ...state, sql: sql.value });
	};
	if (changed.includes("target")) {
		target = state.target;
		sql.setCatalogue(new Map());
		list.replaceChildren();
		showCatalogue(state.targetInfo.kind);
	}
	if (changed.includes("target") || (changed.includes("sql") && state.sql && state.sql !== sql.value)) {
		sql.value = state.sql || FIRST[state.targetInfo.kind];
		return run(state);
	}
	return changed.includes("chart") ? showResults(state) : null;
}

view({ name: "tables", title: "Tables", kinds: ["process", "recording", "fleet"], show });
