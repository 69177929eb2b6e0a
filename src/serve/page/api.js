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

/* Integers beyond 2^53 stay as they are written, as text. */
function exactly(name, value, context) {
	return typeof value === "number" && !Number.isSafeInteger(value) && context && /^-?\d+$/.test(context.source) ? context.source : value;
}

/* The arrays of a text with one array for each statement. */
function arraysOf(text) {
	const arrays = [];
	let begin = 0;
	let depth = 0;

	for (const { 0: found, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]]/g)) {
		if (found === "[" && depth++ === 0)
			begin = index;
		else if (found === "]" && --depth === 0)
			arrays.push(JSON.parse(text.slice(begin, index + 1), exactly));
	}
	return arrays;
}

/*
 * query - run SQL on a target.
 * @return: results, for each statement {rows (objects), columns (their names; none if there is no row)}; rows and columns of the last
 *          one; note (why the answer is incomplete, or "").
 */
export async function query(target, sql, options) {
	const response = await ask("/query", { target }, { method: "POST", body: sql, ...options });
	const results = arraysOf(await response.text()).map((rows) => ({ rows, columns: Object.keys(rows[0] || {}) }));

	return { rows: [], columns: [], ...results[results.length - 1], results, note: response.headers.get("Probing-Note") || "" };
}

/* What tables a target has: name -> [columns], "python.steps" with its schema unless that is main. Read once for each target. */
const catalogues = new Map();

const CATALOGUE = "SELECT table_schema, table_name, column_name, unit, remarks FROM information_schema.columns";
const CATALOGUE_OF_FLEET = `SELECT 'main' AS table_schema, table AS table_name, name AS column_name, type AS unit, comment AS remarks
FROM system.columns WHERE database = currentDatabase()`;

export function catalogueOf(target, kind) {
	const read = async () => {
		const { rows } = await query(target, kind === "fleet" ? CATALOGUE_OF_FLEET : CATALOGUE);
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
