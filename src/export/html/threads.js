/* SPDX-License-Identifier: MIT */
/* threads.js - the choice of a thread, or of all those of a process. */
import {element} from "./dom.js";

const nameOf = thread => thread.pid ? `${thread.name || "thread"} (${thread.tid})` : "all other threads";
const keyOf = thread => `${thread.pid}/${thread.tid}`;

/* What there is to choose from: [{key, words, threads, process}]; key "" is all, process "" stands by itself. */
export function choicesOf(profile) {
	const byProcess = new Map();
	for (const thread of profile.threads)
		byProcess.set(thread.pid, [...byProcess.get(thread.pid) || [], thread]);
	const choices = [{key: "", words: "all", threads: profile.threads, process: ""}];
	for (const [pid, threads] of byProcess) {
		const process = pid ? `${threads[0].process || "process"} (${pid})` : "";
		if (byProcess.size > 1 && pid)
			choices.push({key: `${pid}`, words: "all its threads", threads, process});
		choices.push(...threads.map(thread => ({key: keyOf(thread), words: nameOf(thread), threads: [thread], process: byProcess.size > 1 ? process : ""})));
	}
	return choices;
}

export function makePicker(choices, onPick) {
	const groups = new Map();
	const select = element("select", {className: "threads", onchange: () => onPick(select.value)});
	for (const {key, words, process} of choices) {
		const option = element("option", {value: key, textContent: words});
		if (process && !groups.has(process)) {
			groups.set(process, element("optgroup", {label: process}));
			select.append(groups.get(process));
		}
		(groups.get(process) || select).append(option);
	}
	return select;
}
