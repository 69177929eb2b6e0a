// SPDX-License-Identifier: MIT
// state.js - target, time range, thread and function, kept in the fragment of the URL: views link to each other, links can be shared, Back undoes a step.
//
// Shared by all views: target; since and until (seconds after the start of the recording); thread (a TID or a glob); rank (a PID or a
// glob of process names); function (a glob). Every other name belongs to one view and goes when another one is opened.

const OF_TARGET = ["since", "until", "thread", "rank", "function"];
const SHARED = ["view", "target", ...OF_TARGET];

export function read() {
	return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/* The state with these changes; null, undefined and "" remove a name. */
function merged(changes) {
	const now = read();
	const next = { ...now, ...changes };
	const otherView = next.view !== now.view;
	const otherTarget = next.target !== now.target;

	for (const name of Object.keys(next)) {
		const isNew = name in changes;
		const goes = (otherView && !SHARED.includes(name)) || (otherTarget && OF_TARGET.includes(name));

		if (next[name] === null || next[name] === undefined || next[name] === "" || (goes && !isNew))
			delete next[name];
	}
	return next;
}

/* A link to the state with these changes, for href. */
export const link = (changes) => "#" + new URLSearchParams(merged(changes));

/* change - go there. @isSmall: without a step of its own for Back. */
export function change(changes, isSmall) {
	const address = link(changes);

	if (address === (location.hash || "#"))
		return;
	history[isSmall ? "replaceState" : "pushState"](null, "", address);
	dispatchEvent(new HashChangeEvent("hashchange"));
}
