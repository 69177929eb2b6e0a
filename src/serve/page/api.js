// SPDX-License-Identifier: MIT
// api.js - requests to the server. Failures are errors whose message is the server's sentence.

function sentenceOf(text, response) {
	try {
		return JSON.parse(text).error || text;
	} catch {
		return text || `${response.status} ${response.statusText}`;
	}
}

export function url(path, parameters = {}) {
	const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");

	return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

// The server answers eight requests at a time, and refuses more: the rest waits here.
const MAX_REQUESTS = 4;
const waiting = [];
let running = 0;

async function fetchInTurn(address, options) {
	if (running >= MAX_REQUESTS)
		await new Promise((resolve) => waiting.push(resolve));
	running++;
	try {
		return await fetch(address, options);
	} finally {
		running--;
		if (waiting.length)
			waiting.shift()();
	}
}

export async function ask(path, parameters, options) {
	const response = await fetchInTurn(url(path, parameters), options);

	if (!response.ok)
		throw new Error(sentenceOf(await response.text(), response));
	return response;
}

/*
 * query - run SQL on a target.
 * @return: rows (objects), columns (their names; none if there is no row), note (why the answer is incomplete, or "").
 */
export async function query(target, sql, options) {
	const response = await ask("/query", { target }, { method: "POST", body: sql, ...options });
	const text = await response.text();
	const rows = text.trim() ? JSON.parse(text) : [];

	return { rows, columns: Object.keys(rows[0] || {}), note: response.headers.get("Probing-Note") || "" };
}

/* What tables a target has: name -> [columns], "python.steps" with its schema unless that is main. Read once for each target. */
const catalogues = new Map();

export function catalogueOf(target) {
	const read = async () => {
		const { rows } = await query(target, "SELECT table_schema, table_name, column_name, unit, remarks FROM information_schema.columns");
		const tables = new Map();

		for (const { table_schema: schema, table_name: name, ...column } of rows) {
			const full = schema === "main" || schema === "temp" ? name : `${schema}.${name}`;

			tables.set(full, [...tables.get(full) || [], column]);
		}
		return tables;
	};

	if (!catalogues.has(target)) {
		catalogues.set(target, read());
		catalogues.get(target).catch(() => catalogues.delete(target));
	}
	return catalogues.get(target);
}

/* Their names now: tables of rings come while a process runs. */
export async function tablesOf(target) {
	const { rows } = await query(target, "SELECT table_schema, table_name FROM information_schema.tables");

	return new Set(rows.map(({ table_schema: schema, table_name: name }) => schema === "main" ? name : `${schema}.${name}`));
}
