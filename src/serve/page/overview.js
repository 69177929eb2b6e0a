// SPDX-License-Identifier: MIT
// overview.js - the view of all targets.
import { element } from "../../export/html/dom.js";
import { ask } from "./api.js";
import { view } from "./registry.js";
import { link } from "./state.js";
import { fill, scroller } from "./table.js";

function describe(one) {
	const to = element("a", { textContent: one.target, href: link({ target: one.target }) });

	if (one.kind === "process")
		return [to, one.kind, one.pid, one.python, one.running ? "running" : "ended", one.command];
	const info = one.info || {};
	const run = (info.runs || [])[0] || {};

	return [to, one.kind, run.pid, run.python, one.failure ? one.failure.error : info.samples, run.command];
}

async function show(body) {
	const { targets } = await (await ask("/apis/overview")).json();
	const table = fill(element("table", { id: "overview" }), ["Target", "Kind", "PID", "Python", "State or samples", "Command"],
		targets.map(describe), "Targets");

	body.replaceChildren(scroller("Targets", table));
}

view({ name: "overview", title: "Overview", show });
