/* SPDX-License-Identifier: MIT */
/* state.js - what is looked at, kept in the page's address, so that a view can be bookmarked and Back undoes a step. */

const whole = (text, n) => /^\d+$/.test(text) && Number(text) < n ? Number(text) : 0;
const one = (text, list) => list.includes(text) ? text : list[0];

/*
 * makeState - @limits: nodes, colours, views, threads, labels, sources: how many there are, or their names, the usual one
 * first. @show: called with what has changed. Numbers that are out of range count as 0.
 */
export function makeState(limits, show) {
	const readers = {
		view: text => one(text, limits.views), zoom: text => whole(text, limits.nodes), search: text => text,
		thread: text => one(text, limits.threads), colour: text => one(text, limits.colours), icicle: text => one(text, ["", "1"]),
		function: text => whole(text, limits.labels), sort: text => one(text, limits.sorts),
		source: text => whole(text, limits.sources), line: text => whole(text, Infinity),
	};
	const usual = Object.fromEntries(Object.entries(readers).map(([name, read]) => [name, read("")]));
	const state = {...usual};

	function address() {
		const text = new URLSearchParams();
		for (const name of Object.keys(readers))
			if (state[name] !== usual[name])
				text.set(name, state[name]);
		return "#" + text;
	}

	/* @isSmall: no step of its own for Back. */
	function change(what, isSmall) {
		Object.assign(state, what);
		if (isSmall)
			history.replaceState(null, "", address());
		else if (address() !== (location.hash || "#"))
			history.pushState(null, "", address());
		show(Object.keys(what));
	}

	function restore() {
		const text = new URLSearchParams(location.hash.slice(1));
		const changed = [];
		for (const [name, read] of Object.entries(readers)) {
			const value = read(text.get(name) || "");
			if (value !== state[name])
				changed.push(name);
			state[name] = value;
		}
		show(changed);
	}

	return {state, change, restore};
}
