/* SPDX-License-Identifier: MIT */
/* python_gil.c - python.gil: which threads hold the GIL and which wait for it, in some readings. */
#include <errno.h>

#include "src/backtrace/backtrace.h"
#include "src/live/rows.h"
#include "src/live/tables.h"

static int read_gil(struct live *live, struct live_rows *rows)
{
	struct backtrace_gil_thread *threads = NULL;
	size_t n = 0;
	int r = 0;

	if (!live->session)
		r = backtrace_session_new(true, &live->session);
	if (r == 0)
		r = backtrace_gil_take(live->session, live->options.pid, &threads, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		live_integer(rows, threads[i].tid);
		live_text(rows, threads[i].name);
		live_integer(rows, threads[i].n_readings);
		live_integer(rows, threads[i].n_held);
		live_integer(rows, threads[i].n_waited);
	}
	backtrace_gil_free(threads, n);
	return 0;
}

const struct live_table live_python_gil = {
	.schema = "python",
	.name = "gil",
	.read = read_gil,
};
