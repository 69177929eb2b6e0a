/* SPDX-License-Identifier: MIT */
/* run.c - run the statements of a text and write their rows.
 *
 * Invariants:
 * 1. Unless the rules allow it nothing is written to any database: a statement that SQLite does
 *    not call read-only is refused before its first step, independent of the connection's rights.
 * 2. Rows are not buffered: each goes to the writer at once.
 * 3. SQLite runs the translated text (dialect.h); messages refer to the
 *    user's text.
 * 4. A failed output ends the run at that row.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/dialect.h"
#include "src/sql/format.h"
#include "src/sql/mistake.h"
#include "src/sql/sql.h"

struct answer {
	const struct sql_writer *writer;
	void *state;
	FILE *out;
	struct sql_look look;
	uint64_t rows_left; /* rows that may still be printed */
	bool is_cut;        /* there were more rows */
};

static void answer_free(struct answer *answer)
{
	if (answer->state)
		answer->writer->free(answer->state);
}

/* The file's error, checked right after writing. */
static int output_error(FILE *out)
{
	if (!ferror(out))
		return 0;
	return errno > 0 ? -errno : -EIO;
}

/* Begin after the first step: it may fail or change the columns. */
static int answer_begin(struct answer *answer, sqlite3_stmt *statement)
{
	if (answer->state)
		return 0;
	return answer->writer->begin(statement, answer->out, &answer->look, &answer->state);
}

static int put_rows(struct answer *answer, sqlite3_stmt *statement, int *ret_code)
{
	int r, code;

	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (answer->rows_left-- == 0) {
			answer->is_cut = true;
			code = SQLITE_DONE;
			break;
		}
		errno = 0;
		r = answer_begin(answer, statement);
		if (r == 0)
			r = answer->writer->row(answer->state);
		if (r == 0)
			r = output_error(answer->out);
		if (r < 0)
			return r;
	}
	*ret_code = code;
	return 0;
}

/* Also print the columns of an empty result. */
static int answer_end(struct answer *answer, sqlite3_stmt *statement)
{
	int r;

	if (sqlite3_column_count(statement) == 0)
		return 0;
	errno = 0;
	r = answer_begin(answer, statement);
	if (r == 0)
		r = answer->writer->end(answer->state);
	if (r == 0)
		r = output_error(answer->out);
	return r;
}

static int step_errno(int code)
{
	switch (code & 0xff) {
	case SQLITE_INTERRUPT:
		return -EINTR;
	case SQLITE_NOMEM:
		return -ENOMEM;
	default:
		return -EINVAL;
	}
}

struct place {
	sqlite3 *db;
	const struct dialect *dialect;
	const char *statement; /* points into dialect->text */
	char *error;
	size_t error_bytes;
};

static int fail(const struct place *place, int code)
{
	if ((code & 0xff) == SQLITE_INTERRUPT)
		snprintf(place->error, place->error_bytes, "the query was interrupted");
	else
		mistake_explain(place->db, place->dialect, place->statement, place->error, place->error_bytes);
	return step_errno(code);
}

/* A sort that does not fit into memory goes to a file, whose length has a limit, too. */
static bool is_beyond_memory(sqlite3 *db, const struct sql_rules *rules, int code)
{
	if ((code & 0xff) == SQLITE_NOMEM)
		return true;
	return rules->max_memory > 0 && (code & 0xff) == SQLITE_IOERR &&
	       sqlite3_extended_errcode(db) == SQLITE_IOERR_WRITE;
}

static int fail_memory(const struct sql_rules *rules, char *error, size_t n_bytes)
{
	if (rules->max_memory == 0) {
		snprintf(error, n_bytes, "not enough memory for the query and its result");
		return -ENOMEM;
	}
	snprintf(error, n_bytes, "the query needs more memory than the %llu MiB that it may take (--memory)",
		 (unsigned long long)rules->max_memory >> 20);
	return -E2BIG;
}

static int run_statement(const struct place *place, sqlite3_stmt *statement, const struct sql_rules *rules, FILE *out,
			 bool *ret_cut)
{
	CLEANUP(answer_free)
	struct answer answer = {
		.writer = sql_writers[rules->format],
		.out = out,
		.look = { rules->columns, rules->no_header },
		.rows_left = rules->max_rows > 0 ? rules->max_rows : UINT64_MAX,
	};
	int r, code;

	if (!rules->may_write && !sqlite3_stmt_readonly(statement) && !sqlite3_stmt_isexplain(statement)) {
		mistake_refuse("this statement would change the recording: add --write to allow that", place->dialect,
			       place->statement, place->error, place->error_bytes);
		return -EINVAL;
	}
	r = put_rows(&answer, statement, &code);
	*ret_cut |= answer.is_cut;
	if (r == 0 && is_beyond_memory(place->db, rules, code))
		r = -ENOMEM;
	else if (r == 0 && code != SQLITE_DONE)
		return fail(place, code);
	if (r == 0)
		r = answer_end(&answer, statement);
	if (r == -ENOMEM)
		return fail_memory(rules, place->error, place->error_bytes);
	if (r != -ERANGE)
		return r;
	snprintf(place->error, place->error_bytes,
		 "values of column %s have another type than in its first rows: give them one with CAST(... AS TEXT)",
		 sqlite3_column_name(statement, answer.writer->odd_column(answer.state)));
	return -EINVAL;
}

static void finalizep(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}

/* Whether the current statement is the one with the error. */
static bool is_mistaken(const struct place *place)
{
	const struct dialect *dialect = place->dialect;
	size_t at = (size_t)(place->statement - dialect->text);

	return dialect->has_mistake && dialect_origin(dialect, at) == dialect->mistaken_statement;
}

int sql_run_by(sqlite3 *db, const char *text, const struct sql_rules *rules, FILE *out, char *error, size_t error_bytes,
	       bool *ret_cut)
{
	CLEANUP(dialect_done) struct dialect dialect = { 0 };
	struct place place = { db, &dialect, NULL, error, error_bytes };

	*ret_cut = false;
	if (sql_dialect_rewrite(text, &dialect) < 0) {
		snprintf(error, error_bytes, "not enough memory for the query");
		return -ENOMEM;
	}
	place.statement = dialect.text;
	while (*place.statement) {
		CLEANUP(finalizep) sqlite3_stmt *statement = NULL;
		const char *rest;
		int code, r = 0;

		if (is_mistaken(&place)) {
			mistake_of_dialect(&dialect, error, error_bytes);
			return -EINVAL;
		}
		code = sqlite3_prepare_v2(db, place.statement, -1, &statement, &rest);
		if ((code & 0xff) == SQLITE_NOMEM)
			return fail_memory(rules, error, error_bytes);
		if (code != SQLITE_OK)
			return fail(&place, code);
		if (statement) /* otherwise a comment or blanks */
			r = run_statement(&place, statement, rules, out, ret_cut);
		if (r < 0)
			return r;
		place.statement = rest;
	}
	errno = 0;
	if (fflush(out) != 0)
		return errno > 0 ? -errno : -EIO;
	return 0;
}

int sql_run(sqlite3 *db, const char *text, enum sql_format format, unsigned columns, FILE *out, char *error,
	    size_t error_bytes)
{
	const struct sql_rules rules = { .format = format, .columns = columns };
	bool is_cut;

	return sql_run_by(db, text, &rules, out, error, error_bytes, &is_cut);
}
