/* SPDX-License-Identifier: MIT */
/* data.js - the profile out of the page: columns become nodes. See export_html.c for what stands there. */

/* @returns nodes, callers first; [0] is the root. Of a comparison they have values; otherwise sumUp() gives them theirs. */
function makeNodes(profile) {
	const {label, up, value} = profile.nodes;
	const nodes = [];
	for (let i = 0; i < up.length; i++) {
		const node = {index: i, label: label[i], value: value ? value[i] : 0, samples: 0, children: [], callees: [], parent: null};
		if (i > 0) {
			node.parent = nodes[i - up[i]];
			node.parent.callees.push(node);
		}
		nodes.push(node);
	}
	return nodes;
}

/* Where a thread's cells and functions begin. */
function placeThreads(profile) {
	let cell = 0, row = 0;
	for (const thread of profile.threads || []) {
		Object.assign(thread, {firstCell: cell, firstFunction: row});
		cell += thread.cells;
		row += thread.functions;
	}
}

/* Columns of cells become columns of nodes: sums of the threads that are picked, with what is called from there. */
function sumColumn({nodes, cells}, threads, column) {
	const sums = new Float64Array(nodes.length);
	for (const {firstCell, cells: n} of threads)
		for (let i = firstCell; i < firstCell + n; i++)
			sums[cells.at[i]] += column[i];
	for (let i = nodes.length - 1; i > 0; i--)
		sums[nodes[i].parent.index] += sums[i];
	return sums;
}

/* Gives nodes what some threads spent in them, and the children that any of it is in. */
export function sumUp(profile, threads) {
	const {nodes, cells} = profile;
	const values = sumColumn(profile, threads, cells.value);
	const samples = cells.samples ? sumColumn(profile, threads, cells.samples) : values;
	nodes.forEach((node, i) => {
		node.value = values[i];
		node.samples = samples[i];
		node.children = node.callees.filter(callee => values[callee.index] > 0);
	});
	for (const aspect of profile.aspects)
		aspect.sums = aspect.cells.map(column => sumColumn(profile, threads, column));
}

/* What some threads spent in each function: [{label, self, total}]. */
export function functionsOf(profile, threads) {
	const {label, self, total} = profile.functions;
	const found = new Map();
	for (const {firstFunction, functions} of threads)
		for (let i = firstFunction; i < firstFunction + functions; i++) {
			const row = found.get(label[i]) || {label: label[i], self: 0, total: 0};
			row.self += self[i];
			row.total += total[i];
			found.set(label[i], row);
		}
	return [...found.values()];
}

/* Profiles come with siblings in order of their names, comparisons do not. */
function sortSiblings(nodes, labels) {
	const names = nodes.map(node => labels[node.label].text);
	for (const node of nodes)
		node.children = node.callees.sort((a, b) => names[a.index] < names[b.index] ? -1 : names[a.index] > names[b.index] ? 1 : a.index - b.index);
}

function makeLabels(profile) {
	const {text, kind, file, first, last, module} = profile.labels;
	const string = index => index ? profile.strings[index - 1] : "";
	return text.map((index, i) => ({
		text: string(index), kind: profile.kinds[kind[i]], file: string(file[i]), module: string(module[i]),
		first: first[i], last: last[i],
	}));
}

export function load(text) {
	const profile = JSON.parse(text);
	const labels = makeLabels(profile), nodes = makeNodes(profile);
	placeThreads(profile);
	if (profile.diff) {
		sortSiblings(nodes, labels);
		return {...profile, labels, nodes, threads: []};
	}
	let at = 0;
	profile.cells.at = profile.cells.node.map(step => at += step);
	for (const aspect of profile.aspects)
		aspect.cells = aspect.sums;
	return {...profile, labels, nodes};
}

export const baseName = path => path.slice(path.lastIndexOf("/") + 1);

/* "file:first-last · module", as far as known. */
export function placeOf(label) {
	let place = label.file;
	if (place && label.first)
		place += `:${label.first}`;
	if (place && label.last > label.first)
		place += `–${label.last}`;
	return [place, label.module].filter(Boolean).join(" · ");
}

export const percent = (part, whole) => `${whole ? +(part / whole * 100).toFixed(2) : 0} %`;

/* "0.12 s"; "" where values are samples. @decimals: always so many; undefined: no zeros at the end. */
export function weightOf(profile, value, decimals) {
	if (!profile.scale)
		return "";
	const weight = value * profile.scale;
	return profile.unit ? `${weight} ${profile.unit}` : `${decimals === undefined ? +(weight / 1e9).toFixed(3) : (weight / 1e9).toFixed(decimals)} s`;
}

/* "12 samples · 0.12 s" */
export function amountOf(profile, node) {
	return [`${node.samples} sample${node.samples === 1 ? "" : "s"}`, weightOf(profile, node.value)].filter(Boolean).join(" · ");
}

/* What of an aspect's value is in a node; of: the nodes that one was merged from. */
function sumOf(aspect, i, node) {
	return node.of ? node.of.reduce((sum, index) => sum + aspect.sums[i][index], 0) : aspect.sums[i][node.index];
}

/* "exact 75 %, native 25 %"; nothing where all of it is not known. */
function aspectOf(aspect, node) {
	const parts = aspect.values.map((value, i) => [value, sumOf(aspect, i, node)]).filter(([, sum]) => sum > 0);
	const whole = parts.reduce((all, [, sum]) => all + sum, 0);
	return parts.length ? `${aspect.name}: ${parts.map(([value, sum]) => `${value} ${percent(sum, whole)}`).join(", ")}` : "";
}

export function linesOf(profile, node) {
	const label = profile.labels[node.label];
	if (profile.diff)
		return [label.text, placeOf(label), profile.diff.says[node.index]].filter(Boolean);
	return [label.text, placeOf(label), `${percent(node.value, profile.nodes[0].value)} · ${amountOf(profile, node)}`,
		...profile.aspects.map(aspect => aspectOf(aspect, node))].filter(Boolean);
}

/* The share of some of an aspect's values in what is known; null where nothing is. */
export function shareOf(aspect, node, values) {
	let whole = 0, part = 0;
	aspect.values.forEach((value, i) => {
		const sum = sumOf(aspect, i, node);
		whole += sum;
		if (values.includes(value))
			part += sum;
	});
	return whole > 0 ? part / whole : null;
}
