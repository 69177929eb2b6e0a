/* SPDX-License-Identifier: MIT */
/* tracks.c - see tracks.h.
 *
 * Rows of programs have times of CLOCK_MONOTONIC; all rows of a process get the same offset to the clock of samples, so that
 * slices nest as they did.
 */
#include "src/export/tracks.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/store/store.h"

DEFINE_CLEANUP(struct tracks *, tracks_free)

/* pid, thread, name, begin, end: ns of CLOCK_MONOTONIC; an end of NULL: it goes on. */
static const struct slice_source {
	enum track_kind kind;
	const char *sql;
} slice_sources[] = {
	{ TRACK_TORCH,
	  "SELECT process, coalesce(tid, 0), module || CASE WHEN stage IN ('forward', 'backward') THEN ' ' || stage ELSE '' END,"
	  " CAST(began * 1e9 AS INTEGER), CAST((began + host_ms / 1e3) * 1e9 AS INTEGER) FROM python.torch_trace"
	  " WHERE began IS NOT NULL" },
	{ TRACK_TORCH_STEP, "SELECT process, 0, 'step ' || max(step), CAST(min(began) * 1e9 AS INTEGER),"
			    " CAST(max(began + host_ms / 1e3) * 1e9 AS INTEGER) FROM python.torch_trace"
			    " WHERE began IS NOT NULL GROUP BY process, local_step" },
	{ TRACK_SPAN,
	  "SELECT process, max(tid), max(name),"
	  " CASE WHEN sum(phase = 'begin') THEN min(time_ns) ELSE max(time_ns) - CAST(max(duration_ms) * 1e6 AS INTEGER) END,"
	  " CASE WHEN sum(phase = 'end') THEN max(time_ns) END FROM python.spans GROUP BY process, span" },
	{ TRACK_COMMUNICATION,
	  "SELECT process, 0, max(name), min(began), CASE WHEN sum(ended IS NOT NULL) THEN"
	  " coalesce(min(began) + CAST(max(latency_ms) * 1e6 AS INTEGER), max(ended)) END FROM ("
	  "SELECT process, call, op || coalesce(' ' || \"group\", '') AS name, time_ns AS began, NULL AS ended, NULL AS latency_ms"
	  " FROM python.comm_started UNION ALL "
	  "SELECT process, call, op || coalesce(' ' || \"group\", ''), NULL, time_ns, latency_ms FROM python.comm_metrics)"
	  " GROUP BY process, call HAVING min(began) IS NOT NULL" },
};

#define RATE(pid, table, name, value, unit)                                                                            \
	"SELECT " pid ", timestamp, " name ", (after - now) / took / " unit " FROM (SELECT *, " value " AS now,"       \
	" lead(" value ") OVER w AS after, lead(timestamp) OVER w - timestamp AS took FROM " table                     \
	" WINDOW w AS (PARTITION BY " pid " ORDER BY timestamp)) WHERE took > 0 AND after >= now"

/* pid, seconds of CLOCK_REALTIME, name, value. */
static const char *const value_sources[] = {
	"SELECT pid, timestamp, 'resident memory (MB)', rss / 1e6 FROM process_usage",
	"SELECT pid, timestamp, 'swapped out (MB)', swap / 1e6 FROM process_usage WHERE swap > 0",
	RATE("pid", "process_usage", "'CPU (processors)'", "user_ns + system_ns", "1e9"),
	RATE("pid", "process_usage", "'read from storage (MB/s)'", "read_bytes", "1e6"),
	RATE("pid", "process_usage", "'written to storage (MB/s)'", "written_bytes", "1e6"),
	"SELECT process, timestamp, 'torch: memory of the GPU (MB)', allocated FROM python.torch_trace",
	"SELECT 0, timestamp, 'GPU ' || device || ': busy (%)', gpu_util FROM gpu_metrics",
	"SELECT 0, timestamp, 'GPU ' || device || ': memory (MB)', memory_used_mb FROM gpu_metrics",
	"SELECT 0, timestamp, 'GPU ' || device || ': power (W)', power_w FROM gpu_metrics",
	"SELECT 0, timestamp, 'available memory (MB)', available / 1e6 FROM machine_usage",
	RATE("host", "machine_usage", "'CPU (processors)'", "user_ns + system_ns", "1e9"),
	RATE("host", "machine_usage", "'received (MB/s)'", "received_bytes", "1e6"),
	RATE("host", "machine_usage", "'sent (MB/s)'", "sent_bytes", "1e6"),
};

const char *track_kind_name(enum track_kind kind)
{
	static const char *const names[TRACK_N_KINDS] = {
		[TRACK_STEP] = "step", [TRACK_TORCH_STEP] = "torch step",       [TRACK_TORCH] = "torch",
		[TRACK_SPAN] = "span", [TRACK_COMMUNICATION] = "communication",
	};

	return names[kind];
}

void tracks_free(struct tracks *tracks)
{
	if (!tracks)
		return;
	free(tracks->slices);
	free(tracks->values);
	interner_done(&tracks->names);
	free(tracks);
}

struct reading {
	sqlite3 *db;
	struct tracks *tracks;
	uint64_t since_ns, until_ns;
	struct offset {
		int64_t pid, ns;
	} * offsets; /* CLOCK_REALTIME - CLOCK_MONOTONIC, by pid */
	size_t n_offsets, allocated;
};

static int add_slice(struct reading *reading, const struct track_slice *slice, const char *name)
{
	struct tracks *tracks = reading->tracks;
	struct track_slice *made;
	int r;

	if (slice->end_ns <= slice->begin_ns || slice->end_ns <= reading->since_ns ||
	    slice->begin_ns >= reading->until_ns)
		return 0;
	r = grow(&tracks->slices, tracks->n_slices, &tracks->slices_allocated, sizeof *tracks->slices);
	if (r < 0)
		return r;
	made = &tracks->slices[tracks->n_slices];
	*made = *slice;
	made->begin_ns = MAX(made->begin_ns, reading->since_ns);
	made->end_ns = MIN(made->end_ns, reading->until_ns);
	r = interner_add(&tracks->names, name, strlen(name), &made->name);
	tracks->n_slices += r >= 0;
	return r < 0 ? r : 0;
}

/* A statement over tables of which some recordings have none: *ret is NULL then. */
static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
	int code = sqlite3_prepare_v2(db, sql, -1, ret, NULL);

	return code == SQLITE_ERROR ? 0 : store_errno(db, code);
}

static int read_offsets(struct reading *reading)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code = SQLITE_DONE, r;

	r = prepare(reading->db, "SELECT pid, max(realtime_offset_ns) FROM row_table GROUP BY pid", &rows);
	while (r >= 0 && rows && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		r = grow(&reading->offsets, reading->n_offsets, &reading->allocated, sizeof *reading->offsets);
		if (r >= 0)
			reading->offsets[reading->n_offsets++] = (struct offset){ sqlite3_column_int64(rows, 0),
										  sqlite3_column_int64(rows, 1) };
	}
	return r < 0 ? r : store_errno(reading->db, code);
}

static const struct offset *offset_of(const struct reading *reading, int64_t pid)
{
	for (size_t i = 0; i < reading->n_offsets; i++)
		if (reading->offsets[i].pid == pid)
			return &reading->offsets[i];
	return NULL;
}

/* Times in ns; a foreign file may say anything. */
static uint64_t moment(const struct offset *offset, int64_t ns)
{
	int64_t sum;

	return __builtin_add_overflow(offset->ns, ns, &sum) || sum < 0 ? 0 : (uint64_t)sum;
}

static int take_slice(struct reading *reading, enum track_kind kind, sqlite3_stmt *row)
{
	const struct offset *offset = offset_of(reading, sqlite3_column_int64(row, 0));
	const char *name = (const char *)sqlite3_column_text(row, 2);
	struct track_slice slice = { .pid = sqlite3_column_int64(row, 0),
				     .thread = sqlite3_column_int64(row, 1),
				     .kind = kind,
				     .end_ns = UINT64_MAX };

	if (!offset || !name || sqlite3_column_type(row, 3) == SQLITE_NULL)
		return 0;
	slice.begin_ns = moment(offset, sqlite3_column_int64(row, 3));
	if (sqlite3_column_type(row, 4) != SQLITE_NULL)
		slice.end_ns = moment(offset, sqlite3_column_int64(row, 4));
	return add_slice(reading, &slice, name);
}

static int read_slices(struct reading *reading, const struct slice_source *source)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code = SQLITE_DONE, r;

	r = prepare(reading->db, source->sql, &rows);
	while (r >= 0 && rows && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = take_slice(reading, source->kind, rows);
	return r < 0 ? r : store_errno(reading->db, code);
}

static int read_steps(struct reading *reading)
{
	CLEANUP(freep) struct step_time *steps = NULL;
	size_t n = 0;
	int r;

	r = store_read_steps(reading->db, &steps, &n);
	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct track_slice slice = { .pid = steps[i].pid,
						   .kind = TRACK_STEP,
						   .begin_ns = steps[i].begin_ns,
						   .end_ns = steps[i].end_ns };
		char name[32];

		snprintf(name, sizeof name, "step %lld", (long long)steps[i].step);
		r = add_slice(reading, &slice, name);
	}
	return r;
}

static int take_value(struct reading *reading, sqlite3_stmt *row)
{
	struct tracks *tracks = reading->tracks;
	double time = sqlite3_column_double(row, 1) * 1e9, value = sqlite3_column_double(row, 3);
	const char *name = (const char *)sqlite3_column_text(row, 2);
	struct track_value *made;
	int r;

	if (sqlite3_column_type(row, 3) == SQLITE_NULL || !name || !isfinite(value) ||
	    !(time >= (double)reading->since_ns && time < (double)reading->until_ns))
		return 0;
	r = grow(&tracks->values, tracks->n_values, &tracks->values_allocated, sizeof *tracks->values);
	if (r < 0)
		return r;
	made = &tracks->values[tracks->n_values];
	*made = (struct track_value){ .pid = sqlite3_column_type(row, 0) == SQLITE_INTEGER
						     ? sqlite3_column_int64(row, 0)
						     : TRACK_MACHINE,
				      .time_ns = (uint64_t)time,
				      .value = value };
	r = interner_add(&tracks->names, name, strlen(name), &made->name);
	tracks->n_values += r >= 0;
	return r < 0 ? r : 0;
}

static int read_values(struct reading *reading, const char *sql)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code = SQLITE_DONE, r;

	r = prepare(reading->db, sql, &rows);
	while (r >= 0 && rows && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = take_value(reading, rows);
	return r < 0 ? r : store_errno(reading->db, code);
}

#define COMPARE(a, b)                                                                                                  \
	if ((a) != (b))                                                                                                \
	return (a) < (b) ? -1 : 1

static int compare_slices(const void *a, const void *b)
{
	const struct track_slice *one = a, *other = b;

	COMPARE(one->pid, other->pid);
	COMPARE(one->kind, other->kind);
	COMPARE(one->thread, other->thread);
	COMPARE(one->begin_ns, other->begin_ns);
	COMPARE(other->end_ns, one->end_ns);
	COMPARE(one->name, other->name);
	return 0;
}

static int compare_values(const void *a, const void *b)
{
	const struct track_value *one = a, *other = b;

	COMPARE(one->pid, other->pid);
	COMPARE(one->name, other->name);
	COMPARE(one->time_ns, other->time_ns);
	COMPARE(one->value, other->value);
	return 0;
}

static int read_all(struct reading *reading)
{
	int r = read_offsets(reading);

	if (r >= 0 && reading->n_offsets > 0)
		r = read_steps(reading);
	for (size_t i = 0; i < N_ELEMENTS(slice_sources) && r >= 0 && reading->n_offsets > 0; i++)
		r = read_slices(reading, &slice_sources[i]);
	for (size_t i = 0; i < N_ELEMENTS(value_sources) && r >= 0; i++)
		r = read_values(reading, value_sources[i]);
	return r;
}

int tracks_read(sqlite3 *db, uint64_t since_ns, uint64_t until_ns, struct tracks **ret)
{
	CLEANUP(tracks_freep) struct tracks *tracks = calloc(1, sizeof *tracks);
	struct reading reading = { .db = db, .tracks = tracks, .since_ns = since_ns, .until_ns = until_ns };
	int r;

	if (!tracks)
		return -ENOMEM;
	r = read_all(&reading);
	free(reading.offsets);
	if (r < 0)
		return r;
	if (tracks->n_slices > 0)
		qsort(tracks->slices, tracks->n_slices, sizeof *tracks->slices, compare_slices);
	if (tracks->n_values > 0)
		qsort(tracks->values, tracks->n_values, sizeof *tracks->values, compare_values);
	*ret = TAKE(tracks);
	return 0;
}
