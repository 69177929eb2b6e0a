/* SPDX-License-Identifier: MIT */
/* verb_tables.c - lists tables and their columns. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/endpoint.h"
#include "src/sql/sql.h"

enum { OPTION_JSON = 0x200, MAX_ERROR = 512 };

struct options {
	char **arguments; /* of main(): large enough for all of them */
	size_t n_arguments;
	const char *pattern; /* NULL: all tables */
	bool json;
};

static const struct argp_option option_list[] = {
	{ "json", OPTION_JSON, NULL, 0, "Print a JSON array, with the columns of each table, too", 0 },
	{ 0 },
};

static void tell_apart(struct options *options, struct argp_state *state)
{
	size_t n = options->n_arguments;

	if (n > 0 && !endpoint_is_one(options->arguments[n - 1], true))
		options->pattern = options->arguments[--options->n_arguments];
	for (size_t i = 1; i < options->n_arguments; i++)
		if (!endpoint_is_one(options->arguments[i], true))
			argp_error(state, "unexpected argument %s: give recordings or one PID, and one pattern",
				   options->arguments[i]);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_JSON:
		options->json = true;
		return 0;
	case ARGP_KEY_ARG:
		options->arguments[options->n_arguments++] = argument;
		return 0;
	case ARGP_KEY_END:
		tell_apart(options, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE...|PID] [PATTERN]",
	.doc = "List the tables of recordings (default: probing.db) or of a running process. PATTERN is a part of a "
	       "name, or a LIKE pattern with %.\vExamples:\n  probing tables\n  probing tables train.db stack\n  "
	       "probing tables 4242 'process.%'\n\nRow counts are shown if they are cheap. In probing sql, .schema "
	       "TABLE describes the columns.\n",
};

static void bind_text(sqlite3_stmt *insert, int n, const char *text)
{
	sqlite3_bind_text(insert, n, text, -1, SQLITE_TRANSIENT);
}

static int collect(void *data, const struct sql_table *table)
{
	sqlite3_stmt *insert = data;

	bind_text(insert, 1, table->schema);
	bind_text(insert, 2, table->name);
	bind_text(insert, 3, table->type);
	sqlite3_bind_null(insert, 4);
	if (table->n_rows >= 0)
		sqlite3_bind_int64(insert, 4, table->n_rows);
	bind_text(insert, 5, table->doc);
	bind_text(insert, 6, table->columns);
	sqlite3_step(insert);
	return sqlite3_reset(insert) == SQLITE_OK ? 0 : -ENOMEM;
}

/* List the tables in a table of its own connection, so that any format can print it. */
static int list(sqlite3 *db, const char *pattern, sqlite3 **ret)
{
	static const char create[] = "CREATE TABLE list(schema, name, type, rows, description, columns)";
	CLEANUP(sqlite3_closep) sqlite3 *to = NULL;
	sqlite3_stmt *insert;
	int r;

	if (sqlite3_open(":memory:", &to) != SQLITE_OK || sqlite3_exec(to, create, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(to, "INSERT INTO list VALUES(?, ?, ?, ?, ?, ?)", -1, &insert, NULL) != SQLITE_OK)
		return -ENOMEM;
	r = sql_each_table(db, pattern, collect, insert);
	sqlite3_finalize(insert);
	if (r < 0)
		return r;
	*ret = TAKE(to);
	return 0;
}

struct writing {
	sqlite3 *tables;
	bool json;
	char *error;
};

static int put_tables(const void *data, FILE *out)
{
	static const char for_eyes[] =
		"SELECT CASE schema WHEN 'main' THEN name ELSE schema || '.' || name END AS name, type, rows,"
		" CASE description WHEN '' THEN columns ELSE description END AS description FROM list";
	const struct writing *writing = data;

	return sql_run(writing->tables, writing->json ? "SELECT * FROM list" : for_eyes,
		       writing->json ? SQL_JSON : SQL_TABLE, cli_columns(STDOUT_FILENO), out, writing->error,
		       MAX_ERROR);
}

static int fail_tables(const void *data, int error)
{
	const struct writing *writing = data;

	(void)error;
	return cli_fail(EXIT_FAILED, "%s", writing->error);
}

static int print(sqlite3 *tables, bool json)
{
	char error[MAX_ERROR] = "";

	return output_write("-", 0, put_tables, fail_tables, &(struct writing){ tables, json, error });
}

static bool is_empty(sqlite3 *tables)
{
	sqlite3_stmt *statement;
	bool empty = true;

	if (sqlite3_prepare_v2(tables, "SELECT 1 FROM list", -1, &statement, NULL) == SQLITE_OK)
		empty = sqlite3_step(statement) != SQLITE_ROW;
	sqlite3_finalize(statement);
	return empty;
}

static int show(const struct endpoint *endpoint, const struct options *options)
{
	CLEANUP(sqlite3_closep) sqlite3 *tables = NULL;
	int r;

	r = list(endpoint->db, options->pattern, &tables);
	if (r == -E2BIG)
		return cli_fail(EXIT_BAD_DATA,
				"the tables of %s cannot be listed: a view in it, or a name, is too large",
				endpoint->title);
	if (r < 0)
		return cli_fail(r == -EINVAL ? EXIT_BAD_DATA : EXIT_FAILED, "the tables of %s cannot be listed: %s",
				endpoint->title, r == -EINVAL ? sqlite3_errmsg(endpoint->db) : strerror(-r));
	if (is_empty(tables) && options->pattern)
		return cli_fail(EXIT_NO_INPUT, "%s has no table like %s: probing tables lists all", endpoint->title,
				options->pattern);
	return print(tables, options->json);
}

static int run_tables(int argc, char **argv)
{
	CLEANUP(freep) char **arguments = calloc((size_t)argc + 1, sizeof *arguments);
	struct options options = { .arguments = arguments };
	struct endpoint endpoint;
	int status;

	if (!arguments)
		return cli_fail(EXIT_FAILED, "not enough memory");
	cli_parse(&argp, argc, argv, 0, &options);
	status = endpoint_open((const char *const *)arguments, options.n_arguments, false, &endpoint);
	if (status != EXIT_OK)
		return status;
	return endpoint_finish(&endpoint, show(&endpoint, &options));
}

const struct verb verb_tables = {
	.name = "tables",
	.aliases = "tbl",
	.summary = "list the tables for SQL",
	.argp = &argp,
	.pages = true,
	.run = run_tables,
};
