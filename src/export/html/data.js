/* data.js - the profile out of the page: columns become nodes. See export_html.c for what stands there. */

/* @returns nodes, callers first; [0] is the root. */
function makeNodes(profile) {
	const {label, up, value, samples} = profile.nodes;
	const nodes = [];
	for (let i = 0; i < value.length; i++) {
		const node = {index: i, label: label[i], value: value[i], samples: samples ? samples[i] : value[i], children: [], parent: null};
		if (i > 0) {
			node.parent = nodes[i - up[i]];
			node.parent.children.push(node);
		}
		nodes.push(node);
	}
	return nodes;
}

/* Profiles come with siblings in order of their names, comparisons do not. */
function sortSiblings(nodes, labels) {
	const names = nodes.map(node => labels[node.label].text);
	for (const node of nodes)
		node.children.sort((a, b) => names[a.index] < names[b.index] ? -1 : names[a.index] > names[b.index] ? 1 : a.index - b.index);
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
	if (profile.diff)
		sortSiblings(nodes, labels);
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

/* "12 samples · 0.12 s" */
export function amountOf(profile, node) {
	const samples = `${node.samples} sample${node.samples === 1 ? "" : "s"}`;
	if (!profile.scale)
		return samples;
	const weight = node.value * profile.scale;
	return `${samples} · ${profile.unit ? `${weight} ${profile.unit}` : `${+(weight / 1e9).toFixed(3)} s`}`;
}

/* "exact 75 %, native 25 %"; nothing where all of it is not known. */
function aspectOf(aspect, node) {
	const parts = aspect.values.map((value, i) => [value, aspect.sums[i][node.index]]).filter(([, sum]) => sum > 0);
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
		const sum = aspect.sums[i][node.index];
		whole += sum;
		if (values.includes(value))
			part += sum;
	});
	return whole > 0 ? part / whole : null;
}
