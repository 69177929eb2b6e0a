/* SPDX-License-Identifier: MIT */
/* format_csv.c - RFC 4180: a header, comma, CRLF, quotes if needed.
 *
 * NULL is an empty field and an empty text is "", so that the two differ.
 * A text's bytes are unchanged, because a program reads them; only on a terminal controls
 * are escaped (\x1b, \u202e). Cells that begin with = are not changed for spreadsheets.
 */
#include "src/sql/format.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/text.h"

struct csv {
	sqlite3_stmt *statement;
	FILE *out;
	struct sql_text field, visible;
	bool is_for_the_eye;
};

static void put_field(FILE *out, const char *bytes, size_t n)
{
	bool quoted = n == 0;

	for (size_t i = 0; i < n && !quoted; i++)
		quoted = strchr("\",\r\n", bytes[i]) != NULL;
	if (!quoted) {
		fwrite(bytes, 1, n, out);
		return;
	}
	putc('"', out);
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '"')
			putc('"', out);
		putc(bytes[i], out);
	}
	putc('"', out);
}

/* Write the text for programs, or escaped for a terminal. */
static int put_text(struct csv *csv, const char *bytes, size_t n)
{
	unsigned width = 0;
	int r;

	if (!csv->is_for_the_eye) {
		put_field(csv->out, bytes, n);
		return 0;
	}
	csv->visible.n = 0;
	r = sql_text_put_visible(&csv->visible, bytes, n, &width);
	if (r >= 0)
		put_field(csv->out, csv->visible.bytes, csv->visible.n);
	return r;
}

static int put_header(struct csv *csv)
{
	for (int i = 0; i < sqlite3_column_count(csv->statement); i++) {
		const char *name = sqlite3_column_name(csv->statement, i);

		int r;

		if (!name)
			return -ENOMEM;
		if (i > 0)
			putc(',', csv->out);
		r = put_text(csv, name, strlen(name));
		if (r < 0)
			return r;
	}
	fputs("\r\n", csv->out);
	return 0;
}

static int csv_begin(sqlite3_stmt *statement, FILE *out, const struct sql_look *look, void **ret)
{
	CLEANUP(freep) struct csv *csv = NULL;
	int r = 0;

	csv = calloc(1, sizeof *csv);
	if (!csv)
		return -ENOMEM;
	csv->statement = statement;
	csv->out = out;
	csv->is_for_the_eye = look->columns > 0;
	if (!look->no_header)
		r = put_header(csv);
	if (r < 0)
		return r;
	*ret = TAKE(csv);
	return 0;
}

static int csv_row(void *state)
{
	struct csv *csv = state;

	for (int i = 0; i < sqlite3_column_count(csv->statement); i++) {
		int r;

		if (i > 0)
			putc(',', csv->out);
		if (sqlite3_column_type(csv->statement, i) == SQLITE_NULL)
			continue;
		csv->field.n = 0;
		r = sql_text_put_value(&csv->field, csv->statement, i);
		if (r >= 0)
			r = put_text(csv, csv->field.bytes, csv->field.n);
		if (r < 0)
			return r;
	}
	fputs("\r\n", csv->out);
	return 0;
}

static int csv_end(void *state)
{
	(void)state;
	return 0;
}

static void csv_free(void *state)
{
	struct csv *csv = state;

	sql_text_done(&csv->field);
	sql_text_done(&csv->visible);
	free(csv);
}

const struct sql_writer sql_writer_csv = {
	.name = "csv",
	.begin = csv_begin,
	.row = csv_row,
	.end = csv_end,
	.free = csv_free,
};
