/* SPDX-License-Identifier: MIT */
/* usage.c - rows of process_usage and machine_usage: a few a second, so their statements are prepared for each. */
#include <errno.h>

#include "base/util.h"
#include "src/store/store_private.h"

static int prepare(struct store *store, const char *sql, const char *table, sqlite3_stmt **ret)
{
	if (sqlite3_table_column_metadata(store->db, "main", table, NULL, NULL, NULL, NULL, NULL, NULL) != SQLITE_OK)
		return -ENOENT;
	return store_errno(store->db, sqlite3_prepare_v2(store->db, sql, -1, ret, NULL));
}

static void bind(sqlite3_stmt *statement, int column, int64_t number)
{
	if (number != METRIC_UNKNOWN) /* else NULL, as all are at first */
		sqlite3_bind_int64(statement, column, number);
}

static int finish(struct store *store, sqlite3_stmt *statement)
{
	int r = store_errno(store->db, sqlite3_step(statement));

	sqlite3_finalize(statement);
	return r;
}

int store_put_process_usage(struct store *store, const struct process_usage_row *row)
{
	const int64_t numbers[] = {
		row->rss,     row->anonymous, row->swap,         row->virtual,    row->threads,
		row->user_ns, row->system_ns, row->major_faults, row->read_bytes, row->written_bytes
	};
	sqlite3_stmt *statement;
	int r;

	r = prepare(store, "INSERT OR REPLACE INTO process_usage VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", "process_usage",
		    &statement);
	if (r < 0)
		return r;
	sqlite3_bind_int64(statement, 1, row->pid);
	sqlite3_bind_double(statement, 2, store_seconds(row->time_ns));
	for (int i = 0; i < (int)N_ELEMENTS(numbers); i++)
		bind(statement, 3 + i, numbers[i]);
	return finish(store, statement);
}

int store_put_machine_usage(struct store *store, const struct machine_usage_row *row)
{
	const int64_t numbers[] = {
		row->user_ns,        row->system_ns,  row->idle_ns,        row->iowait_ns,         row->steal_ns,
		row->memory,         row->available,  row->swap_used,      row->read_bytes,        row->written_bytes,
		row->received_bytes, row->sent_bytes, row->cpu_stalled_ns, row->memory_stalled_ns, row->io_stalled_ns,
	};
	sqlite3_stmt *statement;
	int r;

	r = prepare(store, "INSERT OR REPLACE INTO machine_usage VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
		    "machine_usage", &statement);
	if (r < 0)
		return r;
	sqlite3_bind_text(statement, 1, row->host, -1, SQLITE_STATIC);
	sqlite3_bind_double(statement, 2, store_seconds(row->time_ns));
	for (int i = 0; i < (int)N_ELEMENTS(numbers); i++)
		bind(statement, 3 + i, numbers[i]);
	return finish(store, statement);
}
