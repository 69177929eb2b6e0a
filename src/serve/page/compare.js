// SPDX-License-Identifier: MIT
// compare.js - the view of a comparison: two recordings, two parts of one, or its slow steps against the others; a table of functions, and
// the flame graph of the difference.
import { element } from "../../export/html/dom.js";
import { ask } from "./api.js";
import { makeFrame } from "./frame.js";
import { number } from "./format.js";
import { view } from "./registry.js";
import { change, link } from "./state.js";
import { fill, scroller } from "./table.js";

const WINDOW = "window";
const SLOW = "slow";
const MAX_ROWS = 200;

const note = element("p", { id: "compare-note", attributes: { role: "status" } });
const sides = element("div", { className: "sides" });
const table = element("table", { className: "changes" });
const frame = makeFrame("Flame graph of the difference", (text, isError) => {
	pictureNote.textContent = text;
	pictureNote.classList.toggle("error", Boolean(isError));
});
const pictureNote = element("p", { attributes: { role: "status" } });
const base = element("select", { onchange: () => change({ base: base.value, baseSince: "", baseUntil: "" }) });
const field = (name, title, size) => element("input", { size, title, autocomplete: "off", onchange: (event) => change({ [name]: event.target.value.trim() }) });
const baseSince = field("baseSince", "Seconds after the start, or 90s, 2m", 5);
const baseUntil = field("baseUntil", "Seconds after the start, or 90s, 2m", 5);
const slow = field("slow", "How many percent of the steps are slow", 3);
const by = element("select", { onchange: () => change({ normalize: by.value }) }, ...["run", "samples", "wall", "rest"].map((value) => element("option", { value, textContent: value })));
const labelled = (words, input) => element("label", {}, words, input);
const parts = { base: labelled("Base", base), since: labelled("its part from", baseSince), until: labelled("to", baseUntil), slow: labelled("Slowest, in %", slow),
	by: labelled("Normalised by", by) };
let turn = 0;

function parametersOf(state) {
	const common = { target: state.target, since: state.since, until: state.until, process: state.rank, threads: state.thread, function: state.function };

	if (state.base === SLOW)
		return { ...common, "slow-steps": state.slow || "5" };
	return { ...common, base: state.base === WINDOW ? state.target : state.base, "base-since": state.baseSince, "base-until": state.baseUntil,
		normalize: state.normalize || (state.base === WINDOW ? "samples" : "run") };
}

/* ---- The table ---- */

const share = (value) => value === null || value === undefined ? "" : number(value);
const percentOf = ({ change: part, base: before, head }) => part === null || part === undefined ? (before === 0 && head > 0 ? "new" : "") : `${part > 0 ? "+" : ""}${(part * 100).toFixed(1)} %`;

function changeCell(amount) {
	const text = percentOf(amount);

	return element("span", { className: !amount.changed ? "soft" : amount.head > amount.base ? "more" : "less", textContent: amount.changed ? text : `~ ${text}`,
		title: amount.changed ? "significant" : "no significant change" });
}

function rowOf(one, state) {
	const place = one.place || one.was_place || "";
	const name = element("a", { textContent: one.name, href: link({ view: "flame", target: state.target, function: one.name }) });

	return [changeCell(one.self), share(one.self.base), share(one.self.head), changeCell(one.total), share(one.total.base), share(one.total.head), name, one.kind, place];
}

function sideOf(words, runs, unit) {
	const samples = runs.reduce((sum, one) => sum + one.samples, 0);
	const steps = runs.reduce((sum, one) => sum + (one.steps || 0), 0);

	return element("p", {}, element("strong", { textContent: words }), ` ${runs.length === 1 ? runs[0].name : `${runs.length} parts`}: ${number(samples)} samples${
		steps ? `, ${number(steps)} steps` : ""}`, unit);
}

const biggest = (one) => Math.max(Math.abs(one.self.head - one.self.base), Math.abs(one.total.head - one.total.base) / 2);

function showAnswer(answer, state, said) {
	const functions = [...answer.functions].sort((a, b) => b.self.changed - a.self.changed || biggest(b) - biggest(a)).slice(0, MAX_ROWS);
	const differ = answer.differences.filter((one) => one.matters).map((one) => `${one.what}: ${one.one} and ${one.other}`);

	sides.replaceChildren(sideOf("Base", answer.base, ""), sideOf("Head", answer.head, ""),
		element("p", {}, element("strong", { textContent: "All" }), ` ${share(answer.whole.base)} and ${share(answer.whole.head)} ${answer.unit}, ${answer.quantity}: `,
			changeCell(answer.whole)),
		...(differ.length ? [element("p", { className: "error", textContent: `They differ in more than the code: ${differ.join("; ")}` })] : []));
	fill(table, ["Self", "base", "head", "Total", "base", "head", "Function", "Kind", "Where"], functions.map((one) => rowOf(one, state)), "Functions that changed most");
	note.textContent = said;
}

async function load(state) {
	const mine = ++turn;
	const parameters = parametersOf(state);

	note.className = "";
	note.textContent = "Comparing.";
	sides.replaceChildren();
	table.replaceChildren();
	frame.clear();
	try {
		const response = await ask("/apis/compare", parameters);
		const answer = await response.json();

		if (mine !== turn)
			return;
		showAnswer(answer, state, response.headers.get("Probing-Note") || "");
		await frame.load("/apis/compare", { ...parameters, format: state.hasHtml ? "html" : "svg" });
	} catch (error) {
		if (mine !== turn)
			return;
		note.textContent = error.message;
		note.className = "error";
	}
}

function show(body, state) {
	const recordings = state.targets.filter((one) => one.kind !== "process" && one.target !== state.target);
	const isPair = Boolean(state.base) && state.base !== SLOW;

	if (!body.firstChild)
		body.append(element("div", { className: "controls" }, ...Object.values(parts)), note, sides, scroller("Functions", table), pictureNote, frame.host);
	base.replaceChildren(element("option", { value: "", textContent: "choose" }),
		...recordings.map((one) => element("option", { value: one.target, textContent: one.target })), element("option", { value: WINDOW, textContent: "another part of it" }),
		...(state.targetInfo.kind === "recording" ? [element("option", { value: SLOW, textContent: "its usual steps, against slow ones" })] : []));
	base.value = state.base || "";
	baseSince.value = state.baseSince || "";
	baseUntil.value = state.baseUntil || "";
	slow.value = state.slow || "5";
	by.value = parametersOf(state).normalize || "run";
	parts.since.hidden = parts.until.hidden = parts.by.hidden = !isPair;
	parts.slow.hidden = state.base !== SLOW;
	if (state.base === WINDOW && !state.baseSince && !state.baseUntil) {
		turn++;
		frame.clear();
		note.className = "";
		note.textContent = "Say which part is the base; the filters above say which part is compared with it.";
		return null;
	}
	if (state.base)
		return load(state);
	turn++;
	frame.clear();
	sides.replaceChildren();
	table.replaceChildren();
	note.className = "";
	note.textContent = `Choose the base, against which ${state.target} is compared.`;
	return null;
}

view({ name: "compare", title: "Compare", kinds: ["recording", "fleet"], filters: ["window", "rank", "thread", "function"], show, hide: () => turn++ });
