/* SPDX-License-Identifier: MIT */
/* dom.js - elements, and the patterns that people type. */

export function element(name, properties, ...children) {
	const {attributes, ...rest} = properties;
	const made = Object.assign(document.createElement(name), rest);
	Object.entries(attributes || {}).forEach(([key, value]) => made.setAttribute(key, value));
	made.append(...children);
	return made;
}

/* null: nothing is typed; undefined: it is no regular expression. Case matters only where it has a capital letter. */
export function compile(pattern) {
	try {
		return pattern ? new RegExp(pattern, /[A-Z]/.test(pattern) ? "" : "i") : null;
	} catch (error) {
		return undefined;
	}
}
