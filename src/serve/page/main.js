// SPDX-License-Identifier: MIT
// main.js - the frame of the page: its targets, the links to its views, and which one is open.
import { element } from "../../export/html/dom.js";
import { ask } from "./api.js";
import { makeFilters } from "./filters.js";
import { views } from "./registry.js";
import { change, link, read } from "./state.js";
import "./views.js";

const byId = (id) => document.getElementById(id);
const showFilters = makeFilters(byId("filters"));
const links = new Map();
const sections = new Map();
const shown = new Map(); // view -> the state that it was shown last
let targets = [];
let hasHtml = false;
let allowsEval = false;
let hosts = null; // whose ranks are shown, if not those of the targets
let open = null;

function say(text, isError) {
	byId("status").textContent = text;
	byId("status").classList.toggle("error", Boolean(isError));
}

function makeSections() {
	for (const view of views) {
		const id = `title-${view.name}`;
		const body = element("div", { className: "body" });

		links.set(view, element("a", { textContent: view.title }));
		sections.set(view, element("section", { className: view.name, hidden: true, attributes: { "aria-labelledby": id } },
			element("h2", { id, textContent: view.title }), body));
		byId("views").append(element("li", {}, links.get(view)));
		byId("main").append(sections.get(view));
	}
}

const isUsable = (view, kind) => view.kinds.includes(kind) || Boolean(view.ofHosts && hosts);

/* The state with defaults, as views get it. */
function complete(state) {
	const targetInfo = targets.find((one) => one.target === state.target) || targets[0];
	const usable = views.filter((view) => isUsable(view, targetInfo.kind));
	const view = usable.find((one) => one.name === state.view) || usable[0];

	return { ...state, view: view.name, target: targetInfo.target, targetInfo, targets, hasHtml, allowsEval, hosts };
}

function showLinks(view, state) {
	for (const [other, anchor] of links) {
		anchor.parentNode.hidden = !isUsable(other, state.targetInfo.kind);
		anchor.href = link({ view: other.name });
		if (other === view)
			anchor.setAttribute("aria-current", "page");
		else
			anchor.removeAttribute("aria-current");
	}
}

/* Views show their own failures; this is for what they miss. */
async function draw(view, state, changed) {
	try {
		await view.show(sections.get(view).lastChild, state, changed);
	} catch (error) {
		say(error.message, true);
	}
}

function update() {
	const state = complete(read());
	const view = views.find((one) => one.name === state.view);
	const before = shown.get(view) || {};
	const changed = [...new Set([...Object.keys(state), ...Object.keys(before)])].filter((name) => before[name] !== state[name]);

	if (open && open !== view) {
		open.hide();
		sections.get(open).hidden = true;
	} else if (open && changed.length === 0) {
		return;
	}
	open = view;
	shown.set(view, state);
	say("");
	sections.get(view).hidden = false;
	byId("target").value = state.target;
	document.title = `${view.title} · ${state.target} · probing`;
	showLinks(view, state);
	showFilters(view.filters, state);
	draw(view, state, changed);
}

async function start() {
	makeSections();
	({ targets, html: hasHtml, eval: allowsEval, hosts } = await (await ask("/apis/overview")).json());
	byId("target").replaceChildren(...targets.map((one) => element("option", { value: one.target, textContent: one.target })));
	byId("target").addEventListener("change", (event) => change({ target: event.target.value }));
	addEventListener("hashchange", update);
	addEventListener("popstate", update);
	update();
}

document.querySelector(".skip").addEventListener("click", (event) => {
	event.preventDefault();
	byId("main").focus();
});
start().catch((error) => say(error.message, true));
