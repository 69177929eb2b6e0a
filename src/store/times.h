/* SPDX-License-Identifier: MIT */
/* times.h - times as a recording stores them: in steps of 2^-22 seconds, about 238 ns. Private.
 *
 * That is the resolution of a timestamp, seconds since 1970 as REAL, until 2038, so that readers lose
 * nothing; the nanoseconds below would be a byte of noise in each sample.
 */
#ifndef PROBING_STORE_TIMES_H
#define PROBING_STORE_TIMES_H

#include <stdint.h>

enum { TICK_BITS = 22 };
#define TIMES_MAX_NS ((uint64_t)INT64_MAX - 1000) /* later ones might be rounded beyond the range of SQL's numbers */

/* The nearest step of a time (CLOCK_REALTIME, ns), never 0, and its time. The two functions are inverse. */
static inline uint64_t time_ticks(uint64_t ns)
{
	uint64_t ticks = (ns / 1000000000 << TICK_BITS) + (ns % 1000000000 * 8192 + 976562) / 1953125;

	return ticks > 0 ? ticks : 1;
}

static inline uint64_t ticks_time(uint64_t ticks)
{
	uint64_t below = ticks & ((UINT64_C(1) << TICK_BITS) - 1);

	return (ticks >> TICK_BITS) * 1000000000 + ((below * 1953125 + 4096) >> 13);
}

#endif
