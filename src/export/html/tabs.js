/* SPDX-License-Identifier: MIT */
/* tabs.js - views of which one is seen; arrow keys go from tab to tab, as ARIA's authoring practices have it. */
import {element} from "./dom.js";

/* @views: [{name, words, host}], at least two for there to be tabs. @returns host (null: there are none) and show(name). */
export function makeTabs(views, onPick) {
	const tabs = views.map(({name, words, host}) => {
		const tab = element("button", {type: "button", id: `tab-${name}`, textContent: words, onclick: () => onPick(name),
			attributes: {role: "tab", "aria-controls": `view-${name}`}});
		host.id = `view-${name}`;
		if (views.length > 1) {
			host.setAttribute("role", "tabpanel");
			host.setAttribute("aria-labelledby", tab.id);
		}
		return tab;
	});

	function onKey(event) {
		const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
		if (!step)
			return;
		event.preventDefault();
		const next = (tabs.indexOf(event.target) + step + tabs.length) % tabs.length;
		onPick(views[next].name);
		tabs[next].focus();
	}

	return {
		host: views.length > 1 ? element("div", {className: "tabs", onkeydown: onKey, attributes: {role: "tablist", "aria-label": "Views"}}, ...tabs) : null,
		show: name => views.forEach((view, i) => {
			view.host.hidden = view.name !== name;
			tabs[i].setAttribute("aria-selected", String(view.name === name));
			tabs[i].tabIndex = view.name === name ? 0 : -1;
		}),
	};
}
