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

export async function ask(path, parameters, options) {
	const response = await fetch(url(path, parameters), options);

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
