/* SPDX-License-Identifier: MIT */
/* format_markdown.c - a table of Markdown, as GitHub and others read it (GFM, "Tables").
 *
 * A row is a line, so line ends in cells are escaped (\n). Markdown's special characters are
 * escaped: a function called <module> stays readable. An underscore within a word is not special.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/format.h"
#include "src/sql/text.h"

struct markdown {
	sqlite3_stmt *statement;
	FILE *out;
	struct sql_text value, visible;
};

static bool is_within_word(const char *bytes, size_t n, size_t i)
{
	return i > 0 && i + 1 < n && isalnum((unsigned char)bytes[i - 1]) && isalnum((unsigned char)bytes[i + 1]);
}

static void put_cell(struct markdown *markdown, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strchr("\\|<&`*[]~", bytes[i]) || (bytes[i] == '_' && !is_within_word(bytes, n, i)))
			putc('\\', markdown->out);
		putc(bytes[i], markdown->out);
	}
}

static int put_visible(struct markdown *markdown, const char *bytes, size_t n)
{
	unsigned width = 0;
	int r;

	markdown->visible.n = 0;
	r = sql_text_put_visible(&markdown->visible, bytes, n, &width);
	if (r < 0)
		return r;
	put_cell(markdown, markdown->visible.bytes, markdown->visible.n);
	return 0;
}

static int put_value(struct markdown *markdown, int column)
{
	int r;

	markdown->value.n = 0;
	r = sql_text_put_value(&markdown->value, markdown->statement, column);
	return r < 0 ? r : put_visible(markdown, markdown->value.bytes, markdown->value.n);
}

static void markdown_free(void *state)
{
	struct markdown *markdown = state;

	sql_text_done(&markdown->value);
	sql_text_done(&markdown->visible);
	free(markdown);
}

static int put_head(struct markdown *markdown)
{
	int n = sqlite3_column_count(markdown->statement), r = 0;

	fputs("|", markdown->out);
	for (int i = 0; i < n && r >= 0; i++) {
		const char *name = sqlite3_column_name(markdown->statement, i);

		putc(' ', markdown->out);
		r = name ? put_visible(markdown, name, strlen(name)) : -ENOMEM;
		fputs(" |", markdown->out);
	}
	fputs("\n|", markdown->out);
	for (int i = 0; i < n; i++)
		fputs(" --- |", markdown->out);
	putc('\n', markdown->out);
	return r;
}

static int markdown_begin(sqlite3_stmt *statement, FILE *out, const struct sql_look *look, void **ret)
{
	struct markdown *markdown = calloc(1, sizeof *markdown);
	int r;

	(void)look; /* a table needs its header */
	if (!markdown)
		return -ENOMEM;
	markdown->statement = statement;
	markdown->out = out;
	r = put_head(markdown);
	if (r < 0) {
		markdown_free(markdown);
		return r;
	}
	*ret = markdown;
	return 0;
}

static int markdown_row(void *state)
{
	struct markdown *markdown = state;

	fputs("|", markdown->out);
	for (int i = 0; i < sqlite3_column_count(markdown->statement); i++) {
		int r;

		putc(' ', markdown->out);
		r = put_value(markdown, i);
		if (r < 0)
			return r;
		fputs(" |", markdown->out);
	}
	putc('\n', markdown->out);
	return 0;
}

static int markdown_end(void *state)
{
	(void)state;
	return 0;
}

const struct sql_writer sql_writer_markdown = {
	.name = "markdown",
	.begin = markdown_begin,
	.row = markdown_row,
	.end = markdown_end,
	.free = markdown_free,
};
