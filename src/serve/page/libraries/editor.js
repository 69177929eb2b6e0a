// SPDX-License-Identifier: MIT
// editor.js - the field for SQL: CodeMirror, with completion of tables, columns and words of SQL. The build bundles it; none/editor.js stands in
// where the libraries are missing.
//
// The editor is in a shadow root: there CodeMirror constructs its style sheets, so the page's policy forbids inline styles without an exception.
import { acceptCompletion, autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLDialect, SQLite, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, Prec } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const MAX_NAMES = 20000; // tables and columns; a file of somebody else may have any number

const DIALECT = SQLDialect.define({ ...SQLite.spec, keywords: `${SQLite.spec.keywords} show describe tables interval`,
	builtin: "avg coalesce count group_concat hour max min now percentile_cont round sum total" });

const LOOK = EditorView.theme({
	"&": { font: "13px/1.5 var(--mono)", color: "var(--text)", background: "var(--page)", border: "1px solid var(--edge)", borderRadius: "5px",
		minHeight: "9.5em", maxHeight: "50vh" },
	"&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
	".cm-scroller": { font: "inherit", overflow: "auto" },
	".cm-content": { padding: "8px 6px", caretColor: "var(--text)" },
	".cm-tooltip": { background: "var(--page)", color: "var(--text)", border: "1px solid var(--edge)", borderRadius: "5px" },
	".cm-tooltip.cm-tooltip-autocomplete > ul": { font: "12px/1.6 var(--mono)" },
	".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent-page)", color: "var(--text)" },
	".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal", marginLeft: "10px" },
	".cm-completionInfo": { font: "12px/1.5 system-ui, sans-serif", padding: "4px 8px" },
	".cm-matchingBracket": { background: "var(--accent-page) !important" },
	".cm-specialChar": { color: "var(--bad)" },
});
const COLOURS = HighlightStyle.define([
	{ tag: [tags.keyword, tags.typeName, tags.standard(tags.name)], color: "var(--accent)" },
	{ tag: [tags.string, tags.number, tags.bool, tags.null], color: "var(--literal)" },
	{ tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
]);

const isPlain = (name) => /^[a-z_]\w*$/i.test(name);
const quoted = (name) => isPlain(name) ? undefined : `"${name.replace(/"/g, '""')}"`;

function optionOf({ column_name: label, unit, remarks }) {
	return { label, type: "property", apply: quoted(label), detail: unit || undefined, info: remarks || undefined };
}

/* What lang-sql completes: tables, and columns behind the name or the alias of a table. */
function schemaOf(catalogue) {
	return Object.fromEntries([...catalogue].map(([name, columns]) => {
		const own = name.split(".").pop();

		return [name, { self: { label: own, type: "type", apply: quoted(own), detail: "table" }, children: columns.map(optionOf) }];
	}));
}

/* columnsOf - the columns of all tables that a text names, wherever: SELECT is written before FROM. */
export function columnsOf(text, catalogue) {
	const words = new Set(text.match(/[\w.]+/g));
	const named = [...catalogue].filter(([name]) => isPlain(name.replace(/\./g, "_")) ? words.has(name) : text.includes(name));

	return named.flatMap(([table, columns]) => columns.map((column) => ({ ...optionOf(column), detail: [table, column.unit].filter(Boolean).join(" · "), boost: 1 })));
}

function languageOf(catalogue) {
	const n = [...catalogue.values()].reduce((sum, columns) => sum + columns.length + 1, 0);

	return [
		sql({ dialect: DIALECT, upperCaseKeywords: true, schema: n <= MAX_NAMES ? schemaOf(catalogue) : {} }),
		DIALECT.language.data.of({ autocomplete: (context) => {
			const before = context.matchBefore(/[\w.]*/);

			if (before.text.includes(".") || (before.from === before.to && !context.explicit))
				return null;
			return { from: before.from, options: columnsOf(context.state.doc.toString(), catalogue), validFor: /^\w*$/ };
		} }),
	];
}

/* Text that is typed over other text: Chromium gives it the other text's look by an inline style, which the page's policy forbids. */
const REPLACE = EditorView.domEventHandlers({ beforeinput: (event, view) => {
	if (event.inputType !== "insertText" || event.data === null || view.state.selection.main.empty)
		return false;
	view.dispatch(view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true }));
	return true;
} });

/*
 * makeEditor - an element like a text area.
 * @label: what a screen reader says.
 * @run:   called by Ctrl-Enter.
 * It has value, focus() and select(); setCatalogue(catalogue): name of a table -> rows of information_schema.columns.
 */
export function makeEditor(label, run) {
	const host = document.createElement("div");
	const language = new Compartment();
	const keys = Prec.highest(keymap.of([
		{ key: "Mod-Enter", run: () => { run(); return true; } },
		{ key: "Tab", run: acceptCompletion }, // without a list, Tab goes to the next control
	]));
	const view = new EditorView({
		parent: host.attachShadow({ mode: "open" }), root: host.shadowRoot,
		extensions: [keys, history(), keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap]), autocompletion({ icons: false, interactionDelay: 0 }),
			language.of(languageOf(new Map())), REPLACE, highlightSpecialChars(), bracketMatching(), syntaxHighlighting(COLOURS), LOOK, EditorView.lineWrapping,
			EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" })],
	});

	Object.defineProperty(host, "value", {
		get: () => view.state.doc.toString(),
		set: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } }),
	});
	return Object.assign(host, {
		focus: () => view.focus(),
		select: () => view.dispatch({ selection: { anchor: 0, head: view.state.doc.length } }),
		setCatalogue: (catalogue) => view.dispatch({ effects: language.reconfigure(languageOf(catalogue)) }),
	});
}
