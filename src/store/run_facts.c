/* SPDX-License-Identifier: MIT */
/*
 * run_facts.c - properties of a run besides its samples.
 *
 * Statements are prepared on demand: older files, which may be changed as well, lack such columns.
 */
#include <errno.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/store/store_private.h"

static int prepare(struct store *store, const char *sql, sqlite3_stmt **ret)
{
	return store_errno(store->db, sqlite3_prepare_v2(store->db, sql, -1, ret, NULL));
}

int store_set_run_cpu(struct store *store, const char *model)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *update = NULL;
	int r = prepare(store, "UPDATE run SET cpu_model = ?1", &update);

	if (r < 0)
		return r;
	if (sqlite3_bind_text(update, 1, model, -1, SQLITE_STATIC) != SQLITE_OK)
		return -ENOMEM;
	return store_errno(store->db, sqlite3_step(update));
}

/* Unbound parameters are NULL. */
static void bind_known(sqlite3_stmt *insert, int parameter, double value)
{
	if (value >= 0)
		sqlite3_bind_double(insert, parameter, value);
}

int store_put_bench_run(struct store *store, const struct bench_run_row *row)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *insert = NULL;
	int r;

	r = prepare(store,
		    "INSERT INTO bench_run(run, command, started, wall, user, sys, max_rss, exit_status)"
		    " VALUES(nullif(?1, 0),?2,?3,?4,?5,?6,?7,?8)",
		    &insert);
	if (r < 0)
		return r;
	sqlite3_bind_int64(insert, 1, row->run);
	sqlite3_bind_text(insert, 2, row->command, -1, SQLITE_STATIC);
	sqlite3_bind_double(insert, 3, (double)row->started_ns / 1e9);
	bind_known(insert, 4, row->wall_s);
	bind_known(insert, 5, row->user_s);
	bind_known(insert, 6, row->sys_s);
	if (row->max_rss_bytes >= 0)
		sqlite3_bind_int64(insert, 7, row->max_rss_bytes);
	sqlite3_bind_int(insert, 8, row->exit_status);
	return store_errno(store->db, sqlite3_step(insert));
}
