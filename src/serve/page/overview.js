// SPDX-License-Identifier: MIT
// overview.js - the view of all targets, and of the state of the chosen one: what ran, what it used, and what deserves a look.
import { element } from "../../export/html/dom.js";
import { ask, query, tablesOf } from "./api.js";
import { bytes, number, percent, plural, seconds, time } from "./format.js";
import { spark } from "./libraries/plot.js";
import { view } from "./registry.js";
import { renew } from "./renew.js";
import { link } from "./state.js";
import { fill, scroller } from "./table.js";

const REFRESH_MS = 2000;
const HISTORY = 120; // readings of a live process
const RANKS_EVERY = 5; // readings; so often the tables of a process, its GIL and the ranks are looked for, too
const GIL_HISTORY = 12; // looks at the GIL of a live process, two minutes
const GPU_COLUMNS = "device, gpu_util, memory_used_mb, memory_total_mb, temperature_c, power_w, throttled, throttle_reasons";

/* ---- Questions ---- */

const BUCKETS = `WITH b AS (SELECT min(timestamp) AS t0, (max(timestamp) - min(timestamp)) / ${HISTORY} + 1e-9 AS w FROM process_usage)
SELECT pid, CAST((timestamp - t0) / w AS INTEGER) AS i, max(timestamp) - t0 AS t, max(rss) AS rss, max(threads) AS threads,
max(user_ns + system_ns) AS cpu_ns FROM process_usage, b GROUP BY pid, i ORDER BY pid, i`;

/* name -> [the table it needs, SQL]; an answer is an array of rows. */
const OF_RECORDING = {
	counters: ["counter", "SELECT name, value FROM counter"],
	usage: ["process_usage", BUCKETS],
	processes: ["process", `SELECT p.*, (SELECT count(*) FROM thread t WHERE t.pid = p.pid) AS threads,
		(SELECT sum(samples) FROM stack_total s WHERE s.pid = p.pid) AS samples,
		(SELECT sum(weight) FROM stack_total s WHERE s.pid = p.pid) AS weight FROM process p ORDER BY weight DESC LIMIT 100`],
	threads: ["thread", `SELECT t.pid, t.tid, t.name, sum(s.samples) AS samples, sum(s.weight) AS weight FROM thread t
		JOIN stack_total s ON s.pid = t.pid AND s.tid = t.tid GROUP BY t.pid, t.tid ORDER BY weight DESC LIMIT 50`],
	waits: ["sample_total", "SELECT state, sum(weight) AS weight FROM sample_total WHERE state IS NOT NULL GROUP BY state"],
	gpus: ["gpu_metrics", `SELECT ${GPU_COLUMNS} FROM gpu_metrics WHERE timestamp = (SELECT max(timestamp) FROM gpu_metrics) ORDER BY device`],
	gpuThrottles: ["gpu_metrics", "SELECT device, avg(throttled) AS share, group_concat(DISTINCT throttle_reasons) AS why FROM gpu_metrics GROUP BY device"],
	cgroups: ["cgroup_usage", `SELECT path, max(periods) - min(periods) AS periods, max(throttled_periods) - min(throttled_periods) AS stopped,
		max(throttled_ns) - min(throttled_ns) AS ns, max(oom_kills) - min(oom_kills) AS kills FROM cgroup_usage GROUP BY path`],
	steps: ["python.steps", "SELECT tid, count(*) AS n, min(timestamp) AS first, max(timestamp) AS last FROM python.steps GROUP BY tid"],
};
/* Samples of version 1 are rows. */
const OF_VERSION_1 = { waits: ["sample", "SELECT state, sum(weight) AS weight FROM sample WHERE state IS NOT NULL GROUP BY state"] };
const OF_PROCESS = {
	usage: ["process_usage", "SELECT pid, timestamp AS t, rss, threads, user_ns + system_ns AS cpu_ns FROM process_usage"],
	gpus: ["gpu_metrics", `SELECT ${GPU_COLUMNS} FROM gpu_metrics ORDER BY device`],
	cgroups: ["cgroup_usage", "SELECT path, periods, throttled_periods AS stopped, throttled_ns AS ns, oom_kills AS kills FROM cgroup_usage"],
	steps: ["python.steps", "SELECT tid, count(*) AS n, min(timestamp) AS first, max(timestamp) AS last FROM python.steps GROUP BY tid"],
};
/* Looks at threads that run on: asked with the tables, more seldom than the rest. */
const OF_ITS_GIL = { gil: ["python.gil", "SELECT sum(held) AS held, sum(waited) AS waited FROM python.gil"] };

/* What a target can answer: {rows by question, failures: sentences}. */
async function questions(target, all, tables) {
	const found = { failures: [] };

	await Promise.all(Object.entries(all).map(async ([name, [table, sql]]) => {
		found[name] = [];
		if (!tables.has(table))
			return;
		try {
			found[name] = (await query(target, sql)).rows;
		} catch (error) {
			found.failures.push(`${name}: ${error.message}`);
		}
	}));
	return found;
}

/* The same by one request, which costs the server a fraction. Where it fails, questions() says which one does. */
async function questionsAtOnce(target, all, tables) {
	const asked = Object.entries(all).filter(([, [table]]) => tables.has(table));
	const found = { failures: [], ...Object.fromEntries(Object.keys(all).map((name) => [name, []])) };

	try {
		const { results } = await query(target, asked.map(([, [, sql]]) => sql).join(";\n"));

		asked.forEach(([name], i) => { found[name] = results[i].rows; });
	} catch {
		return questions(target, all, tables);
	}
	return found;
}

/* ---- Ranks ---- */

const RANK_STEPS = "SELECT count(*) AS n, min(timestamp) AS first, max(timestamp) AS last FROM steps";

/* {nodes: rows of cluster.nodes that are ranks or hosts without an answer, rates: steps/s by host and rank, failures}; null: there are none. */
async function readRanks(state) {
	if (!state.hosts && state.targets.filter((one) => one.kind === "process" && one.running).length === 0)
		return null;
	const nodes = (await (await ask("/apis/nodes")).json()).filter((node) => node.rank !== null || node.problem);
	const found = { nodes, rates: new Map(), failures: [] };

	if (nodes.length === 0)
		return null;
	try {
		const rows = await (await ask("/apis/ranks/query", { each: 1 }, { method: "POST", body: RANK_STEPS })).json();

		rows.filter((row) => row.rank !== null).forEach((row) => found.rates.set(`${row.host} ${row.rank}`, rateOf(row)));
	} catch (error) {
		found.failures.push(`Steps of ranks: ${error.message}`);
	}
	return found;
}

function ranksList({ nodes, rates, failures }) {
	const rateOfNode = (node) => rates.get(`${node.host} ${node.rank}`) || null;
	const known = nodes.map(rateOfNode).filter(Boolean).sort((a, b) => a - b);
	const usual = known.length ? known[known.length >> 1] : 0;
	const row = (node) => {
		const rate = rateOfNode(node);
		const isSlow = rate && known.length > 1 && rate < 0.9 * usual;

		return [node.rank, node.host, node.pid, node.status, rate ? +rate.toFixed(2) : null,
			isSlow ? element("a", { className: "error", textContent: `Straggler: others make ${number(usual)} steps/s`, href: link({ view: "backtrace", all: "1" }) })
				: node.problem || ""];
	};

	return [listOf("Ranks", ["Rank", "Host", "PID", "State", "Steps/s", "Remark"], nodes.map(row)),
		...failures.map((sentence) => element("p", { className: "soft", textContent: sentence }))];
}

/* ---- Sums ---- */

const rateOf = ({ n, first, last }) => n > 1 && last > first ? (n - 1) / (last - first) : 0;

/* Of each process by itself: [[t, cores]...], summed where they have a reading of the same number. */
function coresOf(usage) {
	const sums = new Map();

	usage.forEach((row, i) => {
		const before = usage[i - 1];

		if (before && before.pid === row.pid && row.t > before.t) {
			const sum = sums.get(row.i) || [row.t, 0];

			sums.set(row.i, [row.t, sum[1] + (row.cpu_ns - before.cpu_ns) / 1e9 / (row.t - before.t)]);
		}
	});
	return [...sums.values()].sort((a, b) => a[0] - b[0]);
}

function sumOf(usage, name) {
	const sums = new Map();

	usage.forEach((row) => sums.set(row.i, [row.t, (sums.get(row.i) || [0, 0])[1] + (row[name] || 0)]));
	return [...sums.values()].sort((a, b) => a[0] - b[0]);
}

const mean = (points) => points.reduce((sum, [, y]) => sum + y, 0) / (points.length || 1);
const last = (points) => points.length ? points[points.length - 1][1] : 0;

/* ---- Warnings: [sentence, link] ---- */

/* Whose a thread is, as far as a recording knows it. */
function ownerOf(found, tid) {
	const thread = (found.threads || []).find((row) => row.tid === tid);
	const process = thread && found.processes.find((row) => row.pid === thread.pid);

	return process && typeof process.rank === "number" ? `rank ${process.rank} (thread ${tid})` : `thread ${tid}`;
}

function warningsOf(found, isProcess) {
	const counters = Object.fromEntries(found.counters ? found.counters.map((row) => [row.name, row.value]) : []);
	const warnings = [];
	const waits = found.waits || [];
	const total = (name) => gilLooks.reduce((sum, look) => sum + (look[name] || 0), 0);
	const gil = isProcess ? total("waited") : (waits.find((row) => row.state === "gil") || { weight: 0 }).weight;
	const running = isProcess ? total("held") : (waits.find((row) => row.state === "running") || { weight: 0 }).weight;
	const rates = found.steps.map((row) => ({ tid: row.tid, rate: rateOf(row) })).filter((one) => one.rate > 0).sort((a, b) => a.rate - b.rate);
	const usual = rates.length ? rates[rates.length >> 1].rate : 0;

	if (counters.lost > 0)
		warnings.push([`${plural(counters.lost, "sample")} lost: the buffers were full`, link({ view: "tables", sql: "SELECT * FROM counter" })]);
	if (counters.throttled > 0)
		warnings.push([`The kernel throttled the sampling ${plural(counters.throttled, "time")}`, link({ view: "tables", sql: "SELECT * FROM counter" })]);
	if (gil > 0.05 * (gil + running))
		warnings.push([`GIL contention: threads waited for it ${percent(gil, gil + running)} of the time in which they could have run`,
			link({ view: "tables", sql: isProcess ? "SELECT * FROM python.gil" : "SELECT * FROM gil" })]);
	for (const row of found.cgroups)
		if (row.stopped > 0.01 * row.periods)
			warnings.push([`CPU limit: the cgroup ${row.path} was stopped in ${percent(row.stopped, row.periods)} of its periods${
				isProcess ? " since its start" : ""}, ${seconds(row.ns / 1e9)} in all`, link({ view: "tables", sql: "SELECT * FROM cgroup_usage" })]);
	for (const row of found.cgroups)
		if (row.kills > 0)
			warnings.push([`Memory limit: ${plural(row.kills, "process")} of the cgroup ${row.path} killed`,
				link({ view: "tables", sql: "SELECT * FROM cgroup_usage" })]);
	for (const row of found.gpuThrottles || found.gpus.map((one) => ({ device: one.device, share: one.throttled, why: one.throttle_reasons })))
		if (row.share > 0.05)
			warnings.push([`GPU ${row.device}: power or heat held its clock down ${percent(row.share, 1)} of the time (${row.why})`,
				link({ view: "tables", sql: "SELECT * FROM gpu_metrics" })]);
	if (rates.length > 1 && rates[0].rate < 0.9 * usual)
		warnings.push([`Straggler: ${ownerOf(found, rates[0].tid)} makes ${number(rates[0].rate)} steps/s, others ${number(usual)}`,
			link({ view: isProcess ? "backtrace" : "flame", thread: rates[0].tid })]);
	return warnings;
}

/* ---- The picture ---- */

function tile(name, value, words, points) {
	const parts = [element("strong", { textContent: value }), element("span", { className: "soft", textContent: words })];

	if (points && points.length > 1)
		parts.push(spark(points, `${name} over time, now ${value}`));
	return element("div", { className: "tile" }, element("dt", { textContent: name }), element("dd", {}, ...parts));
}

function tilesOf(found, info) {
	const cores = coresOf(found.usage);
	const memory = sumOf(found.usage, "rss");
	const threads = sumOf(found.usage, "threads");
	const counters = Object.fromEntries((found.counters || []).map((row) => [row.name, row.value]));
	const rates = found.steps.map(rateOf).filter((rate) => rate > 0);
	const tiles = [];

	if (cores.length)
		tiles.push(tile("CPU", `${mean(cores).toFixed(2)} cores`, "mean", cores));
	else if (counters["cpu ns"])
		tiles.push(tile("CPU", seconds(counters["cpu ns"] / 1e9), "by the kernel's account"));
	if (memory.length)
		tiles.push(tile("Memory", bytes(last(memory)), "resident", memory));
	if (threads.length)
		tiles.push(tile("Threads", number(last(threads)), "", threads));
	if (rates.length)
		tiles.push(tile("Steps", `${number(Math.min(...rates))} /s`, rates.length > 1 ? `slowest of ${rates.length} threads` : "", null));
	if (info)
		tiles.push(tile("Samples", number(info.samples), info.lost ? `${number(info.lost)} lost` : "none lost"));
	for (const gpu of found.gpus)
		tiles.push(tile(`GPU ${gpu.device}`, gpu.gpu_util === null ? "unknown" : `${gpu.gpu_util} %`,
			[`${bytes(gpu.memory_used_mb * 1e6)} of ${bytes(gpu.memory_total_mb * 1e6)}`, gpu.temperature_c === null ? "" : `${gpu.temperature_c} °C`,
				gpu.power_w === null ? "" : `${Math.round(gpu.power_w)} W`].filter(Boolean).join(" · ")));
	return element("dl", { className: "tiles" }, ...tiles);
}

function warningList(found, isProcess) {
	const warnings = warningsOf(found, isProcess);

	return element("div", {}, element("h3", { textContent: "Warnings" }), warnings.length === 0
		? element("p", { className: "soft", textContent: isProcess || (found.waits || []).length > 0 ? "None."
			: "None. Waits for the GIL are known in recordings with --mode wall." })
		: element("ul", { className: "warnings" }, ...warnings.map(([sentence, href]) => element("li", {}, element("a", { href, textContent: sentence })))),
	...found.failures.map((sentence) => element("p", { className: "error", textContent: sentence })));
}

function amount(row, whole, unit) {
	return unit === "ns" ? `${seconds((row.weight || 0) / 1e9)} · ${percent(row.weight || 0, whole)}` : percent(row.weight || 0, whole);
}

function listOf(title, names, rows) {
	return element("div", { className: "part" }, element("h3", { textContent: title }),
		scroller(title, fill(element("table", {}), names, rows, title)));
}

function processesOf(found, unit) {
	const whole = found.processes.reduce((sum, row) => sum + (row.weight || 0), 0);
	const to = (row) => element("a", { textContent: row.pid, href: link({ view: "flame", rank: row.pid, thread: "" }) });
	const hasRanks = found.processes.some((row) => typeof row.rank === "number");

	return listOf("Processes", ["PID", ...(hasRanks ? ["Rank", "Host"] : []), "Name", "Python", "Threads", "Time", "Command"], found.processes.map((row) =>
		[to(row), ...(hasRanks ? [row.rank, row.host] : []), row.name, row.python, row.threads, amount(row, whole, unit), row.command]));
}

function threadsOf(found, unit) {
	const whole = found.threads.reduce((sum, row) => sum + row.weight, 0);
	const rates = new Map(found.steps.map((row) => [row.tid, rateOf(row)]));
	const to = (row) => element("a", { textContent: row.tid, href: link({ view: "flame", rank: row.pid, thread: row.tid }) });

	return listOf("Threads", ["TID", "Name", "Samples", "Time", "Steps/s"], found.threads.map((row) =>
		[to(row), row.name, row.samples, amount(row, whole, unit), rates.get(row.tid) ? +rates.get(row.tid).toFixed(2) : null]));
}

function versionsOf(run) {
	const facts = { Python: run.python, probing: run.probing, Host: run.host, Kernel: run.kernel, CPUs: run.cpus, Mode: run.mode,
		Rate: run.hz ? `${run.hz} Hz` : null, "Stack source": run.stack_source, Started: run.started && time(run.started),
		Duration: run.ended && seconds(run.ended - run.started), End: run.clean ? "clean" : run.ended ? "with an error" : "not yet, or the recorder was killed" };

	return element("div", { className: "part" }, element("h3", { textContent: "Run" }), element("dl", { className: "facts" },
		...Object.entries(facts).filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) =>
			element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value })))));
}

/* ---- Targets ---- */

function describe(one, chosen) {
	const to = element("a", { textContent: one.target, href: link({ target: one.target }) });

	if (one.target === chosen)
		to.setAttribute("aria-current", "true");
	if (one.kind === "fleet")
		return [to, one.kind, null, null, "", ""];
	if (one.kind === "process")
		return [to, one.kind, one.pid, one.python, one.running ? "running" : "ended", one.command];
	const info = one.info || {};
	const run = (info.runs || [])[0] || {};

	return [to, one.kind, run.pid, run.python, one.failure ? one.failure.error : plural(info.samples, "sample"), run.command];
}

/* ---- Showing ---- */

const targetsPart = element("div", { className: "part" });
const ranksPart = element("div", { className: "part", hidden: true });
const detail = element("div", { className: "detail" });
let timer = 0;
let readings = [];
let tables = new Set(); // of a process
let nReadings = 0;
let gilLooks = []; // {held, waited} each
let turn = 0;

async function showTargets(state) {
	const { targets } = await (await ask("/apis/overview")).json();
	const table = fill(element("table", { id: "overview" }), ["Target", "Kind", "PID", "Python", "State", "Command"],
		targets.map((one) => describe(one, state.target)), "Targets");

	targetsPart.replaceChildren(scroller("Targets", table));
}

async function showRecording(state) {
	const info = state.targetInfo.info || { runs: [{}] };
	const run = info.runs[0] || {};
	const all = info.schema_version === 1 ? { ...OF_RECORDING, ...OF_VERSION_1 } : OF_RECORDING;
	const found = await questions(state.target, all, await tablesOf(state.target));

	return () => renew(detail, element("h3", { className: "name", textContent: state.target }), tilesOf(found, info), warningList(found, false),
		processesOf(found, run.unit), threadsOf(found, run.unit), versionsOf(run));
}

/* Readings of a process add up while the view is open. */
async function showProcess(state) {
	const isFull = nReadings++ % RANKS_EVERY === 0;

	if (isFull)
		tables = await tablesOf(state.target);
	const found = await questionsAtOnce(state.target, isFull ? { ...OF_PROCESS, ...OF_ITS_GIL } : OF_PROCESS, tables);

	return () => {
		gilLooks = [...gilLooks, ...(found.gil || [])].slice(-GIL_HISTORY);
		readings = [...readings, ...found.usage.map((row) => ({ ...row, i: row.t }))].slice(-HISTORY);
		renew(detail, element("h3", { className: "name", textContent: `Process ${state.target}` }), tilesOf({ ...found, usage: readings }, null),
			warningList(found, true));
	};
}

async function showRanks(state, mine) {
	const found = await readRanks(state);

	if (mine !== turn)
		return;
	ranksPart.hidden = !found;
	renew(ranksPart, ...(found ? ranksList(found) : []));
}

async function show(body, state, changed) {
	const mine = ++turn;
	const isProcess = state.targetInfo.kind === "process";

	clearTimeout(timer);
	if (!body.firstChild)
		body.append(targetsPart, ranksPart, detail);
	if (changed.includes("target")) {
		readings = [];
		gilLooks = [];
		nReadings = 0;
		detail.replaceChildren(element("p", { className: "soft", textContent: "Reading." }));
	}
	await showTargets(state);
	showRanks(state, mine).catch((error) => {
		ranksPart.hidden = false;
		ranksPart.replaceChildren(element("p", { className: "error", textContent: error.message }));
	});
	if (isProcess && !state.targetInfo.running) {
		detail.replaceChildren(element("p", { textContent: `Process ${state.target} has ended.` }));
		return;
	}
	if (state.targetInfo.kind === "fleet") {
		detail.replaceChildren(element("p", {}, "A fleet has ", element("a", { href: link({ view: "tables" }), textContent: "tables" }), ", ",
			element("a", { href: link({ view: "flame" }), textContent: "flame graphs" }), " and ", element("a", { href: link({ view: "compare" }), textContent: "comparisons" }), " of what its machines have shipped."));
		return;
	}
	await refresh(state, mine);
}

async function refresh(state, mine) {
	const isProcess = state.targetInfo.kind === "process";

	try {
		const put = await (isProcess ? showProcess : showRecording)(state);

		if (mine !== turn)
			return;
		put();
		if (isProcess && !ranksPart.hidden && nReadings % RANKS_EVERY === 0)
			await showRanks(state, mine);
	} catch (error) {
		if (mine === turn)
			detail.replaceChildren(element("p", { className: "error", textContent: error.message }));
		return;
	}
	if (mine === turn && isProcess)
		timer = setTimeout(() => refresh(state, mine), REFRESH_MS);
}

function hide() {
	clearTimeout(timer);
	turn++;
}

view({ name: "overview", title: "Overview", kinds: ["process", "recording", "fleet"], show, hide });
