/* SPDX-License-Identifier: MIT */
/*
 * pids.c - assigns PIDs in a merged recording.
 *
 * PIDs are unique on one machine at one time only. So a process whose PID another one of
 * the new file has stays separate: it and its threads get an id that is 10,000,000 larger, or
 * 20,000,000, and so on (no kernel assigns ids above 4,194,304). The table run_process has the
 * processes of each run, with their original PIDs.
 *
 * Two are the same process if PID, host, name and command are equal, and neither had ended before
 * the other one started: parts of one recording, or two recordings of a process that continued.
 *
 * Invariants:
 * 1. All rows of a source with the same PID have the same one in the new file.
 * 2. The first source's PIDs do not change.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/archive/copy_private.h"

#define APART INT64_C(10000000)
enum { MAX_APART = 200 }; /* all PIDs are below 2^31 */

static const char run_process_sql[] =
	"CREATE TABLE IF NOT EXISTS run_process( -- of merged recordings: the processes of each run\n  run INTEGER NOT "
	"NULL REFERENCES run,\n  pid INTEGER NOT NULL,                   -- in this recording\n  was INTEGER NOT NULL, "
	"                  -- its original PID\n  PRIMARY KEY(run, pid)\n) WITHOUT ROWID";

/* All PIDs that the source mentions. */
static const char all_pids_sql[] =
	"SELECT pid FROM process UNION SELECT pid FROM thread UNION SELECT pid FROM stack_total"
	" UNION SELECT pid FROM run UNION SELECT parent_pid FROM process WHERE parent_pid IS NOT NULL";

/* ?1 PID, ?2 host, ?3 name, ?4 command, ?5 first seen, ?6 ended */
static const char same_sql[] =
	"SELECT 1 FROM process AS p JOIN run_process AS l ON l.pid = p.pid JOIN run AS r ON r.run = l.run"
	" WHERE p.pid = ?1 AND r.host = ?2 AND p.name = ?3 AND p.command = ?4"
	" AND coalesce(p.ended >= ?5, 1) AND coalesce(?6 >= p.started, 1)";
/* A parent that was not recorded is only known by its PID. */
static const char nameless_sql[] = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM process WHERE pid = ?1)";
static const char taken_sql[] = "SELECT 1 FROM temp.taken WHERE pid = ?1";
static const char their_process_sql[] =
	"SELECT ?1, (SELECT host FROM run LIMIT 1), name, command, started, ended FROM process WHERE pid = ?1";

struct numbering {
	struct copy *copy;
	struct source *source;
	sqlite3_stmt *pids, *theirs, *same, *nameless, *taken, *take;
};

static void numbering_done(struct numbering *numbering)
{
	sqlite3_finalize(numbering->pids);
	sqlite3_finalize(numbering->theirs);
	sqlite3_finalize(numbering->same);
	sqlite3_finalize(numbering->nameless);
	sqlite3_finalize(numbering->taken);
	sqlite3_finalize(numbering->take);
}

static int has_row(sqlite3 *db, sqlite3_stmt *statement, bool *ret)
{
	int code = sqlite3_step(statement);

	*ret = code == SQLITE_ROW;
	sqlite3_reset(statement);
	return store_errno(db, code);
}

static int is_same(struct numbering *numbering, int64_t pid, int64_t candidate, bool *ret, bool *ret_has_name)
{
	sqlite3_stmt *question;
	int code, r;

	sqlite3_bind_int64(numbering->theirs, 1, pid);
	code = sqlite3_step(numbering->theirs);
	for (int i = 0; i < 6 && code == SQLITE_ROW; i++)
		sqlite3_bind_value(numbering->same, i + 1, sqlite3_column_value(numbering->theirs, i));
	question = code == SQLITE_ROW ? numbering->same : numbering->nameless;
	sqlite3_bind_int64(question, 1, candidate);
	*ret_has_name = code == SQLITE_ROW;
	r = store_errno(numbering->source->db, code);
	if (r >= 0)
		r = has_row(numbering->copy->db, question, ret);
	sqlite3_reset(numbering->theirs);
	return r;
}

/* The first PID that is free, or belongs to the same process. */
static int choose(struct numbering *numbering, int64_t pid, int64_t *ret)
{
	bool is_process = false;

	for (int i = 0; i < MAX_APART && pid + i * APART <= INT32_MAX; i++) {
		int64_t candidate = pid + i * APART;
		bool is_taken = false, is_it = false, has_name = false;
		int r;

		sqlite3_bind_int64(numbering->taken, 1, candidate);
		r = has_row(numbering->copy->db, numbering->taken, &is_taken);
		if (r >= 0 && is_taken)
			r = is_same(numbering, pid, candidate, &is_it, &has_name);
		if (r < 0)
			return r;
		is_process |= has_name;
		if (is_taken && !is_it)
			continue;
		numbering->copy->result->n_moved += i > 0 && is_process;
		*ret = candidate;
		return 0;
	}
	snprintf(numbering->copy->result->why, sizeof numbering->copy->result->why,
		 "no more PIDs are free for its process %lld, whose PID another process has", (long long)pid);
	numbering->copy->result->which = numbering->source->index;
	return -ENOTUNIQ;
}

static int number_one(struct numbering *numbering, int64_t pid)
{
	int64_t new = pid;
	int r = 0;

	if (pid <= 0 || pid > INT32_MAX)
		return pid == 0 ? 0 : -EBADMSG;
	r = choose(numbering, pid, &new);
	return r < 0 ? r : numbers_add(&numbering->source->numbers[KIND_PROCESS], pid, new);
}

/* Mark PIDs as taken only after all were chosen: two processes of one source always differ. */
static int take_all(struct numbering *numbering)
{
	const struct numbers *numbers = &numbering->source->numbers[KIND_PROCESS];
	int r = 0;

	for (size_t i = 0; i < numbers->n && r >= 0; i++) {
		sqlite3_bind_int64(numbering->take, 1, numbers->new[i]);
		r = copy_run(numbering->copy->db, numbering->take);
	}
	return r;
}

int merge_numbers(struct copy *copy, struct source *source)
{
	CLEANUP(numbering_done) struct numbering numbering = { .copy = copy, .source = source };
	int code, r;

	r = store_errno(copy->db,
			sqlite3_exec(copy->db, "CREATE TEMP TABLE IF NOT EXISTS taken(pid INTEGER PRIMARY KEY)", NULL,
				     NULL, NULL));
	if (r >= 0)
		r = store_errno(copy->db, sqlite3_exec(copy->db, run_process_sql, NULL, NULL, NULL));
	if (r >= 0)
		r = copy_prepare(copy->db, same_sql, &numbering.same);
	if (r >= 0)
		r = copy_prepare(copy->db, nameless_sql, &numbering.nameless);
	if (r >= 0)
		r = copy_prepare(copy->db, taken_sql, &numbering.taken);
	if (r >= 0)
		r = copy_prepare(copy->db, "INSERT OR IGNORE INTO temp.taken VALUES(?1)", &numbering.take);
	if (r >= 0)
		r = copy_prepare(source->db, their_process_sql, &numbering.theirs);
	if (r >= 0)
		r = copy_prepare(source->db, all_pids_sql, &numbering.pids);
	while (r >= 0 && (code = sqlite3_step(numbering.pids)) == SQLITE_ROW)
		r = number_one(&numbering, sqlite3_column_int64(numbering.pids, 0));
	if (r >= 0)
		r = store_errno(source->db, code);
	if (r >= 0)
		r = take_all(&numbering);
	return r == -EBADMSG ? copy_damaged(copy, source, "processes") : r;
}
