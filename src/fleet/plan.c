/* SPDX-License-Identifier: MIT */
/* plan.c - see plan.h. */
#include "src/fleet/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sqlite_cleanup.h"
#include "src/store/store.h"

/*
 * The column done. REFUSED and REOPENED are of a row of refusals: REFUSED are left out, REOPENED wait as OPEN ones do.
 *
 *   OPEN -> DONE | SET_ASIDE | REFUSED;  REFUSED -> SET_ASIDE (another one was taken) | REOPENED (everything is refused)
 *   REOPENED -> DONE | SET_ASIDE | REFUSED | OPEN (another one was taken)
 */
enum { OPEN, DONE, SET_ASIDE, REFUSED, REOPENED };

struct plan {
	sqlite3 *db;
	char *path, *target;
};

/* FULL: the disk has it when a statement returns. EXCLUSIVE: until the connection ends, nobody else writes. */
static const char begin_sql[] =
	"PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL;"
	"BEGIN IMMEDIATE;"
	"CREATE TABLE IF NOT EXISTS shipment(target TEXT, block INTEGER, first INTEGER, last INTEGER, day INTEGER,"
	" samples INTEGER, raw INTEGER, done INTEGER, PRIMARY KEY(target, block)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS job(target TEXT PRIMARY KEY, job TEXT) WITHOUT ROWID;"
	"COMMIT";

/* ---- The file ---- */

static int make_path(const char *folder, uint64_t run, char **ret)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int n;

	/* The XDG standard ignores a relative path. */
	if (folder)
		n = asprintf(&path, "%s/%016" PRIx64 ".db", folder, run);
	else if (state && state[0] == '/')
		n = asprintf(&path, "%s/probing/ship/%016" PRIx64 ".db", state, run);
	else if (home && home[0] == '/')
		n = asprintf(&path, "%s/.local/state/probing/ship/%016" PRIx64 ".db", home, run);
	else
		return -ENOENT;
	if (n < 0)
		return -ENOMEM;
	*ret = path;
	return path_make_folders(path);
}

int plan_open(const char *folder, uint64_t run, const char *target, struct plan **ret)
{
	CLEANUP(plan_closep) struct plan *plan = calloc(1, sizeof *plan);
	int r, code;

	if (!plan)
		return -ENOMEM;
	plan->target = strdup(target);
	if (!plan->target)
		return -ENOMEM;
	r = make_path(folder, run, &plan->path);
	if (r < 0)
		return r;
	code = sqlite3_open_v2(plan->path, &plan->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(plan->db, begin_sql, NULL, NULL, NULL);
	if (code == SQLITE_BUSY)
		return -EBUSY;
	if (code != SQLITE_OK)
		return store_errno(plan->db, code);
	*ret = TAKE(plan);
	return 0;
}

void plan_close(struct plan *plan)
{
	if (!plan)
		return;
	sqlite3_close(plan->db);
	free(plan->path);
	free(plan->target);
	free(plan);
}

const char *plan_path(const struct plan *plan)
{
	return plan->path;
}

/* ---- Statements ---- */

/* A statement with the target as its first value. */
static int prepare(struct plan *plan, const char *sql, sqlite3_stmt **ret)
{
	int code = sqlite3_prepare_v2(plan->db, sql, -1, ret, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_bind_text(*ret, 1, plan->target, -1, SQLITE_STATIC);
	return store_errno(plan->db, code);
}

/* Steps once. 1: a row. */
static int step(struct plan *plan, sqlite3_stmt *statement)
{
	int code = sqlite3_step(statement);

	return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : store_errno(plan->db, code);
}

static struct shipment shipment_of(sqlite3_stmt *row)
{
	return (struct shipment){ .block = (uint32_t)sqlite3_column_int64(row, 0),
				  .first = sqlite3_column_int64(row, 1),
				  .last = sqlite3_column_int64(row, 2),
				  .day = (uint32_t)sqlite3_column_int64(row, 3),
				  .n_samples = (uint32_t)sqlite3_column_int64(row, 4),
				  .is_raw = sqlite3_column_int(row, 5) != 0,
				  .is_done = sqlite3_column_int(row, 6) == DONE };
}

int plan_next(struct plan *plan, struct shipment *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int r = prepare(
		plan,
		"SELECT block, first, last, day, samples, raw, done FROM shipment WHERE target = ?1 AND done IN (0, 4)"
		" ORDER BY block LIMIT 1",
		&row);

	if (r == 0)
		r = step(plan, row);
	if (r == 1)
		*ret = shipment_of(row);
	return r;
}

int plan_each(struct plan *plan, int (*take)(void *data, const struct shipment *shipment), void *data)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int r = prepare(
		plan,
		"SELECT block, first, last, day, samples, raw, done FROM shipment WHERE target = ?1 ORDER BY block",
		&row);

	while (r == 0 && (r = step(plan, row)) == 1) {
		struct shipment shipment = shipment_of(row);

		r = take(data, &shipment);
		if (r < 0)
			return r;
	}
	return r;
}

int plan_last(struct plan *plan, uint32_t *ret_block, int64_t *ret_sample)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int r = prepare(plan, "SELECT coalesce(max(block), 0), coalesce(max(last), 0) FROM shipment WHERE target = ?1",
			&row);

	if (r == 0)
		r = step(plan, row);
	if (r < 0)
		return r;
	*ret_block = (uint32_t)sqlite3_column_int64(row, 0);
	*ret_sample = sqlite3_column_int64(row, 1);
	return 0;
}

static int put(struct plan *plan, sqlite3_stmt *statement, const struct shipment *shipment)
{
	const int64_t values[] = { shipment->block,     shipment->first,  shipment->last,   shipment->day,
				   shipment->n_samples, shipment->is_raw, shipment->is_done };

	sqlite3_reset(statement);
	for (size_t i = 0; i < N_ELEMENTS(values); i++)
		sqlite3_bind_int64(statement, (int)i + 2, values[i]);
	return step(plan, statement);
}

static const char put_sql[] = "INSERT INTO shipment VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/* COMMIT, or ROLLBACK after an error, which is returned: about a failure of that nothing can be done. */
static int end_transaction(struct plan *plan, int r)
{
	if (r == 0)
		r = store_errno(plan->db, sqlite3_exec(plan->db, "COMMIT", NULL, NULL, NULL));
	if (r < 0)
		sqlite3_exec(plan->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

int plan_put(struct plan *plan, const struct shipment *shipments, unsigned n)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int r = prepare(plan, put_sql, &statement);

	if (r == 0)
		r = store_errno(plan->db, sqlite3_exec(plan->db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
	for (unsigned i = 0; i < n && r == 0; i++)
		r = put(plan, statement, &shipments[i]);
	sqlite3_reset(statement);
	return end_transaction(plan, r);
}

static int set_done(struct plan *plan, uint32_t block, int done)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int r = prepare(plan, "UPDATE shipment SET done = ?3 WHERE target = ?1 AND block = ?2", &statement);

	if (r == 0)
		r = store_errno(plan->db, sqlite3_bind_int64(statement, 2, block));
	if (r == 0)
		r = store_errno(plan->db, sqlite3_bind_int(statement, 3, done));
	return r == 0 ? step(plan, statement) : r;
}

int plan_finish(struct plan *plan, uint32_t block)
{
	return set_done(plan, block, DONE);
}

int plan_set_aside(struct plan *plan, uint32_t block)
{
	return set_done(plan, block, SET_ASIDE);
}

int plan_refuse(struct plan *plan, uint32_t block)
{
	return set_done(plan, block, REFUSED);
}

/* All shipments, by one statement that changes their states. */
static int change_all(struct plan *plan, const char *sql)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int r = prepare(plan, sql, &statement);

	return r == 0 ? step(plan, statement) : r;
}

int plan_reopen(struct plan *plan)
{
	return change_all(plan, "UPDATE shipment SET done = 4 WHERE target = ?1 AND done = 3");
}

int plan_end_row(struct plan *plan)
{
	return change_all(plan, "UPDATE shipment SET done = CASE done WHEN 3 THEN 2 ELSE 0 END"
				" WHERE target = ?1 AND done IN (3, 4)");
}

int plan_retry(struct plan *plan)
{
	return change_all(plan, "UPDATE shipment SET done = 0 WHERE target = ?1 AND done IN (2, 3, 4)");
}

static int shorten(struct plan *plan, uint32_t block, int64_t last, uint32_t n_samples)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int r = prepare(plan, "UPDATE shipment SET last = ?3, samples = ?4 WHERE target = ?1 AND block = ?2",
			&statement);

	if (r < 0)
		return r;
	sqlite3_bind_int64(statement, 2, block);
	sqlite3_bind_int64(statement, 3, last);
	sqlite3_bind_int64(statement, 4, n_samples);
	return step(plan, statement);
}

int plan_split(struct plan *plan, const struct shipment *whole, int64_t last_of_first, uint32_t n_first)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	struct shipment second = *whole;
	int64_t newest = 0;
	int r;

	if (last_of_first < whole->first || last_of_first >= whole->last || n_first == 0 || n_first >= whole->n_samples)
		return -EINVAL;
	r = plan_last(plan, &second.block, &newest);
	second.block++;
	second.first = last_of_first + 1;
	second.n_samples -= n_first;
	if (r == 0)
		r = prepare(plan, put_sql, &statement);
	if (r == 0)
		r = store_errno(plan->db, sqlite3_exec(plan->db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
	if (r < 0)
		return r;
	r = put(plan, statement, &second);
	sqlite3_reset(statement);
	if (r == 0)
		r = shorten(plan, whole->block, last_of_first, n_first);
	return end_transaction(plan, r);
}

int plan_count(struct plan *plan, struct plan_counts *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int r = prepare(
		plan,
		"SELECT coalesce(sum(done = 1), 0), coalesce(sum(CASE WHEN done = 1 THEN samples END), 0),"
		" coalesce(sum(done IN (0, 4)), 0), (SELECT coalesce(sum(n), 0) FROM (SELECT last - first + 1 - sum(samples) AS n"
		" FROM shipment WHERE target = ?1 GROUP BY first)),"
		" coalesce(sum(CASE WHEN done IN (2, 3) THEN samples END), 0), coalesce(sum(done IN (3, 4)), 0)"
		" FROM shipment WHERE target = ?1",
		&row);

	if (r == 0)
		r = step(plan, row);
	if (r < 0)
		return r;
	*ret = (struct plan_counts){ .n_done = (uint64_t)sqlite3_column_int64(row, 0),
				     .n_samples = (uint64_t)sqlite3_column_int64(row, 1),
				     .n_open = (uint64_t)sqlite3_column_int64(row, 2),
				     .n_dropped = (uint64_t)MAX(sqlite3_column_int64(row, 3), 0),
				     .n_refused = (uint64_t)sqlite3_column_int64(row, 4),
				     .n_in_row = (uint64_t)sqlite3_column_int64(row, 5) };
	return 0;
}

int plan_job(struct plan *plan, const char *given, char **ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *put = NULL, *row = NULL;
	char *job;
	int r = given ? prepare(plan, "INSERT OR IGNORE INTO job VALUES (?1, ?2)", &put) : 0;

	if (r == 0 && given)
		r = store_errno(plan->db, sqlite3_bind_text(put, 2, given, -1, SQLITE_STATIC));
	if (r == 0 && given)
		r = step(plan, put);
	if (r == 0)
		r = prepare(plan, "SELECT coalesce(job, '') FROM job WHERE target = ?1", &row);
	if (r == 0)
		r = step(plan, row);
	if (r < 0)
		return r;
	job = strdup(r == 1 ? (const char *)sqlite3_column_text(row, 0) : given ? given : "");
	if (!job)
		return -ENOMEM;
	free(*ret);
	*ret = job;
	return 0;
}

int plan_parse(const char *line, struct shipment *ret)
{
	struct shipment shipment = { .is_done = true };
	unsigned raw;

	if (sscanf(line, "%" SCNu32 "\t%" SCNd64 "\t%" SCNd64 "\t%" SCNu32 "\t%" SCNu32 "\t%u", &shipment.block,
		   &shipment.first, &shipment.last, &shipment.day, &shipment.n_samples, &raw) != 6)
		return -EPROTO;
	if (shipment.block == 0 || shipment.first < 1 || shipment.last < shipment.first)
		return -EPROTO;
	shipment.is_raw = raw != 0;
	*ret = shipment;
	return 0;
}
