/* SPDX-License-Identifier: MIT */
/* manual.c - manual pages from the descriptors of verbs: man(7), groff_man(7). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/cli/aliases.h"
#include "src/cli/described.h"
#include "src/store/store.h"

/* A character in running text. '-' is typed as it is in commands, so it stays a plain minus. */
static void put_char(char c, FILE *out)
{
	switch (c) {
	case '\\':
		fputs("\\e", out);
		break;
	case '-':
		fputs("\\-", out);
		break;
	case '`':
		fputs("\\(ga", out);
		break;
	case '\'':
		fputs("\\(aq", out);
		break;
	case '^':
		fputs("\\(ha", out);
		break;
	case '~':
		fputs("\\(ti", out);
		break;
	default:
		fputc(c, out);
	}
}

/* A line of text; "." and "'" at its start would be a request. */
static void put_line(const char *line, size_t n, FILE *out)
{
	if (n > 0 && line[0] == '.')
		fputs("\\&", out);
	for (size_t i = 0; i < n; i++)
		put_char(line[i], out);
	fputc('\n', out);
}

static void put_text(const char *text, FILE *out)
{
	put_line(text, strlen(text), out);
}

/* Lines that begin with two spaces are typed or shown as they are; an empty line ends a paragraph. */
static void put_paragraphs(const char *text, FILE *out)
{
	bool is_example = false;

	for (size_t n; *text; text += n + (text[n] == '\n')) {
		bool indented = strncmp(text, "  ", 2) == 0;

		n = strcspn(text, "\n");
		if (n == 0) {
			fputs(is_example ? ".EE\n.RE\n.PP\n" : ".PP\n", out);
			is_example = false;
			continue;
		}
		if (indented && !is_example)
			fputs(".RS 4\n.EX\n", out);
		if (!indented && is_example)
			fputs(".EE\n.RE\n.PP\n", out);
		is_example = indented;
		put_line(text + (indented ? 2 : 0), n - (indented ? 2 : 0), out);
	}
	if (is_example)
		fputs(".EE\n.RE\n", out);
}

static void put_title(const char *name, unsigned section, FILE *out)
{
	fputs(".TH PROBING", out);
	if (name) {
		fputs("\\-", out);
		for (const char *c = name; *c; c++)
			put_char(*c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c, out);
	}
	fprintf(out, " %u \"\" \"probing %s\" \"probing\"\n", section, cli_version);
}

/* The forms of a command line: args_doc has one a line. @above: "cluster "; "": none. */
static void put_synopsis(const char *above, const struct verb *verb, FILE *out)
{
	const char *forms = verb->argp->args_doc ? verb->argp->args_doc : "";

	for (size_t n;; forms += n + 1) {
		n = strcspn(forms, "\n");
		fprintf(out, ".B probing %s%s\n[\\fIOPTION\\fR...]\n", above, verb->name);
		if (n > 0)
			put_line(forms, n, out);
		if (!forms[n])
			return;
		fputs(".br\n", out);
	}
}

static void put_option_names(const struct described_option *option, FILE *out)
{
	const char *separator = "";

	for (const char *letter = option->letters; *letter; letter++, separator = ", ")
		fprintf(out, "%s\\fB\\-%c\\fR", separator, *letter);
	for (unsigned i = 0; i < MAX_OPTION_NAMES && option->names[i]; i++, separator = ", ") {
		fprintf(out, "%s\\fB\\-\\-", separator);
		for (const char *c = option->names[i]; *c; c++)
			put_char(*c, out);
		fputs("\\fR", out);
	}
	if (option->argument) {
		fputs(option->may_lack_argument ? "[=\\fI" : "=\\fI", out);
		for (const char *c = option->argument; *c; c++)
			put_char(*c, out);
		fputs(option->may_lack_argument ? "\\fR]" : "\\fR", out);
	}
	fputc('\n', out);
}

static int put_options(const struct verb *verb, FILE *out)
{
	CLEANUP(described_done) struct described described = { 0 };
	int r = described_init(verb, &described);

	if (r < 0)
		return r;
	for (size_t i = 0; i < described.n; i++) {
		const struct described_option *option = &described.options[i];
		CLEANUP(freep) char *text = described_text(verb, option->row->key, option->row->doc);

		fputs(".TP\n", out);
		put_option_names(option, out);
		put_text(text ? text : "", out);
	}
	return 0;
}

static int put_aliases(const struct verb *verb, FILE *out)
{
	CLEANUP(aliases_done) struct aliased aliased = { 0 };
	CLEANUP(freep) char *text = NULL;
	int r = aliases_init(verb->name, verb->argp, &aliased);

	if (r < 0)
		return r;
	text = aliases_help(&aliased);
	if (!text)
		return 0;
	fputs(".SH \"OPTIONS OF OTHER TOOLS\"\n", out);
	put_text(text + strlen("Options of other tools: "), out);
	return 0;
}

/* A verb below another one, as a section of its page. */
static int put_below(const struct verb *above, const struct verb *verb, FILE *out)
{
	CLEANUP(freep) char *before = described_before(verb), *after = described_after(verb);
	char words[64];
	int r;

	snprintf(words, sizeof words, "%s ", above->name);
	fprintf(out, ".SH \"%s%s\"\n", words, verb->name);
	put_synopsis(words, verb, out);
	fputs(".PP\n", out);
	put_paragraphs(before ? before : "", out);
	r = put_options(verb, out);
	if (r < 0)
		return r;
	fputs(".PP\n", out);
	put_paragraphs(after ? after : "", out);
	return 0;
}

static int write_verb(const struct verb *verb, FILE *out)
{
	CLEANUP(freep) char *before = described_before(verb), *after = described_after(verb);
	int r;

	put_title(verb->name, 1, out);
	fprintf(out, ".SH NAME\nprobing\\-%s \\- ", verb->name);
	put_text(verb->summary, out);
	fputs(".SH SYNOPSIS\n", out);
	put_synopsis("", verb, out);
	fputs(".SH DESCRIPTION\n", out);
	put_paragraphs(before ? before : "", out);
	if (verb->aliases)
		fprintf(out, ".PP\nOther names of this verb: %s.\n", verb->aliases);
	fputs(".SH OPTIONS\n", out);
	r = put_options(verb, out);
	if (r < 0)
		return r;
	if (after) {
		fputs(".SH NOTES\n", out);
		put_paragraphs(after, out);
	}
	r = put_aliases(verb, out);
	for (const struct verb *const *below = verb->below; r >= 0 && below && *below; below++)
		if ((*below)->summary)
			r = put_below(verb, *below, out);
	if (r < 0)
		return r;
	fputs(".SH \"EXIT STATUS\"\nSee\n.BR probing (1).\n.SH \"SEE ALSO\"\n.BR probing (1)\n", out);
	return 0;
}

static void write_overview(FILE *out)
{
	put_title(NULL, 1, out);
	fputs(".SH NAME\nprobing \\- see where a running Python program spends its time\n"
	      ".SH SYNOPSIS\n.B probing\n\\fIVERB\\fR [\\fIOPTION\\fR...]\n.br\n.B probing\n\\fIPID\\fR|\\fIFILE\\fR "
	      "\\fIVERB\\fR [\\fIOPTION\\fR...]\n.br\n.B probing\n\\fIPID\\fR|\\fIFILE\\fR \\(aqSELECT ...\\(aq\n"
	      ".SH DESCRIPTION\n",
	      out);
	put_text("probing records Python and native frames of running programs in one stack, without a change to the "
		 "program. A recording is one SQLite file. It answers in SQL, as reports and as flame graphs.",
		 out);
	fputs(".SH VERBS\n", out);
	for (size_t i = 0; verbs[i]; i++) {
		fprintf(out, ".TP\n.BR probing\\-%s (1)\n", verbs[i]->name);
		put_text(verbs[i]->summary, out);
	}
	fputs(".SH \"EXIT STATUS\"\n", out);
	for (size_t i = 0; cli_exit_statuses[i].meaning; i++) {
		fprintf(out, ".TP\n%d\n", cli_exit_statuses[i].status);
		put_text(cli_exit_statuses[i].meaning, out);
	}
	fputs(".SH ENVIRONMENT\n.TP\nNO_COLOR, CLICOLOR_FORCE\n", out);
	put_text("Print without colours; with colours, also into a pipe. NO_COLOR wins, and --color before both.", out);
	fputs(".TP\nCOLUMNS\n", out);
	put_text("Width of tables, reports and help, in place of the terminal's.", out);
	fputs(".TP\nPROBING_PAGER, PAGER\n", out);
	put_text("Command that shows long text on a terminal. Empty or cat: none. Default: less, with LESS=FRX.", out);
	fputs(".TP\nPROBING_DATA_DIR\n", out);
	put_text("Folder of probing.db, where no recording is named.", out);
	fputs(".TP\nPROBING_LOGLEVEL\n", out);
	put_text("With error, print errors alone.", out);
	fputs(".SH \"SEE ALSO\"\n.BR probing\\-schema (7),\n.BR probing\\-format (5).\n", out);
	put_text("The guides in probing's folder docs.", out);
}

/* ---- Tables and the file format ---- */

static void put_columns(const struct catalogue_table *table, FILE *out)
{
	for (size_t i = 0; i < table->n_columns; i++) {
		const struct catalogue_column *column = &table->columns[i];

		fputs(".TP\n\\fB", out);
		for (const char *c = column->name; *c; c++)
			put_char(*c, out);
		fprintf(out, "\\fR  %s%s%s%s\n", column->type, column->unit ? " (" : "",
			column->unit ? column->unit : "", column->unit ? ")" : "");
		put_text(column->doc ? column->doc : "", out);
	}
}

static void write_schema(FILE *out)
{
	put_title("schema", 7, out);
	fputs(".SH NAME\nprobing\\-schema \\- tables that probing answers in SQL\n.SH DESCRIPTION\n", out);
	put_text(
		"Tables of the schema main are those of recordings. The others are of running processes, of the rows that "
		"programs write about themselves, and of several machines; recordings have some of them, too.",
		out);
	for (size_t i = 0; catalogue_tables[i]; i++) {
		const struct catalogue_table *table = catalogue_tables[i];

		fprintf(out, ".SH \"%s.%s\"\n", table->schema, table->name);
		put_text(table->doc ? table->doc : "", out);
		put_columns(table, out);
	}
	fputs(".SH \"SEE ALSO\"\n.BR probing\\-sql (1),\n.BR probing\\-tables (1),\n.BR probing\\-format (5)\n", out);
}

static void write_format(FILE *out)
{
	put_title("format", 5, out);
	fputs(".SH NAME\nprobing\\-format \\- file format of recordings\n.SH DESCRIPTION\n", out);
	put_text(
		"A recording is one SQLite 3 file, which any SQLite tool reads. Beside a recording that is being written there is "
		"FILE-wal, its log.",
		out);
	fprintf(out, ".PP\nPRAGMA application_id is 0x%x, PRAGMA user_version the version of the schema, %d. ",
		STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
	put_text("Files of newer versions are refused.", out);
	fputs(".PP\n", out);
	put_text(
		"Samples are compressed columns, some thousand in a row of sample_block. The table sample shows them in probing, and "
		"in SQLite with probing's extension. Stacks are a tree: stack.parent is the stack of the caller, NULL at the "
		"root. Times are seconds since 1970, UTC.",
		out);
	fputs(".SH TABLES\n", out);
	for (size_t i = 0; catalogue_tables[i]; i++) {
		const struct catalogue_table *table = catalogue_tables[i];

		if (strcmp(table->schema, "main") != 0 || table->kind == CATALOGUE_VIEW)
			continue;
		fprintf(out, ".TP\n.B %s\n", table->name);
		put_text(table->doc ? table->doc : "", out);
	}
	fputs(".SH \"SEE ALSO\"\n.BR probing\\-schema (7),\n.BR probing\\-sql (1),\n.BR probing\\-info (1)\n", out);
}

static const struct {
	const char *name;
	void (*write)(FILE *out);
} pages[] = { { "schema", write_schema }, { "format", write_format } };

int manual_write_page(const char *name, FILE *out)
{
	for (size_t i = 0; i < N_ELEMENTS(pages); i++) {
		if (strcmp(pages[i].name, name) != 0)
			continue;
		pages[i].write(out);
		return 0;
	}
	return -ENOENT;
}

int manual_write(const struct verb *verb, FILE *out)
{
	if (verb)
		return write_verb(verb, out);
	write_overview(out);
	return 0;
}
