/* SPDX-License-Identifier: MIT */
/* python_probes.c - python.function_time, python.function_call, python.variables: what probes inside a process have seen.
 *
 * python.variables has the values that attach --config reads from time to time, which the agent sends, and those of
 * probing.watch_vars, which are in a ring (python/probing/_watch.py).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/live/parse.h"
#include "src/live/rings.h"
#include "src/live/rows.h"
#include "src/live/tables.h"

static void put(struct live_rows *rows, const struct cell *cell)
{
	switch (cell->type) {
	case 'i':
		live_integer(rows, cell->integer);
		break;
	case 'f':
		live_real(rows, cell->real);
		break;
	case 't':
		live_bytes(rows, cell->text, cell->n_text);
		break;
	default:
		live_null(rows);
	}
}

/* Each row must have all columns: the process may send anything. */
static int put_all(struct live_rows *rows, const char *at, const char *end, size_t n_columns)
{
	size_t n = 0;
	struct cell cell;

	while (at < end) {
		if (!parse_next_cell(&at, end, &cell))
			return -EBADMSG;
		put(rows, &cell);
		n++;
		if (cell.ends_row != (n == n_columns))
			return -EBADMSG;
		n = cell.ends_row ? 0 : n;
	}
	return n == 0 ? 0 : -EBADMSG;
}

static int read_table(struct live *live, struct live_rows *rows, const char *table, size_t n_columns)
{
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes;
	int r = -ENODATA;

	if (live->options.probes)
		r = live->options.probes(live->options.data, live->options.pid, table, &text, &n_bytes, live->why);
	return r < 0 ? r : put_all(rows, text, text + n_bytes, n_columns);
}

static int read_function_time(struct live *live, struct live_rows *rows)
{
	return read_table(live, rows, "function_time", 7);
}

static int read_function_call(struct live *live, struct live_rows *rows)
{
	return read_table(live, rows, "function_call", 5);
}

/* ---- python.variables ---- */

enum { TIMESTAMP, FUNC, NAME, NUMBER, TEXT, STEP, TID, N_SHOWN, N_WATCHED = N_SHOWN + PROGRAM_N_HIDDEN };

static const char *const watched_columns[N_SHOWN] = { "timestamp", "func", "name", "number", "text", "step", "tid" };

static bool is_of_ours(const struct live_ring *ring)
{
	if (ring->described.n_columns != N_WATCHED)
		return false;
	for (size_t i = 0; i < N_SHOWN; i++)
		if (strcmp(ring->described.columns[i].name, watched_columns[i]) != 0)
			return false;
	return true;
}

static void copy_value(struct live_rows *rows, const struct live_rows *from, const struct live_value *value)
{
	switch (value->type) {
	case LIVE_INTEGER:
		live_integer(rows, value->integer);
		break;
	case LIVE_REAL:
		live_real(rows, value->real);
		break;
	case LIVE_TEXT:
		live_bytes(rows, from->bytes + value->text, value->n_bytes);
		break;
	default:
		live_null(rows);
	}
}

static int put_watched(struct live *live, const struct live_ring *ring, struct live_rows *rows)
{
	struct live_rows all = { 0 };
	int r;

	if (!is_of_ours(ring)) {
		snprintf(live->why, sizeof live->why, "the ring probing_variables of process %d is not probing's",
			 (int)live->options.pid);
		return -EBADMSG;
	}
	r = live_ring_read(live, ring, &all);
	for (size_t i = 0; r == 0 && i + N_WATCHED <= all.n_values; i += N_WATCHED) {
		const struct live_value *row = all.values + i;

		copy_value(rows, &all, &row[TIMESTAMP]);
		copy_value(rows, &all, &row[STEP]);
		copy_value(rows, &all, &row[FUNC]);
		copy_value(rows, &all, &row[NAME]);
		copy_value(rows, &all, &row[row[NUMBER].type == LIVE_NULL ? TEXT : NUMBER]);
		copy_value(rows, &all, &row[TID]);
	}
	r = r == 0 ? all.error : r;
	live_rows_done(&all);
	return r;
}

/* Without probes in the process, the ring's rows are all there is. */
static int read_variables(struct live *live, struct live_rows *rows)
{
	const struct live_ring *ring = live_rings_variables(&live->rings);
	int r = ring ? put_watched(live, ring, rows) : 0;

	if (r < 0 || live->has_ended)
		return r;
	r = read_table(live, rows, "variables", 6);
	if (!ring || (r != -ENOENT && r != -ENODATA))
		return r;
	live->why[0] = '\0';
	return 0;
}

const struct live_table live_python_function_time = {
	.schema = "python",
	.name = "function_time",
	.read = read_function_time,
};
const struct live_table live_python_function_call = {
	.schema = "python",
	.name = "function_call",
	.read = read_function_call,
};
const struct live_table live_python_variables = {
	.schema = "python",
	.name = "variables",
	.read = read_variables,
	.outlives_process = true,
};
