/* SPDX-License-Identifier: MIT */
/* clock_offset.h - CLOCK_REALTIME minus CLOCK_MONOTONIC. In a header, because the agent links libc alone. */
#ifndef PROBING_BASE_CLOCK_OFFSET_H
#define PROBING_BASE_CLOCK_OFFSET_H

#include <stdint.h>
#include <time.h>

typedef int clock_reader(clockid_t clock, struct timespec *ret); /* clock_gettime(2) */

static inline int64_t clock_offset_read(clock_reader *read, clockid_t clock)
{
	struct timespec now;

	read(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * clock_offset_ns - the offset, in ns, with the smallest uncertainty of some tries.
 *
 * The thread may lose its processor between two clock reads, for seconds on a busy machine. So the realtime clock is read
 * between two reads of the other one, and read again where these are far apart.
 */
static inline int64_t clock_offset_ns(clock_reader *read)
{
	enum { MAX_TRIES = 20, GOOD_NS = 2000 };
	int64_t offset = 0, smallest = INT64_MAX;

	for (int i = 0; i < MAX_TRIES && smallest > GOOD_NS; i++) {
		int64_t before = clock_offset_read(read, CLOCK_MONOTONIC);
		int64_t real = clock_offset_read(read, CLOCK_REALTIME);
		int64_t between = clock_offset_read(read, CLOCK_MONOTONIC) - before;

		if (between < smallest) {
			smallest = between;
			offset = real - before - between / 2;
		}
	}
	return offset;
}

#endif
