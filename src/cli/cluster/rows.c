/* SPDX-License-Identifier: MIT */
/* rows.c - probing cluster rows: the tables of one process that a statement names, for probing cluster query.
 *
 * A name counts wherever it stands in the statement, even in a text or a comment: a table too many costs its transfer, a
 * table too few would be a wrong answer.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/util.h"
#include "src/cli/cluster/cluster.h"
#include "src/cli/endpoint.h"
#include "src/sql/sql.h"

enum { OPTION_EACH = 0x200, MAX_STATEMENTS = 4 };

struct options {
	const char *pid;
	const char *sql[MAX_STATEMENTS];
	size_t n_sql;
	bool each;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'p':
		options->pid = argument;
		return 0;
	case OPTION_EACH:
		options->each = true;
		return 0;
	case ARGP_KEY_ARG:
		if (options->n_sql == MAX_STATEMENTS)
			return ARGP_ERR_UNKNOWN;
		options->sql[options->n_sql++] = argument;
		return 0;
	case ARGP_KEY_END:
		if (!options->pid || !endpoint_is_process(options->pid) || options->n_sql == 0 ||
		    (options->n_sql > 1 && !options->each))
			argp_error(state, "give a PID and a statement; with --each, up to %d", MAX_STATEMENTS);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option option_list[] = {
	{ "pid", 'p', "PID", 0, "The process", 0 },
	{ "each", OPTION_EACH, NULL, 0, "The answers to the statements, instead of whole tables", 0 },
	{ 0 },
};

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "SQL [SQL]...",
	.doc = "For probing cluster query: print the tables of a process that a statement names, as JSON.",
};

/* ---- Names in a statement ---- */

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || ((unsigned char)c & 0x80);
}

static bool names(const char *sql, const char *name)
{
	size_t n_name = strlen(name), n;

	for (const char *at = sql; *at; at += n) {
		n = 1;
		if (!is_name_byte(*at))
			continue;
		while (is_name_byte(at[n]))
			n++;
		if (n == n_name && strncasecmp(at, name, n) == 0)
			return true;
	}
	return false;
}

/* ---- Rows as JSON ---- */

static void put_blob(struct json *json, const uint8_t *bytes, size_t n)
{
	char *hex = sqlite3_malloc64(2 * n + 1);

	if (!hex) {
		json->error = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	hex[2 * n] = '\0';
	to_json_object(json);
	to_json_put_string(json, "hex", hex);
	to_json_object_end(json);
	sqlite3_free(hex);
}

static void put_value(struct json *json, sqlite3_stmt *statement, int i)
{
	switch (sqlite3_column_type(statement, i)) {
	case SQLITE_INTEGER:
		to_json_integer(json, sqlite3_column_int64(statement, i));
		break;
	case SQLITE_FLOAT:
		to_json_number(json, sqlite3_column_double(statement, i));
		break;
	case SQLITE_TEXT:
		to_json_string(json, (const char *)sqlite3_column_text(statement, i));
		break;
	case SQLITE_BLOB:
		put_blob(json, sqlite3_column_blob(statement, i), (size_t)sqlite3_column_bytes(statement, i));
		break;
	default:
		to_json_null(json);
	}
}

static void put_columns(struct json *json, sqlite3_stmt *statement)
{
	to_json_put_array(json, "columns");
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		const char *type = sqlite3_column_decltype(statement, i);

		to_json_array(json);
		to_json_string(json, sqlite3_column_name(statement, i));
		to_json_string(json, type ? type : "");
		to_json_array_end(json);
	}
	to_json_array_end(json);
}

/* Returns SQLite's code. */
static int put_rows(struct json *json, sqlite3_stmt *statement)
{
	int code;

	to_json_put_array(json, "rows");
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		to_json_array(json);
		for (int i = 0; i < sqlite3_column_count(statement); i++)
			put_value(json, statement, i);
		to_json_array_end(json);
	}
	to_json_array_end(json);
	return code;
}

/* A failure of the statement is a member of the table. */
static void put_table(struct json *json, sqlite3 *db, const char *schema, const char *name, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

	to_json_object(json);
	to_json_put_string(json, "schema", schema);
	to_json_put_string(json, "name", name);
	if (code == SQLITE_OK && statement) {
		put_columns(json, statement);
		code = put_rows(json, statement);
	}
	to_json_put_string(json, "problem", code == SQLITE_OK || code == SQLITE_DONE ? NULL : sqlite3_errmsg(db));
	to_json_object_end(json);
	sqlite3_finalize(statement);
}

struct choice {
	struct json *json; /* of put() */
	sqlite3 *db;
	const struct options *options;
};

static int take_table(void *data, const struct sql_table *table)
{
	const struct choice *choice = data;
	char *sql;

	if (!names(choice->options->sql[0], table->name) || strcmp(table->schema, "information_schema") == 0)
		return 0;
	sql = sqlite3_mprintf("SELECT * FROM \"%w\".\"%w\"", table->schema, table->name);
	if (!sql)
		return -ENOMEM;
	put_table(choice->json, choice->db, table->schema, table->name, sql);
	sqlite3_free(sql);
	return 0;
}

static int put(const void *data, FILE *out)
{
	const struct choice *from = data;
	CLEANUP(to_json_done) struct json json = { 0 };
	struct choice choice = { &json, from->db, from->options };
	int r = to_json_keep(NULL, &json);

	if (r < 0)
		return r;
	to_json_object(&json);
	to_json_put_array(&json, "tables");
	for (size_t i = 0; choice.options->each && i < choice.options->n_sql; i++)
		put_table(&json, choice.db, "main", "answer", choice.options->sql[i]);
	if (!choice.options->each)
		r = sql_each_table(choice.db, NULL, take_table, &choice);
	to_json_array_end(&json);
	to_json_object_end(&json);
	return r < 0 ? r : to_json_finish(&json, out);
}

static int fail(const void *data, int error)
{
	(void)data;
	return cli_fail(EXIT_FAILED, "the rows cannot be written: %s", strerror(-error));
}

static int run_cluster_rows(int argc, char **argv)
{
	struct options options = { 0 };
	struct endpoint endpoint;
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	status = endpoint_open(&options.pid, 1, false, &endpoint);
	if (status != EXIT_OK)
		return status;
	status = output_write("-", 0, put, fail, &(struct choice){ NULL, endpoint.db, &options });
	return endpoint_finish(&endpoint, status);
}

const struct verb cluster_verb_rows = {
	.name = "rows",
	.summary = NULL, /* for probing itself */
	.argp = &argp,
	.run = run_cluster_rows,
};
