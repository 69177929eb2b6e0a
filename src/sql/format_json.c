/* SPDX-License-Identifier: MIT */
/* format_json.c - an array of objects, a row each, on a line of its own; and such lines alone (jsonl).
 *
 * Numbers remain numbers (infinity, which JSON lacks, is null), a blob is its
 * bytes in hexadecimal, and text becomes valid UTF-8. Keys are unique in an
 * object: the second column called x is "x_2".
 * yajl makes each object in a buffer that is cleared per row.
 */
#include "src/sql/format.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "base/util.h"
#include "src/sql/text.h"

struct json {
	sqlite3_stmt *statement;
	FILE *out;
	yajl_gen generator;
	char **keys;
	int n_keys;
	bool is_array;
	bool has_rows;
	struct sql_text value, clean;
};

static void json_free(void *state)
{
	struct json *json = state;

	if (!json)
		return;
	if (json->generator)
		yajl_gen_free(json->generator);
	for (int i = 0; i < json->n_keys; i++)
		free(json->keys[i]);
	free(json->keys);
	sql_text_done(&json->value);
	sql_text_done(&json->clean);
	free(json);
}

DEFINE_CLEANUP(struct json *, json_free)

static bool key_is_taken(const struct json *json, const char *key)
{
	for (int i = 0; i < json->n_keys; i++)
		if (strcmp(json->keys[i], key) == 0)
			return true;
	return false;
}

static int add_key(struct json *json, const char *name)
{
	CLEANUP(freep) char *base = NULL, *key = NULL;
	int r;

	json->clean.n = 0;
	r = sql_text_put_utf8(&json->clean, name, strlen(name));
	if (r < 0)
		return r;
	base = strndup(json->clean.n > 0 ? json->clean.bytes : "", json->clean.n);
	key = base ? strdup(base) : NULL;
	for (int n = 2; key && key_is_taken(json, key); n++) {
		free(TAKE(key));
		if (asprintf(&key, "%s_%d", base, n) < 0)
			key = NULL;
	}
	if (!key)
		return -ENOMEM;
	json->keys[json->n_keys++] = TAKE(key);
	return 0;
}

static int begin(sqlite3_stmt *statement, FILE *out, bool is_array, void **ret)
{
	CLEANUP(json_freep) struct json *json = NULL;
	int n_columns = sqlite3_column_count(statement);

	json = calloc(1, sizeof *json);
	if (!json)
		return -ENOMEM;
	json->statement = statement;
	json->out = out;
	json->is_array = is_array;
	json->generator = yajl_gen_alloc(NULL);
	json->keys = calloc((size_t)n_columns, sizeof *json->keys);
	if (!json->generator || !json->keys)
		return -ENOMEM;
	for (int i = 0; i < n_columns; i++) {
		const char *name = sqlite3_column_name(statement, i);
		int r = name ? add_key(json, name) : -ENOMEM;

		if (r < 0)
			return r;
	}
	if (is_array)
		putc('[', out);
	*ret = TAKE(json);
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

static void put_string(struct json *json, const char *bytes, size_t n)
{
	yajl_gen_string(json->generator, (const unsigned char *)(n > 0 ? bytes : ""), n);
}

static int put_text(struct json *json)
{
	int r;

	json->clean.n = 0;
	r = sql_text_put_utf8(&json->clean, json->value.bytes, json->value.n);
	if (r < 0)
		return r;
	put_string(json, json->clean.bytes, json->clean.n);
	return 0;
}

static int put_value(struct json *json, int column)
{
	int type = sqlite3_column_type(json->statement, column);
	int r;

	if (type == SQLITE_NULL ||
	    (type == SQLITE_FLOAT && !isfinite(sqlite3_column_double(json->statement, column)))) {
		yajl_gen_null(json->generator);
		return 0;
	}
	json->value.n = 0;
	r = sql_text_put_value(&json->value, json->statement, column);
	if (r < 0)
		return r;
	if (type == SQLITE_TEXT)
		return put_text(json);
	if (type == SQLITE_BLOB)
		put_string(json, json->value.bytes, json->value.n);
	else
		yajl_gen_number(json->generator, json->value.bytes, json->value.n);
	return 0;
}

static int json_row(void *state)
{
	struct json *json = state;
	const unsigned char *object;
	size_t n;

	yajl_gen_reset(json->generator, NULL);
	yajl_gen_clear(json->generator);
	yajl_gen_map_open(json->generator);
	for (int i = 0; i < json->n_keys; i++) {
		int r;

		put_string(json, json->keys[i], strlen(json->keys[i]));
		r = put_value(json, i);
		if (r < 0)
			return r;
	}
	yajl_gen_map_close(json->generator);
	yajl_gen_get_buf(json->generator, &object, &n);
	if (json->has_rows && json->is_array)
		fputs(",\n", json->out);
	json->has_rows = true;
	fwrite(object, 1, n, json->out);
	if (!json->is_array)
		putc('\n', json->out);
	return 0;
}

static int json_end(void *state)
{
	struct json *json = state;

	if (json->is_array)
		fputs("]\n", json->out);
	return 0;
}

const struct sql_writer sql_writer_json = {
	.name = "json",
	.begin = json_begin,
	.row = json_row,
	.end = json_end,
	.free = json_free,
};

/* A row is an object on a line of its own, for tools that read line by line. */
const struct sql_writer sql_writer_jsonl = {
	.name = "jsonl",
	.begin = jsonl_begin,
	.row = json_row,
	.end = json_end,
	.free = json_free,
};
