/* SPDX-License-Identifier: MIT */
/* memory_usage.c - memory_usage: how much memory a process takes, now. */
#include <errno.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/live/parse.h"
#include "src/live/rows.h"
#include "src/live/tables.h"

enum { MAX_STATUS = 1 << 16 };

/* Convert kilobytes of one or two lines to megabytes; NULL if both are missing. */
static void put_sum(struct live_rows *rows, const char *text, const char *key, const char *other)
{
	int64_t kilobytes, more;

	if (!text || !parse_number(text, key, 10, &kilobytes)) {
		live_null(rows);
		return;
	}
	if (other && parse_number(text, other, 10, &more))
		kilobytes += more;
	live_real(rows, (double)kilobytes / 1024);
}

static int read_memory(struct live *live, struct live_rows *rows)
{
	CLEANUP(freep) char *status = NULL, *rollup = NULL;
	char path[PROC_PATH_BYTES];
	int r;

	proc_path(live->options.pid, "status", path); /* of an ended main thread, it exists but without memory */
	r = read_file(path, MAX_STATUS, &status, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	if (!proc_status_value(status, "VmSize")) /* a kernel thread or zombie */
		return -ENODATA;
	(void)live_read_file(live->options.pid, "smaps_rollup", MAX_STATUS, &rollup, NULL);
	live_real(rows, (double)realtime_ns() / 1e9);
	put_sum(rows, status, "VmRSS", NULL);
	put_sum(rows, status, "VmSize", NULL);
	put_sum(rows, status, "RssAnon", "VmSwap");
	put_sum(rows, status, "RssFile", "RssShmem");
	put_sum(rows, status, "VmSwap", NULL);
	put_sum(rows, status, "VmHWM", NULL);
	put_sum(rows, rollup, "Pss", NULL);
	put_sum(rows, rollup, "Private_Clean", "Private_Dirty");
	live_integer(rows, live->options.pid);
	return 0;
}

const struct live_table live_memory_usage = {
	.schema = "main",
	.name = "memory_usage",
	.read = read_memory,
};
