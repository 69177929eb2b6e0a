/* SPDX-License-Identifier: MIT */
/*
 * check.c - checks a whole recording.
 *
 * Four checks, each of which finds errors that the others cannot: SQLite's own check finds damaged pages, the
 * queries below find orphan rows and wrong sums, reading each sample finds invalid words and blocks, and the
 * checksum finds changed values in an intact structure.
 *
 * Invariants:
 * 1. Damage in one check is one more problem, and never ends the others.
 * 2. At most MAX_SAID sentences are made; further problems are only counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/sample.h"
#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/archive/archive.h"
#include "src/store/store.h"

enum { MAX_SAID = 100, MAX_INTEGRITY = 20 };

struct check {
	sqlite3 *db;
	void (*say)(void *data, const char *sentence);
	void *data;
	struct check_result *result;
};

__attribute__((format(printf, 2, 3))) static void wrong(struct check *check, const char *format, ...)
{
	char sentence[512];
	va_list arguments;

	if (check->result->n_wrong++ >= MAX_SAID)
		return;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof sentence, format, arguments);
	va_end(arguments);
	sentence[strcspn(sentence, "\n")] = '\0';
	check->say(check->data, sentence);
}

/* Unreadable data count as damage; only these errors end the check. */
static int judge(struct check *check, int code, const char *what)
{
	int r = store_errno(check->db, code);

	if (r == -ENOMEM || r == -EINTR)
		return r;
	if (r < 0)
		wrong(check, "%s cannot be read: %s", what, sqlite3_errmsg(check->db));
	return 0;
}

static int check_pages(struct check *check)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	char sql[64];
	int code;

	sqlite3_snprintf(sizeof sql, sql, "PRAGMA integrity_check(%d)", MAX_INTEGRITY);
	code = sqlite3_prepare_v2(check->db, sql, -1, &rows, NULL);
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		const char *text;

		code = sqlite3_step(rows);
		text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(rows, 0) : NULL;
		if (text && strcmp(text, "ok") != 0)
			wrong(check, "%s", text);
	}
	return judge(check, code, "the file");
}

/* Each query counts damaged rows. */
static const struct question {
	const char *sql, *what; /* text after the number */
	const char *table;      /* older files lack it; NULL: none does */
} questions[] = {
	/* a recorder killed before its first transaction leaves empty tables */
	{ "SELECT NOT EXISTS (SELECT 1 FROM run) AND (EXISTS (SELECT 1 FROM stack_total) OR EXISTS (SELECT 1 FROM process) OR"
	  " EXISTS (SELECT 1 FROM frame) OR EXISTS (SELECT 1 FROM counter))",
	  "row of table run is missing: it does not describe the recording" },
	{ "SELECT count(*) FROM stack AS s LEFT JOIN frame AS f USING (frame) WHERE f.frame IS NULL",
	  "stacks refer to a missing frame" },
	{ "SELECT count(*) FROM stack AS s LEFT JOIN stack AS p ON p.stack = s.parent WHERE s.parent IS NOT NULL AND"
	  " p.stack IS NULL",
	  "stacks refer to a missing caller" },
	{ "SELECT count(*) FROM stack AS s LEFT JOIN stack AS p ON p.stack = s.parent"
	  " WHERE s.depth IS NOT coalesce(p.depth + 1, 0) AND (s.parent IS NULL OR p.stack IS NOT NULL)",
	  "stacks have a depth that is not their caller's and one more" },
	{ "SELECT count(*) FROM frame AS f LEFT JOIN function AS n USING (function) WHERE f.function IS NOT NULL AND"
	  " n.function IS NULL",
	  "frames refer to a missing function" },
	{ "SELECT count(*) FROM frame AS f LEFT JOIN module AS m USING (module) WHERE f.module IS NOT NULL AND"
	  " m.module IS NULL",
	  "frames refer to a missing module" },
	{ "SELECT count(*) FROM function AS f LEFT JOIN module AS m USING (module) WHERE f.module IS NOT NULL AND"
	  " m.module IS NULL",
	  "functions refer to a missing module" },
	{ "SELECT count(*) FROM frame AS f LEFT JOIN frame AS o ON o.frame = f.inlined_into WHERE f.inlined_into IS NOT"
	  " NULL AND o.frame IS NULL",
	  "frames are inlined into a missing frame" },
	{ "SELECT count(*) FROM stack_total AS t LEFT JOIN stack AS s USING (stack) WHERE t.stack <> 0 AND s.stack IS NULL",
	  "totals refer to a missing stack" },
	{ "SELECT count(*) FROM (SELECT pid, tid, stack, sum(samples) AS n, sum(weight) AS weight FROM"
	  " (SELECT pid, tid, stack, samples, weight FROM stack_total UNION ALL"
	  "  SELECT pid, tid, coalesce(stack, 0), -count(*), -sum(weight) FROM sample GROUP BY 1, 2, 3)"
	  /* imported recordings often have no single samples */
	  " GROUP BY 1, 2, 3) WHERE CASE WHEN EXISTS (SELECT 1 FROM run WHERE mode = 'imported') THEN n < 0 OR weight < 0"
	  " ELSE n <> 0 OR weight <> 0 END",
	  "totals are not the sums of their samples" },
	{ "SELECT count(*) FROM row_block WHERE row_table NOT IN (SELECT row_table FROM row_table)",
	  "blocks of rows refer to a missing ring", "row_table" },
	{ "SELECT count(*) FROM row_block WHERE row_block_error(rows, data) IS NOT NULL", "blocks of rows are damaged",
	  "row_block" },
	{ "SELECT count(*) FROM metric_block WHERE metric_block_error(rows, data) IS NOT NULL",
	  "blocks of metrics are damaged", "metric_block" },
	{ "SELECT (SELECT value FROM counter WHERE name = 'samples') IS NOT NULL AND"
	  " (SELECT value FROM counter WHERE name = 'samples')"
	  " <> (SELECT count(*) FROM sample) + coalesce((SELECT value FROM counter WHERE name = 'dropped'), 0)",
	  "counter samples is not the sum of existing and dropped samples" },
};

static int ask(struct check *check, const struct question *question)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code;

	if (question->table && sqlite3_table_column_metadata(check->db, "main", question->table, NULL, NULL, NULL, NULL,
							     NULL, NULL) != SQLITE_OK)
		return 0;
	code = sqlite3_prepare_v2(check->db, question->sql, -1, &row, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	if (code == SQLITE_ROW && sqlite3_column_int64(row, 0) != 0)
		wrong(check, "%" PRId64 " %s", (int64_t)sqlite3_column_int64(row, 0), question->what);
	return judge(check, code, "what rows lead to");
}

static bool is_word(const char *text, int n, const char *(*name)(int))
{
	for (int i = 0; text && i < n; i++)
		if (name(i) && strcmp(name(i), text) == 0)
			return true;
	return false;
}

static const char *end_word(int word)
{
	return stack_end_name((enum stack_end)word);
}

static bool is_sample(sqlite3_stmt *row)
{
	double timestamp = sqlite3_column_double(row, 0);
	enum verdict verdict;

	return isfinite(timestamp) && timestamp > 0 && sqlite3_column_int64(row, 1) >= 0 &&
	       verdict_parse((const char *)sqlite3_column_text(row, 4), &verdict) == 0 &&
	       is_word((const char *)sqlite3_column_text(row, 5), STACK_N_ENDS, end_word) &&
	       (sqlite3_column_type(row, 6) == SQLITE_NULL || sqlite3_column_int64(row, 7) != 0);
}

static int check_samples(struct check *check)
{
	static const char sql[] =
		"SELECT timestamp, pid, tid, weight, verdict, stack_end, sample.stack, stack.stack FROM sample"
		" LEFT JOIN stack ON stack.stack = sample.stack";
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	uint64_t n_bad = 0;
	int code;

	code = sqlite3_prepare_v2(check->db, sql, -1, &rows, NULL);
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		code = sqlite3_step(rows);
		if (code != SQLITE_ROW)
			break;
		check->result->n_samples++;
		n_bad += !is_sample(rows);
	}
	if (n_bad > 0)
		wrong(check, "%" PRIu64 " samples have values that no recorder writes, or refer to a missing stack",
		      n_bad);
	return judge(check, code, "a sample");
}

static int check_sum(struct check *check)
{
	enum store_checksum checksum = CHECKSUM_NONE;
	int r;

	r = store_verify_checksum(check->db, &checksum);
	if (r == -ENOMEM || r == -EINTR)
		return r;
	if (r < 0)
		wrong(check, "its checksum cannot be computed: %s", sqlite3_errmsg(check->db));
	else if (checksum == CHECKSUM_DIFFERS)
		wrong(check, "its values do not match its checksum: it is damaged, or another program changed it");
	check->result->is_verified = r >= 0 && checksum == CHECKSUM_MATCHES;
	return 0;
}

int check_recording(sqlite3 *db, void (*say)(void *data, const char *sentence), void *data, struct check_result *ret)
{
	struct check check = { .db = db, .say = say, .data = data, .result = ret };
	int r;

	*ret = (struct check_result){ 0 };
	r = check_pages(&check);
	for (size_t i = 0; i < N_ELEMENTS(questions) && r >= 0; i++)
		r = ask(&check, &questions[i]);
	if (r >= 0)
		r = check_samples(&check);
	return r < 0 ? r : check_sum(&check);
}
