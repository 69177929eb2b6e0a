// SPDX-License-Identifier: MIT
// editor.js - a plain field for SQL, in builds without the page's libraries.

export function makeEditor(label, run) {
	const field = Object.assign(document.createElement("textarea"), { rows: 6, spellcheck: false, autocomplete: "off", ariaLabel: label });

	field.addEventListener("keydown", (event) => {
		if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
			run();
	});
	return Object.assign(field, { setCatalogue: () => {} });
}
