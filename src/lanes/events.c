/* SPDX-License-Identifier: MIT */
/*
 * events.c - what programs and GPUs did: rows with a begin and a length. Each kind is one statement; a recording without its table has
 * none. Rows of a lane that overlap are below each other.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/lanes/lanes_private.h"
#include "src/store/store.h"

enum { MAX_EVENTS = 4 << 20, MAX_EVENT_LANES = 256, MAX_ROWS = 12 };
#define MAX_SECONDS 2e9

#define STARTED "coalesce(gpu_trace.started, (SELECT started FROM run)), start_ns, duration_ns"

/*
 * Columns: pid, tid, title (NULL: the kind's), name, base in seconds since 1970, begin in ns after that, length in ns (NULL: not over).
 * The program's own tables are in the schema python; `timestamp - time_ns / 1e9` is the difference of its clocks.
 */
static const struct event_query {
	const char *kind, *sql;
} queries[] = {
	/* From the row of the begin to that of the end. Where the first is lost, from the duration; where the second is missing, it goes on. */
	{ "spans",
	  "SELECT process, tid, NULL, name, coalesce(max(began), max(timestamp) - max(duration_ms) / 1e3), 0,"
	  " coalesce(max(ended_ns) - max(began_ns), max(duration_ms) * 1e6) FROM (SELECT span, tid, name, timestamp, duration_ms, process,"
	  " CASE phase WHEN 'begin' THEN timestamp END AS began, CASE phase WHEN 'begin' THEN time_ns END AS began_ns,"
	  " CASE phase WHEN 'end' THEN time_ns END AS ended_ns FROM python.spans) GROUP BY process, span" },
	{ "torch modules",
	  "SELECT process, tid, NULL, CASE WHEN module IS NULL OR module = '' THEN stage ELSE module || ' · ' || stage END,"
	  " timestamp - time_ns / 1e9, began * 1e9, host_ms * 1e6 FROM python.torch_trace WHERE host_ms IS NOT NULL" },
	{ "communication",
	  "SELECT process, 0, NULL, op, timestamp, -latency_ms * 1e6, latency_ms * 1e6 FROM python.comm_metrics"
	  " WHERE latency_ms IS NOT NULL" },
	{ "profiler steps", "SELECT coalesce(torch_step.pid, gpu_trace.pid, 0), 0, NULL, 'step ' || number,"
			    " " STARTED " FROM torch_step JOIN gpu_trace USING (trace)" },
	{ "torch operations", "SELECT coalesce(torch_op.pid, gpu_trace.pid, 0), coalesce(tid, 0), NULL, name, " STARTED
			      " FROM torch_op JOIN gpu_trace USING (trace)" },
	{ "ranges", "SELECT coalesce(gpu_trace.pid, 0), 0, NULL, name, " STARTED
		    " FROM gpu_range JOIN gpu_trace USING (trace) WHERE start_ns IS NOT NULL" },
	{ "GPU kernels",
	  "SELECT 0, 0, coalesce('stream ' || stream || ' · ', '') || coalesce(device, 'GPU'), name, " STARTED
	  " FROM gpu_kernel JOIN gpu_trace USING (trace)"
	  " WHERE start_ns IS NOT NULL" },
	{ "GPU copies", "SELECT 0, 0, 'copies · ' || coalesce(device, 'GPU'), name, " STARTED
			" FROM gpu_memcpy JOIN gpu_trace USING (trace)"
			" WHERE start_ns IS NOT NULL" },
};

void lanes_drop_events(struct lanes *lanes)
{
	for (size_t i = 0; i < lanes->n_events; i++) {
		free(lanes->events[i].title);
		free(lanes->events[i].items);
		free(lanes->events[i].reach);
	}
	lanes->n_events = 0;
	lanes->is_cut = false;
}

/* The rows of one kind come in any order of lanes; there are few of these. */
static int find_lane(struct lanes *lanes, const char *kind, const char *title, int32_t pid, int32_t tid,
		     struct event_lane **ret)
{
	int r;

	for (size_t i = lanes->n_events; i-- > 0 && strcmp(lanes->events[i].kind, kind) == 0;) {
		struct event_lane *lane = &lanes->events[i];

		if (lane->pid == pid && lane->tid == tid && strcmp(lane->title, title) == 0) {
			*ret = lane;
			return 0;
		}
	}
	if (lanes->n_events == MAX_EVENT_LANES)
		return -E2BIG;
	r = grow(&lanes->events, lanes->n_events, &lanes->events_allocated, sizeof *lanes->events);
	if (r < 0)
		return r;
	*ret = &lanes->events[lanes->n_events];
	**ret = (struct event_lane){ .kind = kind, .title = strdup(title), .pid = pid, .tid = tid };
	if (!(*ret)->title)
		return -ENOMEM;
	lanes->n_events++;
	return 0;
}

/* Reals lose nanoseconds, so the base is apart from what is counted from it. False: no time. */
static bool time_of(double base, double after_ns, uint64_t *ret)
{
	double ns = base * 1e9 + after_ns;

	if (!(ns >= 1 && ns < MAX_SECONDS * 1e9))
		return false;
	*ret = (uint64_t)ns;
	return true;
}

static int put_event(struct lanes *lanes, const char *kind, const char *title, int32_t pid, int32_t tid,
		     const char *name, uint64_t start_ns, uint64_t end_ns)
{
	struct event event = { .start_ns = start_ns, .end_ns = MAX(end_ns, start_ns + 1) };
	struct event_lane *lane = NULL;
	int r = find_lane(lanes, kind, title, pid, tid, &lane);

	if (r == -E2BIG) {
		lanes->is_cut = true;
		return 0;
	}
	if (r >= 0)
		r = lane_calls_name(&lanes->calls, NAME_EVENT, name, "", &event.name);
	if (r >= 0)
		r = grow(&lane->items, lane->n, &lane->allocated, sizeof *lane->items);
	if (r >= 0)
		lane->items[lane->n++] = event;
	return r;
}

static int take_row(struct lanes *lanes, const struct event_query *query, sqlite3_stmt *row)
{
	const char *title = (const char *)sqlite3_column_text(row, 2),
		   *name = (const char *)sqlite3_column_text(row, 3);
	double length = sqlite3_column_double(row, 6);
	bool is_open = sqlite3_column_type(row, 6) == SQLITE_NULL;
	uint64_t start_ns, end_ns = UINT64_MAX;

	if (!time_of(sqlite3_column_double(row, 4), sqlite3_column_double(row, 5), &start_ns))
		return 0;
	if (!is_open && !(length >= 0 && length < MAX_SECONDS * 1e9))
		return 0;
	if (!is_open)
		end_ns = start_ns + (uint64_t)length;
	return put_event(lanes, query->kind, title ?: query->kind, sqlite3_column_int(row, 0),
			 sqlite3_column_int(row, 1), name && name[0] ? name : "[unnamed]", start_ns, end_ns);
}

static int load_rows(struct lanes *lanes, const struct event_query *query, size_t *n)
{
	sqlite3_stmt *row;
	int code, r = 0;

	code = sqlite3_prepare_v2(lanes->db, query->sql, -1, &row, NULL);
	if (code != SQLITE_OK) /* no such table, or column */
		return code == SQLITE_ERROR ? 0 : store_errno(lanes->db, code);
	while (r >= 0 && *n < MAX_EVENTS && (code = sqlite3_step(row)) == SQLITE_ROW) {
		r = take_row(lanes, query, row);
		++*n;
	}
	if (*n >= MAX_EVENTS)
		lanes->is_cut = true;
	else if (r >= 0 && code != SQLITE_DONE)
		r = store_errno(lanes->db, code);
	sqlite3_finalize(row);
	return r;
}

static int load_steps(struct lanes *lanes)
{
	CLEANUP(freep) struct step_time *steps = NULL;
	char name[32];
	size_t n = 0;
	int r = store_read_steps(lanes->db, &steps, &n);

	if (r == -E2BIG) {
		lanes->is_cut = true;
		return 0;
	}
	for (size_t i = 0; i < n && r >= 0; i++) {
		snprintf(name, sizeof name, "step %lld", (long long)steps[i].step);
		r = put_event(lanes, "steps", "steps", (int32_t)steps[i].pid, 0, name, steps[i].begin_ns,
			      steps[i].end_ns);
	}
	return r;
}

/* ---- Rows of a lane ---- */

static int by_start(const void *a, const void *b)
{
	const struct event *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	if (left->end_ns != right->end_ns)
		return left->end_ns > right->end_ns ? -1 : 1;
	return left->name < right->name ? -1 : left->name > right->name;
}

static int arrange(struct lanes *lanes, struct event_lane *lane)
{
	uint64_t ends[MAX_ROWS] = { 0 }, reach = 0;

	qsort(lane->items, lane->n, sizeof *lane->items, by_start);
	lane->reach = calloc(lane->n, sizeof *lane->reach);
	if (!lane->reach)
		return -ENOMEM;
	for (size_t i = 0; i < lane->n; i++) {
		struct event *event = &lane->items[i];

		while (event->row < MAX_ROWS - 1 && ends[event->row] > event->start_ns)
			event->row++;
		ends[event->row] = MAX(ends[event->row], event->end_ns);
		lane->n_rows = MAX(lane->n_rows, event->row + 1);
		reach = MAX(reach, event->end_ns);
		lane->reach[i] = reach;
		lanes_reach(lanes, event->start_ns, event->end_ns == UINT64_MAX ? event->start_ns + 1 : event->end_ns);
	}
	return 0;
}

int lanes_load_events(struct lanes *lanes)
{
	size_t n = 0;
	int r;

	lanes_drop_events(lanes);
	r = load_steps(lanes);
	for (size_t i = 0; i < N_ELEMENTS(queries) && r >= 0; i++)
		r = load_rows(lanes, &queries[i], &n);
	for (size_t i = 0; i < lanes->n_events && r >= 0; i++)
		r = arrange(lanes, &lanes->events[i]);
	return r;
}
