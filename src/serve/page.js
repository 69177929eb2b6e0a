// SPDX-License-Identifier: MIT
// page.js - the page of probing serve. What targets and recordings contain is text: it reaches the page by textContent.
"use strict";

const element = (id) => document.getElementById(id);
let targets = [];

const chosen = () => targets[element("target").selectedIndex];
const url = (path, parameters) => path + "?" + new URLSearchParams({ target: chosen().target, ...parameters });

function say(where, text, isError) {
	element(where).textContent = text;
	element(where).classList.toggle("error", Boolean(isError));
}

async function ask(path, options) {
	const response = await fetch(path, options);

	if (response.ok)
		return response;
	const text = await response.text();
	let sentence = text;

	try {
		sentence = JSON.parse(text).error;
	} catch {
		// not ours: shown as it is
	}
	throw new Error(sentence || response.status + " " + response.statusText);
}

// ---- Tables ----

function addCell(row, name, value) {
	const cell = document.createElement(name);

	cell.textContent = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
	if (typeof value === "number")
		cell.className = "number";
	if (name === "th")
		cell.scope = "col";
	row.append(cell);
}

function fill(table, names, rows) {
	const head = document.createElement("thead");
	const body = document.createElement("tbody");

	names.forEach((name) => addCell(head.firstChild || head.appendChild(document.createElement("tr")), "th", name));
	for (const values of rows) {
		const row = body.appendChild(document.createElement("tr"));

		values.forEach((value) => addCell(row, "td", value));
	}
	table.replaceChildren(head, body);
}

// ---- Sections ----

function describe(one) {
	if (one.kind === "process")
		return [one.target, one.kind, one.pid, one.python, one.running ? "running" : "ended", one.command];
	const info = one.info || {};
	const run = (info.runs || [])[0] || {};

	return [one.target, one.kind, run.pid, run.python, one.failure ? one.failure.error : info.samples, run.command];
}

async function showOverview() {
	targets = (await (await ask("/apis/overview")).json()).targets;
	element("target").replaceChildren(...targets.map((one) => new Option(one.target)));
	fill(element("overview"), ["target", "kind", "pid", "python", "state or samples", "command"], targets.map(describe));
	choose();
}

function choose() {
	const isProcess = chosen().kind === "process";

	element("stacks").hidden = !isProcess;
	element("seconds-label").hidden = !isProcess;
	element("graph").hidden = true;
	element("stack").textContent = "";
	element("sql").value = isProcess
		? "SELECT thread, depth, func, file, lineno FROM python.backtrace ORDER BY tid, depth LIMIT 100"
		: "SELECT name, count(*) AS n FROM function GROUP BY name ORDER BY n DESC LIMIT 20";
	if (isProcess)
		showStack();
	else
		draw();
}

function draw() {
	const graph = element("graph");

	say("status", "The flame graph is being made.");
	graph.hidden = false;
	graph.onload = () => say("status", "");
	graph.src = url("/apis/flamegraph", { seconds: element("seconds").value });
}

async function showStack() {
	try {
		element("stack").textContent = await (await ask(url("/apis/pythonext/callstack"))).text();
	} catch (error) {
		say("status", error.message, true);
	}
}

async function runQuery(event) {
	event.preventDefault();
	say("note", "Running.");
	element("result").replaceChildren();
	try {
		const response = await ask(url("/query"), { method: "POST", body: element("sql").value });
		const text = await response.text();
		const rows = text.trim() ? JSON.parse(text) : [];

		fill(element("result"), Object.keys(rows[0] || {}), rows.map((row) => Object.values(row)));
		say("note", response.headers.get("Probing-Note") || rows.length + (rows.length === 1 ? " row" : " rows"));
	} catch (error) {
		say("note", error.message, true);
	}
}

element("target").addEventListener("change", choose);
element("draw").addEventListener("click", draw);
element("refresh").addEventListener("click", showStack);
element("query").addEventListener("submit", runQuery);
element("sql").addEventListener("keydown", (event) => {
	if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
		element("query").requestSubmit();
});
showOverview().catch((error) => say("status", error.message, true));
