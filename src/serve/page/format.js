// SPDX-License-Identifier: MIT
// format.js - numbers for people.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value) {
	let unit = 0;

	while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
		value /= 1024;
		unit++;
	}
	return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

export function seconds(value) {
	if (value >= 120)
		return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
	return value >= 1 ? `${+value.toFixed(2)} s` : value >= 1e-3 ? `${+(value * 1e3).toFixed(1)} ms` : `${+(value * 1e6).toFixed(1)} µs`;
}

export const percent = (part, whole) => `${whole ? +(part / whole * 100).toFixed(1) : 0} %`;
export const number = (value) => Number.isInteger(value) ? value.toLocaleString("en") : String(+value.toPrecision(4));
export const time = (unix) => new Date(unix * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
export const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : word.endsWith("s") ? "es" : "s"}`;
