// SPDX-License-Identifier: MIT
// plot.js - lines over a number, by uPlot. The build bundles it; none/plot.js stands in where the libraries are missing.
import style from "uplot/dist/uPlot.min.css";
import uPlot from "uplot";

const DAY = "\n{YYYY}-{MM}-{DD}";
/* uPlot's form: least distance of ticks, their text, and what a new year, month, day, hour, minute and second add below it. */
const TIMES = [[86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1], [60, "{HH}:{mm}", DAY, null, DAY, null, null, null, 1],
	...[[1, ":{ss}"], [0.001, ":{ss}.{fff}"]].map(([seconds, text]) => [seconds, text, `${DAY} {HH}:{mm}`, null, `${DAY} {HH}:{mm}`, null, "\n{HH}:{mm}", null, 1])];

const sheet = new CSSStyleSheet(); // constructed: the page's policy forbids inline styles
const shown = new Map(); // plot -> what ends its observer

sheet.replaceSync(style);
document.adoptedStyleSheets.push(sheet);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.forEach((end, plot) => plot.redraw()));

/* A colour of theme.css, as it is now. */
const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name);

/* What was taken off the page while its view was hidden has changed no size, so that its observer was not called. */
function endGone() {
	shown.forEach((end, plot) => {
		if (plot.root.isConnected)
			return;
		end();
		shown.delete(plot);
		plot.destroy();
	});
}

/* Draws when @host gets its width, and again at each other one. What is taken off the page is ended: uPlot listens to the window. */
function mount(host, height, make) {
	let plot = null;
	const observer = new ResizeObserver(() => {
		if (!host.isConnected && plot) {
			endGone();
		} else if (host.clientWidth > 0 && plot) {
			plot.setSize({ width: host.clientWidth, height });
		} else if (host.clientWidth > 0) {
			endGone();
			plot = make(host.clientWidth);
			shown.set(plot, () => observer.disconnect());
		}
	});

	observer.observe(host);
}

function hostOf(label) {
	const host = document.createElement("div");

	host.setAttribute("role", "img");
	host.setAttribute("aria-label", label);
	return host;
}

const columnsOf = (points) => [points.map(([x]) => x), points.map(([, y]) => y)];
/* As wide as the longest number. */
const widthOf = (plot, values) => 24 + 8 * Math.max(0, ...(values || []).map((text) => text.length));
const fromZero = (plot, least, most) => [0, most > 0 ? most : 1];

/* spark - a line without words, for a tile. @points: [[x, y]...], by x. @label: what a screen reader says. */
export function spark(points, label) {
	const host = hostOf(label);
	const height = 32;

	mount(host, height, (width) => new uPlot({
		width, height, pxAlign: 0, padding: [2, 0, 0, 0], legend: { show: false }, cursor: { show: false }, axes: [{ show: false }, { show: false }],
		scales: { x: { time: false }, y: { range: fromZero } }, series: [{}, { stroke: colour("--accent"), fill: colour("--bar"), width: 1.5, points: { show: false } }],
	}, columnsOf(points), host));
	return host;
}

/*
 * lines - a line with axes, and the values under the pointer. Dragging zooms; a double click shows all.
 * @names:  of x and y.
 * @isTime: x is seconds since 1970.
 */
export function lines(points, names, isTime, label) {
	const host = hostOf(label);
	const height = 200;
	const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };

	mount(host, height, (width) => new uPlot({
		width, height, cursor: { sync: { key: "lines" } }, axes: [{ ...axis, ...(isTime ? { values: TIMES } : {}) }, { ...axis, size: widthOf }],
		scales: { x: { time: isTime } },
		series: [{ label: names[0], ...(isTime ? { value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}.{fff}" } : {}) }, { label: names[1], stroke: colour("--accent"), width: 1.5 }],
	}, columnsOf(points), host));
	return host;
}
