/* SPDX-License-Identifier: MIT */
/*
 * memory.c - a bound for the memory of queries.
 *
 * SQLite's heap has a limit of its own, so that its allocations fail as it expects. The process has a higher one, for what virtual
 * tables and functions allocate, and another one for the file of a sort that does not fit into memory: without it, a
 * query could fill the disk.
 */
#include <errno.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include "base/util.h"
#include "src/sql/sql.h"

enum { SPARE_BYTES = 256 << 20, FILE_FACTOR = 4 };

static int lower(int what, uint64_t bytes)
{
	struct rlimit limit;

	if (getrlimit(what, &limit) < 0)
		return -errno;
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)bytes);
	return setrlimit(what, &limit) < 0 ? -errno : 0;
}

/* Source: setrlimit(2), RLIMIT_DATA counts private writable mappings since Linux 4.7; a file that is too long gives EFBIG, where SIGXFSZ is ignored. */
int sql_limit_memory(uint64_t max_bytes)
{
	int r = lower(RLIMIT_DATA, max_bytes + SPARE_BYTES);

	sqlite3_hard_heap_limit64((sqlite3_int64)max_bytes);
	return r < 0 ? r : lower(RLIMIT_FSIZE, max_bytes * FILE_FACTOR);
}
