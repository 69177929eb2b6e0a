// SPDX-License-Identifier: MIT
// timeline_draw.js - draws lanes on a canvas. What is known of the whole recording is below, what is known of the visible part above it.
import { firstSlice, formatTime, RULER, ROW, sourceOf } from "./timeline_lanes.js";

const HUES = { python: [212, 26], builtin: [172, 14], native: [38, 16], kernel: [4, 12], task: [285, 14], wait: [220, 0], none: [220, 0], event: [130, 120] };
const SHARES = 16;
const MIN_TEXT = 26;

function hash(text) {
	let value = 2166136261;

	for (let i = 0; i < text.length; i++)
		value = Math.imul(value ^ text.charCodeAt(i), 16777619);
	return (value >>> 0) / 2 ** 32;
}

/* The next round length of time: minutes and hours have other round numbers than seconds. */
function stepOf(least) {
	const power = 10 ** Math.floor(Math.log10(least));
	const minutes = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map((one) => one * 1e9);

	return (least > 5e9 && minutes.find((one) => one >= least)) || [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least);
}

/* The colours of the page's theme. */
export function readTheme(element) {
	const style = getComputedStyle(element);
	const value = (name) => style.getPropertyValue(name).trim();
	const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
	const colours = new Map();

	return {
		text: value("--text"), soft: value("--soft"), line: value("--line"), edge: value("--edge"), page: value("--page"), raised: value("--raised"),
		accent: value("--accent"), accentPage: value("--accent-page"), mark: value("--mark"), bar: value("--bar"),
		state: (name) => value(`--state-${name}`) || value("--edge"),
		colour(name, kind) {
			const key = `${kind} ${name}`;

			if (!colours.has(key)) {
				const [hue, spread] = HUES[kind] || HUES.none;
				const turn = hash(name) * 2 - 1;
				const light = isDark ? 30 + 6 * turn : 80 + 5 * turn;

				colours.set(key, `hsl(${Math.round(hue + spread * turn)} ${kind === "wait" || kind === "none" ? 8 : isDark ? 34 : 62}% ${Math.round(light)}%)`);
			}
			return colours.get(key);
		},
	};
}

/* makePainter - paint(lanes, view): view has since, until (ns), top (scrolled by), pattern (RegExp or null), hovered, chosen, range. */
export function makePainter(canvas) {
	const context = canvas.getContext("2d", { alpha: false });
	const widths = new Map();
	let theme = readTheme(canvas);
	let width = 0, height = 0;
	let matches = new WeakMap(); // by answer: whether its names match the pattern
	let states = [];

	function resize() {
		const ratio = window.devicePixelRatio || 1;

		width = canvas.clientWidth;
		height = canvas.clientHeight;
		canvas.width = Math.max(1, Math.round(width * ratio));
		canvas.height = Math.max(1, Math.round(height * ratio));
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.font = `11px ${getComputedStyle(canvas).fontFamily}`;
		context.textBaseline = "middle";
	}

	function widthOf(text) {
		if (!widths.has(text)) {
			if (widths.size > 20000)
				widths.clear();
			widths.set(text, context.measureText(text).width);
		}
		return widths.get(text);
	}

	/* As much of it as fits; nothing where that would be a letter or two. */
	function label(text, x, y, room, colour) {
		const from = Math.max(x, 0) + 4;
		const left = Math.min(x + room, width) - from - 3;
		const whole = widthOf(text);

		if (left < MIN_TEXT)
			return;
		context.fillStyle = colour;
		if (whole <= left) {
			context.fillText(text, from, y);
			return;
		}
		const n = Math.floor(text.length * left / whole) - 1;

		if (n > 2)
			context.fillText(`${text.slice(0, n)}…`, from, y);
	}

	function matchesOf(answer, pattern) {
		let known = matches.get(answer);

		if (!known || known.pattern !== pattern) {
			known = { pattern, flags: answer.names.map(([name, file]) => pattern.test(name) || pattern.test(file)) };
			matches.set(answer, known);
		}
		return known.flags;
	}

	/* One list of slices as boxes. Boxes that are narrower than a pixel share it, the first one wins. */
	function paintRow(answer, list, y, scale, pick, view) {
		const { origin, size } = scale;
		const from = (view.since - answer.first_ns) / answer.column_ns, to = (view.until - answer.first_ns) / answer.column_ns;
		let end = -1, fill = "";

		for (let at = 4 * firstSlice(list, from); at < list.length && list[at] < to; at += 4) {
			const x = Math.max(origin + list[at] * size, -1);
			const right = Math.min(origin + (list[at] + list[at + 1]) * size, width + 1);

			if (right - end < 0.5)
				continue;
			const left = Math.max(x, end);
			const box = pick(list[at + 2], list[at + 3]);

			if (box.fill !== fill)
				context.fillStyle = fill = box.fill;
			context.globalAlpha = box.alpha;
			context.fillRect(left, y, Math.max(right - left - (right - left > 3 ? 1 : 0), 0.6), box.height || ROW - 1);
			end = right;
			if (box.text && right - left > MIN_TEXT) {
				context.globalAlpha = Math.max(box.alpha, 0.6);
				label(box.text, left, y + ROW / 2, right - left, theme.text);
				fill = "";
			}
		}
		context.globalAlpha = 1;
	}

	function nameBox(answer, view) {
		const flags = view.pattern ? matchesOf(answer, view.pattern) : null;

		return (index) => {
			const [name, file, kind] = answer.names[index];
			const isMarked = flags && flags[index];
			const isSame = view.hovered === name;

			return { fill: isMarked ? theme.mark : isSame ? theme.bar : theme.colour(name + file, kind), alpha: flags && !isMarked ? 0.3 : 1, text: name };
		};
	}

	function paintThread(answer, lane, source, y, scale, view) {
		paintRow(answer, source.states, y, scale, (state, share) => ({
			fill: states[state], alpha: 0.25 + 0.75 * share / SHARES, height: lane.strip - 5 }), view);
		paintRow(answer, source.held, y + lane.strip - 4, scale, (_, share) => ({
			fill: theme.text, alpha: 0.15 + 0.7 * share / SHARES, height: 2 }), view);
		for (let row = 0; row < lane.rows && source.rows && row < source.rows.length; row++) {
			const top = y + lane.strip + row * ROW;

			if (top + ROW >= RULER && top <= height)
				paintRow(answer, source.rows[row], top, scale, nameBox(answer, view), view);
		}
	}

	function paintCurve(lane, source, y, scale) {
		const bottom = y + lane.height, top = source.top > 0 ? source.top : 1;
		const points = source.points;
		const place = (value) => bottom - 1 - value / top * (lane.height - 4);

		if (points.length < 2)
			return;
		context.beginPath();
		for (let i = 0; i < points.length; i += 2)
			context.lineTo(scale.origin + points[i] * scale.size, place(points[i + 1]));
		context.strokeStyle = theme.accent;
		context.lineWidth = 1.25;
		context.stroke();
		context.lineTo(scale.origin + points[points.length - 2] * scale.size, bottom);
		context.lineTo(scale.origin + points[0] * scale.size, bottom);
		context.fillStyle = theme.accent;
		context.globalAlpha = 0.12;
		context.fill();
		context.globalAlpha = 1;
	}

	function paintLane(answer, lane, y, scale, view) {
		const source = sourceOf(answer, lane);

		if (!source)
			return;
		if (lane.kind === "thread")
			paintThread(answer, lane, source, y, scale, view);
		else if (lane.kind === "gil")
			paintRow(answer, source.slices, y, scale, (thread, share) => {
				const name = answer.threads[thread].name || `TID ${answer.threads[thread].tid}`;

				return { fill: theme.colour(`${name} ${answer.threads[thread].tid}`, "event"), alpha: 0.3 + 0.7 * share / SHARES, text: name };
			}, view);
		else if (lane.kind === "curve")
			paintCurve(lane, source, y, scale);
		else
			for (let row = 0; row < lane.rows && row < source.rows.length; row++)
				paintRow(answer, source.rows[row], y + row * ROW, scale, nameBox(answer, view), view);
	}

	function paintRuler(view) {
		const perPixel = (view.until - view.since) / width;
		const least = perPixel * 90;
		const step = stepOf(least);

		context.fillStyle = theme.raised;
		context.fillRect(0, 0, width, RULER);
		context.fillStyle = theme.line;
		context.fillRect(0, RULER - 1, width, 1);
		for (let i = Math.ceil(view.since / step); i * step < view.until; i++) {
			const x = Math.round((i * step - view.since) / perPixel);

			context.fillStyle = theme.edge;
			context.globalAlpha = 0.3;
			context.fillRect(x, 0, 1, height);
			context.globalAlpha = 1;
			context.fillStyle = theme.soft;
			context.fillText(formatTime(i * step, step), x + 4, RULER / 2);
		}
	}

	function paintRange(view) {
		const perPixel = (view.until - view.since) / width;
		const [from, to] = view.range.map((ns) => (ns - view.since) / perPixel);

		context.fillStyle = theme.accent;
		context.globalAlpha = 0.16;
		context.fillRect(from, 0, to - from, height);
		context.globalAlpha = 1;
		context.fillRect(from, 0, 1, height);
		context.fillRect(to, 0, 1, height);
	}

	/* @answers: the coarse one first; each later one covers what is below it. */
	function paint(answers, lanes, view) {
		const perPixel = (view.until - view.since) / width;

		context.fillStyle = theme.page;
		context.fillRect(0, 0, width, height);
		if (width === 0 || answers.length === 0)
			return;
		states = answers[0].states.map((name) => theme.state(name));
		for (const answer of answers) {
			const scale = { origin: (answer.first_ns - view.since) / perPixel, size: answer.column_ns / perPixel };
			const end = Math.min(width, scale.origin + answer.columns * scale.size);

			context.save();
			context.beginPath();
			context.rect(Math.max(0, scale.origin), 0, Math.max(0, end - Math.max(0, scale.origin)), height);
			context.clip();
			context.fillStyle = theme.page;
			context.fillRect(0, 0, width, height);
			for (const lane of lanes) {
				const y = lane.top - view.top;

				if (y + lane.height >= RULER && y <= height)
					paintLane(answer, lane, y, scale, view);
			}
			context.restore();
		}
		for (const lane of lanes) {
			const y = lane.top - view.top + lane.height + 2;

			context.fillStyle = theme.line;
			if (y > RULER && y < height)
				context.fillRect(0, y, width, 1);
		}
		paintRuler(view);
		if (view.range)
			paintRange(view);
	}

	return { paint, resize, retheme: () => { theme = readTheme(canvas); }, get width() { return width; }, get height() { return height; } };
}
