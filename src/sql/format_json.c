/* SPDX-License-Identifier: MIT */
/* format_json.c - an array of objects, a row each, on a line of its own; and such lines alone (jsonl).
 *
 * Numbers remain numbers (infinity, which JSON lacks, is null), a blob is its
 * bytes in hexadecimal, and text becomes valid UTF-8. Keys are unique in an
 * object: the second column called x is "x_2".
 */
#include "src/sql/format.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "src/sql/text.h"

struct json_rows {
	sqlite3_stmt *statement;
	FILE *out;
	struct json object; /* of the current row */
	char **keys;
	int n_keys;
	bool is_array;
	bool has_rows;
	struct sql_text value, clean;
};

static void json_free(void *state)
{
	struct json_rows *rows = state;

	if (!rows)
		return;
	to_json_done(&rows->object);
	for (int i = 0; i < rows->n_keys; i++)
		free(rows->keys[i]);
	free(rows->keys);
	sql_text_done(&rows->value);
	sql_text_done(&rows->clean);
	free(rows);
}

DEFINE_CLEANUP(struct json_rows *, json_free)

static bool key_is_taken(const struct json_rows *rows, const char *key)
{
	for (int i = 0; i < rows->n_keys; i++)
		if (strcmp(rows->keys[i], key) == 0)
			return true;
	return false;
}

static int add_key(struct json_rows *rows, const char *name)
{
	CLEANUP(freep) char *base = NULL, *key = NULL;
	int r;

	rows->clean.n = 0;
	r = sql_text_put_utf8(&rows->clean, name, strlen(name));
	if (r < 0)
		return r;
	base = strndup(rows->clean.n > 0 ? rows->clean.bytes : "", rows->clean.n);
	key = base ? strdup(base) : NULL;
	for (int n = 2; key && key_is_taken(rows, key); n++) {
		free(TAKE(key));
		if (asprintf(&key, "%s_%d", base, n) < 0)
			key = NULL;
	}
	if (!key)
		return -ENOMEM;
	rows->keys[rows->n_keys++] = TAKE(key);
	return 0;
}

static int begin(sqlite3_stmt *statement, FILE *out, bool is_array, void **ret)
{
	CLEANUP(json_freep) struct json_rows *rows = NULL;
	int n_columns = sqlite3_column_count(statement);

	rows = calloc(1, sizeof *rows);
	if (!rows)
		return -ENOMEM;
	rows->statement = statement;
	rows->out = out;
	rows->is_array = is_array;
	rows->keys = calloc((size_t)n_columns, sizeof *rows->keys);
	if (!rows->keys)
		return -ENOMEM;
	to_json_keep(NULL, &rows->object);
	for (int i = 0; i < n_columns; i++) {
		const char *name = sqlite3_column_name(statement, i);
		int r = name ? add_key(rows, name) : -ENOMEM;

		if (r < 0)
			return r;
	}
	if (is_array)
		putc('[', out);
	*ret = TAKE(rows);
	return 0;
}

static int json_begin(sqlite3_stmt *statement, FILE *out, const struct sql_look *look, void **ret)
{
	(void)look;
	return begin(statement, out, true, ret);
}

static int jsonl_begin(sqlite3_stmt *statement, FILE *out, const struct sql_look *look, void **ret)
{
	(void)look;
	return begin(statement, out, false, ret);
}

static int put_text(struct json_rows *rows)
{
	int r;

	rows->clean.n = 0;
	r = sql_text_put_utf8(&rows->clean, rows->value.bytes, rows->value.n);
	if (r < 0)
		return r;
	to_json_bytes(&rows->object, rows->clean.bytes, rows->clean.n);
	return 0;
}

static int put_value(struct json_rows *rows, int column)
{
	int type = sqlite3_column_type(rows->statement, column);
	int r;

	if (type == SQLITE_NULL ||
	    (type == SQLITE_FLOAT && !isfinite(sqlite3_column_double(rows->statement, column)))) {
		to_json_null(&rows->object);
		return 0;
	}
	rows->value.n = 0;
	r = sql_text_put_value(&rows->value, rows->statement, column);
	if (r < 0)
		return r;
	if (type == SQLITE_TEXT)
		return put_text(rows);
	if (type == SQLITE_BLOB)
		to_json_bytes(&rows->object, rows->value.bytes, rows->value.n);
	else
		to_json_digits(&rows->object, rows->value.bytes, rows->value.n);
	return 0;
}

static int json_row(void *state)
{
	struct json_rows *rows = state;
	int r;

	to_json_object(&rows->object);
	for (int i = 0; i < rows->n_keys; i++) {
		to_json_key(&rows->object, rows->keys[i]);
		r = put_value(rows, i);
		if (r < 0)
			return r;
	}
	to_json_object_end(&rows->object);
	if (rows->has_rows && rows->is_array)
		fputs(",\n", rows->out);
	rows->has_rows = true;
	r = to_json_next(&rows->object, rows->out);
	if (r >= 0 && !rows->is_array)
		putc('\n', rows->out);
	return r;
}

static int json_end(void *state)
{
	struct json_rows *rows = state;

	if (rows->is_array)
		fputs("]\n", rows->out);
	return 0;
}

const struct sql_writer sql_writer_json = {
	.name = "json",
	.begin = json_begin,
	.row = json_row,
	.end = json_end,
	.free = json_free,
};

/* One object per line, for tools that read by line. */
const struct sql_writer sql_writer_jsonl = {
	.name = "jsonl",
	.begin = jsonl_begin,
	.row = json_row,
	.end = json_end,
	.free = json_free,
};
