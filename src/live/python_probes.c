/* SPDX-License-Identifier: MIT */
/* python_probes.c - python.function_time, python.function_call, python.variables: what probes inside a process have seen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/live/parse.h"
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

static int read_variables(struct live *live, struct live_rows *rows)
{
	return read_table(live, rows, "variables", 5);
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
};
