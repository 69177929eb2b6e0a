/* SPDX-License-Identifier: MIT */
/* process_runs.c - see processes.h. */
#include "src/store/processes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/store/store.h"

struct process_run {
	int64_t pid, run;
	double started; /* of the run */
};

struct process_runs {
	struct process_run *items; /* by PID, then by time */
	size_t n, allocated;
};

void process_runs_free(struct process_runs *runs)
{
	if (!runs)
		return;
	free(runs->items);
	free(runs);
}

DEFINE_CLEANUP(struct process_runs *, process_runs_free)

bool process_runs_are_there(sqlite3 *db)
{
	return sqlite3_table_column_metadata(db, "main", "run_process", "run", NULL, NULL, NULL, NULL, NULL) ==
	       SQLITE_OK;
}

static int add(struct process_runs *runs, sqlite3_stmt *row)
{
	int r = grow(&runs->items, runs->n, &runs->allocated, sizeof *runs->items);

	if (r < 0)
		return r;
	runs->items[runs->n++] = (struct process_run){ sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1),
						       sqlite3_column_double(row, 2) };
	return 0;
}

int process_runs_load(sqlite3 *db, struct process_runs **ret)
{
	static const char sql[] =
		"SELECT p.pid, r.run, r.started FROM main.run_process AS p JOIN main.run AS r USING (run)"
		" ORDER BY p.pid, r.started, r.run";
	CLEANUP(process_runs_freep) struct process_runs *runs = calloc(1, sizeof *runs);
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code, r = 0;

	if (!runs)
		return -ENOMEM;
	code = sqlite3_prepare_v2(db, sql, -1, &rows, NULL);
	if (code != SQLITE_OK)
		return store_errno(db, code);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = add(runs, rows);
	if (r >= 0)
		r = store_errno(db, code);
	if (r >= 0)
		*ret = TAKE(runs);
	return r;
}

/* Whether the run of an item of this PID, or of a smaller one, has begun by then. */
static bool is_before(const struct process_run *item, int64_t pid, double time)
{
	return item->pid < pid || (item->pid == pid && item->started <= time);
}

int64_t process_runs_find(const struct process_runs *runs, int64_t pid, double time)
{
	size_t low = 0, high = runs->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (is_before(&runs->items[middle], pid, time))
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 0 && runs->items[low - 1].pid == pid)
		return runs->items[low - 1].run;
	/* Before the first run: a wait that began before its recording. */
	return low < runs->n && runs->items[low].pid == pid ? runs->items[low].run : -1;
}
