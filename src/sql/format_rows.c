/* SPDX-License-Identifier: MIT */
/* format_rows.c - exact values for programs: types, order and names of columns are kept.
 *
 * A line for each result set, {"columns": ["a", "b"]}, then a line for each row, [1, "x"]. Integers and reals are
 * numbers (a real has a point or an exponent), NULL is null. Values that JSON lacks are objects:
 * {"blob": "00ff"}, {"real": "-inf"}. Text that is not UTF-8 gets U+FFFD for each invalid byte.
 */
#include "src/sql/format.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "src/sql/text.h"

struct rows {
	sqlite3_stmt *statement;
	FILE *out;
	struct json line;
	struct sql_text value, clean;
};

static void rows_free(void *state)
{
	struct rows *rows = state;

	if (!rows)
		return;
	to_json_done(&rows->line);
	sql_text_done(&rows->value);
	sql_text_done(&rows->clean);
	free(rows);
}

DEFINE_CLEANUP(struct rows *, rows_free)

static int put_text(struct rows *rows, const char *bytes, size_t n)
{
	int r;

	rows->clean.n = 0;
	r = sql_text_put_utf8(&rows->clean, bytes, n);
	if (r < 0)
		return r;
	to_json_bytes(&rows->line, rows->clean.bytes, rows->clean.n);
	return 0;
}

static int put_object(struct rows *rows, const char *kind)
{
	int r;

	to_json_object(&rows->line);
	to_json_key(&rows->line, kind);
	r = put_text(rows, rows->value.bytes, rows->value.n);
	to_json_object_end(&rows->line);
	return r;
}

static int put_value(struct rows *rows, int column)
{
	int type = sqlite3_column_type(rows->statement, column), r;

	rows->value.n = 0;
	r = sql_text_put_value(&rows->value, rows->statement, column);
	if (r < 0)
		return r;
	switch (type) {
	case SQLITE_NULL:
		to_json_null(&rows->line);
		return 0;
	case SQLITE_TEXT:
		return put_text(rows, rows->value.bytes, rows->value.n);
	case SQLITE_BLOB:
		return put_object(rows, "blob");
	case SQLITE_FLOAT:
		if (!isfinite(sqlite3_column_double(rows->statement, column)))
			return put_object(rows, "real");
		break;
	default:
		break;
	}
	to_json_digits(&rows->line, rows->value.bytes, rows->value.n);
	return 0;
}

static int write_line(struct rows *rows)
{
	int r = to_json_next(&rows->line, rows->out);

	if (r >= 0)
		putc('\n', rows->out);
	return r;
}

static int put_columns(struct rows *rows)
{
	int r = 0;

	to_json_object(&rows->line);
	to_json_put_array(&rows->line, "columns");
	for (int i = 0; i < sqlite3_column_count(rows->statement) && r >= 0; i++) {
		const char *name = sqlite3_column_name(rows->statement, i);

		r = name ? put_text(rows, name, strlen(name)) : -ENOMEM;
	}
	to_json_array_end(&rows->line);
	to_json_object_end(&rows->line);
	return r < 0 ? r : write_line(rows);
}

static int rows_begin(sqlite3_stmt *statement, FILE *out, const struct sql_look *look, void **ret)
{
	CLEANUP(rows_freep) struct rows *rows = calloc(1, sizeof *rows);
	int r;

	(void)look;
	if (!rows)
		return -ENOMEM;
	rows->statement = statement;
	rows->out = out;
	to_json_keep(NULL, &rows->line);
	r = put_columns(rows);
	if (r < 0)
		return r;
	*ret = TAKE(rows);
	return 0;
}

static int rows_row(void *state)
{
	struct rows *rows = state;
	int r = 0;

	to_json_array(&rows->line);
	for (int i = 0; i < sqlite3_column_count(rows->statement) && r >= 0; i++)
		r = put_value(rows, i);
	to_json_array_end(&rows->line);
	return r < 0 ? r : write_line(rows);
}

static int rows_end(void *state)
{
	(void)state;
	return 0;
}

const struct sql_writer sql_writer_rows = {
	.name = "rows",
	.begin = rows_begin,
	.row = rows_row,
	.end = rows_end,
	.free = rows_free,
};
