/* run.c - run the statements of a text and write their rows.
 *
 * Invariants:
 * 1. Nothing is written to any database: a statement that SQLite does not call
 *    read-only is refused before its first step, whatever the connection allows.
 * 2. Rows are not kept: each goes to the writer as it comes.
 * 3. An output that fails ends the run at the row where it failed.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/format.h"
#include "src/sql/mistake.h"
#include "src/sql/sql.h"

static const struct sql_writer *const writers[] = {
	[SQL_TABLE] = &sql_writer_table,
	[SQL_CSV] = &sql_writer_csv,
	[SQL_JSON] = &sql_writer_json,
	[SQL_ROWS] = &sql_writer_rows,
};

int sql_format_parse(const char *name, enum sql_format *ret)
{
	for (size_t i = 0; i < N_ELEMENTS(writers); i++)
		if (strcmp(writers[i]->name, name) == 0) {
			*ret = (enum sql_format)i;
			return 0;
		}
	return -EINVAL;
}

struct answer {
	const struct sql_writer *writer;
	void *state;
	FILE *out;
	unsigned columns;
};

static void answer_free(struct answer *answer)
{
	if (answer->state)
		answer->writer->free(answer->state);
}

/* What is wrong with the file, asked right after writing to it. */
static int output_error(FILE *out)
{
	if (!ferror(out))
		return 0;
	return errno > 0 ? -errno : -EIO;
}

/* Not before the first step: a query may fail there, or its columns change. */
static int answer_begin(struct answer *answer, sqlite3_stmt *statement)
{
	if (answer->state)
		return 0;
	return answer->writer->begin(statement, answer->out, answer->columns, &answer->state);
}

static int put_rows(struct answer *answer, sqlite3_stmt *statement, int *ret_code)
{
	int r, code;

	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
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

/* Columns without a row are an answer too. */
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
	const char *text, *statement;
	char *error;
	size_t error_bytes;
};

static int fail(const struct place *place, int code)
{
	if ((code & 0xff) == SQLITE_INTERRUPT)
		snprintf(place->error, place->error_bytes, "the query was interrupted");
	else
		mistake_explain(place->db, place->text, place->statement, place->error,
				place->error_bytes);
	return step_errno(code);
}

static int run_statement(const struct place *place, sqlite3_stmt *statement,
			 const struct sql_writer *writer, unsigned columns, FILE *out)
{
	CLEANUP(answer_free) struct answer answer = {
		.writer = writer,
		.out = out,
		.columns = columns,
	};
	int r, code;

	if (!sqlite3_stmt_readonly(statement) && !sqlite3_stmt_isexplain(statement)) {
		mistake_refuse("this statement would change the recording, which is only read here",
			       place->text, place->statement, place->error, place->error_bytes);
		return -EINVAL;
	}
	r = put_rows(&answer, statement, &code);
	if (r == 0 && code != SQLITE_DONE)
		return fail(place, code);
	if (r == 0)
		r = answer_end(&answer, statement);
	if (r == -ENOMEM)
		snprintf(place->error, place->error_bytes, "not enough memory for the answer");
	return r;
}

static void finalizep(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}

int sql_run(sqlite3 *db, const char *text, enum sql_format format, unsigned columns, FILE *out,
	    char *error, size_t error_bytes)
{
	struct place place = { db, text, text, error, error_bytes };

	while (*place.statement) {
		CLEANUP(finalizep) sqlite3_stmt *statement = NULL;
		const char *rest;
		int code, r = 0;

		code = sqlite3_prepare_v2(db, place.statement, -1, &statement, &rest);
		if (code != SQLITE_OK)
			return fail(&place, code);
		if (statement) /* else a comment or blanks */
			r = run_statement(&place, statement, writers[format], columns, out);
		if (r < 0)
			return r;
		place.statement = rest;
	}
	errno = 0;
	if (fflush(out) != 0)
		return errno > 0 ? -errno : -EIO;
	return 0;
}
