// SPDX-License-Identifier: MIT
// registry.js - the views of the page. Each is a module that calls view() once; views.js imports it.

export const views = [];

/*
 * view - add a view.
 * @name:    in the URL fragment: "flame".
 * @title:   its link and its heading.
 * @kinds:   the targets it is for: "process", "recording", "fleet"; default: the first two.
 * @ofHosts: also where the server shows the ranks of other machines, whatever the target.
 * @filters: the shared parts of the state it heeds (filters.js): "window", "thread", "rank", "function"; default: none.
 * @show:    show(element, state, changed): draw into a section that belongs to this view. Called when it is opened and at each change
 *           of the state while it is open. @changed: names of what differs from the state of the last call; all of them at the first.
 *           state.target names the target, state.targetInfo is its row of /apis/overview, state.targets has all
 *           of them; state.hasHtml: the server draws HTML flame graphs; state.allowsEval: it runs code;
 *           state.hosts: machines whose ranks it shows, or null.
 * @hide:    hide(): end timers and requests; optional.
 */
export function view({ name, title, kinds = ["process", "recording"], ofHosts = false, filters = [], show, hide = () => {} }) {
	views.push({ name, title, kinds, ofHosts, filters, show, hide });
}
