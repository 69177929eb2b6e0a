/* SPDX-License-Identifier: MIT */
/* fuzz_dialect.c - SQL as people type it: any text.
 *
 * Whatever it is, the tokens cover it in order, every place of the outcome leads back into it, later
 * ones to later ones, and what SQLite takes by itself is as it was.
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/dialect.h"
#include "src/sql/sql.h"
#include "src/sql/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAX_BYTES = 4096 };

static void check_tokens(const char *text)
{
	CLEANUP(tokens_done) struct tokens tokens = { 0 };
	size_t end = 0;

	if (tokens_read(text, &tokens) < 0)
		abort();
	for (size_t i = 0; i < tokens.n; i++) {
		if (tokens.items[i].n == 0 || tokens.items[i].at < end)
			abort();
		end = tokens.items[i].at + tokens.items[i].n;
	}
	if (end > strlen(text))
		abort();
}

static void check_map(const struct dialect *dialect)
{
	size_t n = strlen(dialect->text), n_typed = strlen(dialect->typed), last = 0;

	for (size_t at = 0; at <= n; at++) {
		size_t from = dialect_origin(dialect, at);

		if (from < last || from > n_typed)
			abort();
		last = from;
	}
	if (dialect->has_mistake &&
	    (dialect->mistake_at > n_typed || dialect->mistaken_statement > dialect->mistake_at))
		abort();
}

/* dialect.c explains the one exception. */
static void check_left_alone(const struct dialect *dialect)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *statement = NULL;
	const char *rest;

	if (strcasestr(dialect->typed, "interval") || sqlite3_open(":memory:", &db) != SQLITE_OK) {
		sqlite3_close(db);
		return;
	}
	if (sqlite3_prepare_v2(db, dialect->typed, -1, &statement, &rest) == SQLITE_OK && statement &&
	    strncmp(dialect->typed, dialect->text, (size_t)(rest - dialect->typed)) != 0)
		abort();
	sqlite3_finalize(statement);
	sqlite3_close(db);
}

/* Either two statements, or a reason. */
static void check_parts(const char *text)
{
	struct sql_split split;

	if (sql_split(text, false, &split) < 0 || !split.part != !split.whole || !split.part != (split.reason != NULL))
		abort();
	sql_split_done(&split);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(dialect_done) struct dialect dialect = { 0 };
	CLEANUP(freep) char *text = NULL;

	if (n_bytes > MAX_BYTES)
		return 0;
	text = strndup((const char *)data, n_bytes);
	if (!text)
		return 0;
	check_tokens(text);
	if (sql_dialect_rewrite(text, &dialect) < 0)
		abort();
	check_map(&dialect);
	check_left_alone(&dialect);
	check_parts(text);
	return 0;
}
