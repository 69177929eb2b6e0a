/* SPDX-License-Identifier: MIT */
/* lanes.c - reads a recording, and follows one that goes on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/lanes/lanes_private.h"
#include "src/store/store.h"

/* All samples are read again after so many times what that took: names may have come since. Beyond READ_AGAIN, only new ones are read. */
enum { READ_AGAIN = 200000, WHOLE_PAUSE_TIMES = 200, MIN_PAUSE_MS = 500, PAUSE_TIMES = 8 };

static int64_t ask_number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *row = NULL;
	int64_t number = 0;

	if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
		number = sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	return number;
}

void lanes_reach(struct lanes *lanes, uint64_t begin_ns, uint64_t end_ns)
{
	if (lanes->begin_ns == lanes->end_ns) {
		lanes->begin_ns = begin_ns;
		lanes->end_ns = end_ns;
	}
	lanes->begin_ns = MIN(lanes->begin_ns, begin_ns);
	lanes->end_ns = MAX(lanes->end_ns, end_ns);
}

static void drop_threads(struct lanes *lanes)
{
	for (size_t i = 0; i < lanes->n_threads; i++) {
		columns_drop(lanes->threads[i]);
		free(lanes->threads[i]->name);
		free(lanes->threads[i]->process);
		free(lanes->threads[i]->items);
		free(lanes->threads[i]);
	}
	lanes->n_threads = 0;
	lanes->n_samples = 0;
}

static bool is_read_as_whole(const struct lanes *lanes, bool was_live)
{
	return lanes->last_sample == 0 ||
	       (lanes->n_samples < READ_AGAIN &&
		monotonic_ns() - lanes->whole_ns >= WHOLE_PAUSE_TIMES * lanes->whole_took_ns) ||
	       (was_live && ask_number(lanes->db, "SELECT ended IS NOT NULL FROM run"));
}

/* Numbers of samples increase, so those of this moment are the ones up to the last. */
static int read_all(struct lanes *lanes, bool *ret_whole)
{
	static const char in_blocks[] = "SELECT sum(samples) FROM sample_block",
			  in_rows[] = "SELECT count(*) FROM sample";
	bool was_live = lanes->is_live;
	int64_t last = ask_number(lanes->db, "SELECT max(first + samples) - 1 FROM sample_block");
	int64_t after = lanes->last_sample;
	int r;

	/* Without blocks, it is a file of version 1, or an empty one. */
	if (ask_number(lanes->db, last > 0 ? in_blocks : in_rows) > LANES_MAX_SAMPLES)
		return -EFBIG;
	*ret_whole = is_read_as_whole(lanes, was_live);
	if (*ret_whole) {
		drop_threads(lanes);
		lanes->begin_ns = lanes->end_ns = 0;
		after = 0;
	}
	r = lanes_load_samples(lanes, after);
	if (r >= 0)
		r = lanes_load_events(lanes);
	if (r >= 0)
		r = lanes_load_curves(lanes);
	if (r >= 0)
		lanes->last_sample = last;
	return r;
}

static int read_now(struct lanes *lanes)
{
	uint64_t began_ns = monotonic_ns();
	int64_t version = ask_number(lanes->db, "PRAGMA data_version");
	bool is_whole = false;
	int r, end;

	r = store_errno(lanes->db, sqlite3_exec(lanes->db, "SAVEPOINT lanes", NULL, NULL, NULL));
	if (r < 0)
		return r;
	r = read_all(lanes, &is_whole);
	end = store_errno(lanes->db, sqlite3_exec(lanes->db, "RELEASE lanes", NULL, NULL, NULL));
	lanes->version = version;
	lanes->read_ns = monotonic_ns();
	lanes->took_ns = lanes->read_ns - began_ns;
	if (is_whole) {
		lanes->whole_ns = lanes->read_ns;
		lanes->whole_took_ns = lanes->took_ns;
	}
	if (lanes->started_ns == 0)
		lanes->started_ns = lanes->begin_ns;
	return r < 0 ? r : end;
}

int lanes_open(sqlite3 *db, struct lanes **ret)
{
	CLEANUP(lanes_closep) struct lanes *lanes = calloc(1, sizeof *lanes);
	int r;

	if (!lanes)
		return -ENOMEM;
	lanes->db = db;
	r = lane_calls_init(&lanes->calls);
	if (r >= 0)
		r = read_now(lanes);
	if (r < 0)
		return r;
	*ret = TAKE(lanes);
	return 0;
}

bool lanes_is_stale(const struct lanes *lanes)
{
	uint64_t pause_ns = MAX(lanes->took_ns * PAUSE_TIMES, MIN_PAUSE_MS * UINT64_C(1000000));

	return monotonic_ns() - lanes->read_ns >= pause_ns &&
	       ask_number(lanes->db, "PRAGMA data_version") != lanes->version;
}

int lanes_refresh(struct lanes *lanes, sqlite3 *db)
{
	lanes->db = db;
	return read_now(lanes);
}

void lanes_close(struct lanes *lanes)
{
	if (!lanes)
		return;
	drop_threads(lanes);
	free(lanes->threads);
	lanes_drop_events(lanes);
	free(lanes->events);
	lanes_drop_curves(lanes);
	free(lanes->curves);
	lane_calls_done(&lanes->calls);
	free(lanes->unit);
	free(lanes->command);
	free(lanes);
}

void lanes_closep(struct lanes **lanes)
{
	lanes_close(*lanes);
}
