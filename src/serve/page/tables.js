// SPDX-License-Identifier: MIT
// tables.js - the view of tables: SQL and its result.
import { element } from "../../export/html/dom.js";
import { query } from "./api.js";
import { view } from "./registry.js";
import { change } from "./state.js";
import { fill, scroller } from "./table.js";

const FIRST = {
	process: "SELECT thread, depth, func, file, lineno FROM python.backtrace ORDER BY tid, depth LIMIT 100",
	recording: "SELECT name, count(*) AS n FROM function GROUP BY name ORDER BY n DESC LIMIT 20",
};
const sql = element("textarea", { id: "sql", rows: 4, spellcheck: false, autocomplete: "off" });
const note = element("p", { id: "note", attributes: { role: "status" } });
const result = element("table", { id: "result" });
const form = element("form", { id: "query" }, element("label", { htmlFor: "sql", textContent: "Query (Ctrl+Enter runs it)" }), sql,
	element("button", { type: "submit", textContent: "Run" }));

function say(text, isError) {
	note.textContent = text;
	note.classList.toggle("error", Boolean(isError));
}

async function run(target) {
	say("Running.");
	result.replaceChildren();
	try {
		const { rows, columns, note: sentence } = await query(target, sql.value);

		fill(result, columns, rows.map((row) => Object.values(row)), "Result");
		say(sentence || `${rows.length} row${rows.length === 1 ? "" : "s"}`);
	} catch (error) {
		say(error.message, true);
	}
}

function show(body, state, changed) {
	if (!body.firstChild)
		body.append(form, note, scroller("Result", result));
	form.onsubmit = (event) => {
		event.preventDefault();
		change({ sql: sql.value }, true);
		run(state.target);
	};
	if (state.sql && sql.value !== state.sql) {
		sql.value = state.sql;
		run(state.target);
	} else if (!state.sql && changed.includes("target")) {
		sql.value = FIRST[state.targetInfo.kind];
		result.replaceChildren();
		say("");
	}
}

sql.addEventListener("keydown", (event) => {
	if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
		form.requestSubmit();
});
view({ name: "tables", title: "Tables", show });
