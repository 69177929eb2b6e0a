/* colours.js - what the colour of a box can say. */
import {baseName, shareOf} from "./data.js";

const HIT = "#e5007d", UNKNOWN = "#d5d9df";
/* Hue, saturation and lightness; as in svg_style.css. */
const KINDS = {
	Python: [205, 62, 74], builtin: [140, 43, 72], native: [42, 88, 68], kernel: [300, 52, 76],
	waiting: [5, 75, 82], task: [215, 14, 84], "": [215, 14, 84],
};

function hashOf(text) {
	let hash = 2166136261;
	for (let i = 0; i < text.length; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
	return hash >>> 0;
}

const hsl = (hue, saturation, lightness) => `hsl(${hue},${saturation}%,${lightness}%)`;

function byKind(label) {
	const [hue, saturation, lightness] = KINDS[label.kind];
	const hash = hashOf(label.text);
	return hsl(hue - 12 + hash % 25, saturation, lightness - 4 + (hash >>> 8) % 9);
}

/* Python has no modules of files; its files are the next best. */
function byModule(label) {
	const name = baseName(label.module || label.file);
	return name ? hsl(hashOf(name) % 360, 55, 74) : UNKNOWN;
}

/* From the one colour, for nothing, to the other, for all of it. */
const between = (from, to, share) => `rgb(${from.map((part, i) => Math.round(part + (to[i] - part) * share)).join()})`;

const LOW = {verdict: [240, 128, 104], gil: [244, 232, 205], state: [160, 214, 150]};
const HIGH = {verdict: [112, 196, 128], gil: [148, 108, 214], state: [240, 128, 112]};

function gradient(profile, name, values, legend) {
	const aspect = profile.aspects.find(one => one.name === name);
	if (!aspect || !aspect.values.some(value => values.includes(value)))
		return null;
	return {
		of: (label, node) => {
			const share = shareOf(aspect, node, values);
			return share === null ? UNKNOWN : between(LOW[name], HIGH[name], share);
		},
		legend: [[between(LOW[name], HIGH[name], 0), legend[0]], [between(LOW[name], HIGH[name], 1), legend[1]]],
	};
}

/* Of a comparison: blue less, red more, pale where it may be chance; as in diff_svg.c. */
const CHANGES = ["#2f6fb8", "#578fce", "#83aede", "#aecbea", "#d6e4f4", "#e6e6e6", "#fbd9d3", "#f7b3a8", "#f0897b", "#e35c4e", "#cc2f27"];

function pale(colour) {
	const part = at => Math.round(255 - (255 - parseInt(colour.slice(at, at + 2), 16)) * 0.45);
	return `rgb(${part(1)},${part(3)},${part(5)})`;
}

function byChange(diff) {
	const middle = (CHANGES.length - 1) / 2;
	return {
		of: (label, node) => {
			const colour = CHANGES[middle + diff.shade[node.index]];
			return diff.is_known[node.index] ? colour : pale(colour);
		},
		legend: [[CHANGES[0], "less"], [CHANGES[middle], "as before"], [CHANGES[2 * middle], "more"], [pale(CHANGES[2 * middle]), "pale: may be chance"]],
	};
}

/* What there is to choose from: name -> {of(label, node), legend: [[colour, words]...]}. */
export function schemesOf(profile) {
	if (profile.diff)
		return {change: byChange(profile.diff), module: {of: byModule, legend: []}};
	const used = new Set(profile.labels.map(label => label.kind));
	const kinds = Object.keys(KINDS).filter(kind => kind && used.has(kind));
	const waiting = (profile.aspects.find(one => one.name === "state") || {values: []}).values.filter(value => value !== "running");
	const schemes = {
		kind: {of: byKind, legend: kinds.map(kind => [hsl(...KINDS[kind]), kind])},
		module: {of: byModule, legend: []},
		verdict: gradient(profile, "verdict", ["exact", "verified"], ["not sure", "exact or verified"]),
		GIL: gradient(profile, "gil", ["held"], ["GIL not held", "held"]),
		"off-CPU": gradient(profile, "state", waiting, ["on CPU", "off CPU"]),
	};
	return Object.fromEntries(Object.entries(schemes).filter(([, scheme]) => scheme));
}

export const colourOf = (scheme, label, node, isHit) => isHit ? HIT : scheme.of(label, node);
