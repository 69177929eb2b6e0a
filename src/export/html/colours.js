/* SPDX-License-Identifier: MIT */
/* colours.js - what the colour of a box can say, in a light and in a dark page.
 *
 * All of these leave a contrast of 4.5 or more to the text on them: --text in style.css.
 */
import {baseName, shareOf} from "./data.js";

const darkness = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => darkness.matches;
const either = (light, dark) => isDark() ? dark : light;

export const onThemeChange = call => darkness.addEventListener("change", call);

const hit = () => either("#ff5fb0", "#c2006b"), unknown = () => either("#d5d9df", "#40464f");
/* Hue, saturation and lightness; as in svg_style.css. */
const KINDS = {
	Python: [205, 62, 74], builtin: [140, 43, 72], native: [42, 88, 68], kernel: [300, 52, 76],
	waiting: [5, 75, 82], task: [215, 14, 84], "": [215, 14, 84],
};
const DARK_KINDS = {
	Python: [208, 45, 33], builtin: [145, 34, 26], native: [36, 52, 26], kernel: [295, 28, 33],
	waiting: [4, 40, 33], task: [215, 10, 30], "": [215, 10, 30],
};

function hashOf(text) {
	let hash = 2166136261;
	for (let i = 0; i < text.length; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
	return hash >>> 0;
}

const hsl = (hue, saturation, lightness) => `hsl(${hue},${saturation}%,${lightness}%)`;
const colourOfKind = kind => either(KINDS, DARK_KINDS)[kind];

function byKind(label) {
	const [hue, saturation, lightness] = colourOfKind(label.kind);
	const hash = hashOf(label.text), spread = either(9, 6);
	return hsl(hue - 12 + hash % 25, saturation, lightness - (spread >> 1) + (hash >>> 8) % spread);
}

/* Python has no modules of files; its files are the next best. */
function byModule(label) {
	const name = baseName(label.module || label.file);
	return name ? hsl(hashOf(name) % 360, either(55, 35), either(74, 28)) : unknown();
}

/* From the one colour, for nothing, to the other, for all of it. */
const between = (from, to, share) =>
	`rgb(${from.map((part, i) => Math.round((part + (to[i] - part) * share) * either(1, 0.45))).join()})`;

const LOW = {verdict: [240, 128, 104], gil: [244, 232, 205], state: [160, 214, 150]};
const HIGH = {verdict: [112, 196, 128], gil: [178, 148, 232], state: [240, 128, 112]};

function gradient(profile, name, values, legend) {
	const aspect = profile.aspects.find(one => one.name === name);
	if (!aspect || !aspect.values.some(value => values.includes(value)))
		return null;
	return {
		of: (label, node) => {
			const share = shareOf(aspect, node, values);
			return share === null ? unknown() : between(LOW[name], HIGH[name], share);
		},
		legend: () => [[between(LOW[name], HIGH[name], 0), legend[0]], [between(LOW[name], HIGH[name], 1), legend[1]]],
	};
}

/* ---- Comparisons ---- */

/* Blue and striped less, red more, the stronger the more; pale where it may be chance. As in diff_svg.c. */
const CHANGES = ["#5b9ade", "#83b2e6", "#a3c6ed", "#c3daf3", "#dfebf8", "#e6e6e6", "#fde3dd", "#f9c8be", "#f5a799", "#ef8273", "#e8604f"];
const DARK_CHANGES = ["#2a69b8", "#285a98", "#274c7b", "#263f60", "#263548", "#3a3f46", "#46302d", "#613530", "#7e3a32", "#9b3c31", "#b83a2c"];
const MIDDLE = 5, SVG = "http://www.w3.org/2000/svg";

/* Half way to the page's own colour. */
function pale(colour) {
	const page = either([255, 255, 255], [22, 24, 28]);
	const part = i => Math.round(page[i] + (parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16) - page[i]) * 0.5);
	return `rgb(${part(0)},${part(1)},${part(2)})`;
}

const colourOfShade = (shade, isKnown) => {
	const colour = either(CHANGES, DARK_CHANGES)[MIDDLE + shade];
	return isKnown ? colour : pale(colour);
};
const stripesOf = (shade, isKnown) => `less${-shade}${isKnown ? "" : "-pale"}`;
const fillOfShade = (shade, isKnown) => shade < 0 ? `url(#${stripesOf(shade, isKnown)})` : colourOfShade(shade, isKnown);

function svgElement(name, attributes, ...children) {
	const made = document.createElementNS(SVG, name);
	Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
	made.append(...children);
	return made;
}

/* Stripes stay away from the text's colour, so that they do not take from its contrast. */
function stripes(shade, isKnown) {
	return svgElement("pattern", {id: stripesOf(shade, isKnown), width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"},
		svgElement("rect", {width: 7, height: 7, fill: colourOfShade(shade, isKnown)}),
		svgElement("rect", {width: 2.5, height: 7, fill: either("#fff", "#000"), "fill-opacity": either(0.4, 0.4)}));
}

/* What fills refer to: an element for the page, made again where the theme changes. */
export function patterns() {
	const all = [1, 2, 3, 4, 5].flatMap(less => [stripes(-less, true), stripes(-less, false)]);
	return svgElement("svg", {class: "unseen", width: 0, height: 0, "aria-hidden": "true"}, svgElement("defs", {}, ...all));
}

function byChange(diff) {
	return {
		of: (label, node) => fillOfShade(diff.shade[node.index], Boolean(diff.is_known[node.index])),
		legend: () => [[fillOfShade(-MIDDLE, true), "− less"], [fillOfShade(0, true), "as before"], [fillOfShade(MIDDLE, true), "+ more"],
			[fillOfShade(MIDDLE, false), "pale: may be chance"]],
	};
}

/* ---- Choices ---- */

/* What there is to choose from: name -> {of(label, node), legend() -> [[fill, words]...]}. */
export function schemesOf(profile) {
	if (profile.diff)
		return {change: byChange(profile.diff), module: {of: byModule, legend: () => []}};
	const used = new Set(profile.labels.map(label => label.kind));
	const kinds = Object.keys(KINDS).filter(kind => kind && used.has(kind));
	const waiting = (profile.aspects.find(one => one.name === "state") || {values: []}).values.filter(value => value !== "running");
	const schemes = {
		kind: {of: byKind, legend: () => kinds.map(kind => [hsl(...colourOfKind(kind)), kind])},
		module: {of: byModule, legend: () => []},
		verdict: gradient(profile, "verdict", ["exact", "verified"], ["not sure", "exact or verified"]),
		GIL: gradient(profile, "gil", ["held"], ["GIL not held", "held"]),
		"off-CPU": gradient(profile, "state", waiting, ["on CPU", "off CPU"]),
	};
	return Object.fromEntries(Object.entries(schemes).filter(([, scheme]) => scheme));
}

export const colourOf = (scheme, label, node, isHit) => isHit ? hit() : scheme.of(label, node);

/* A legend's box: an SVG, since fills may be patterns. */
export const swatch = fill => svgElement("svg", {"aria-hidden": "true"}, svgElement("rect", {width: 14, height: 14, fill}));
