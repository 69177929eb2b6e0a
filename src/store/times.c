/* SPDX-License-Identifier: MIT */
/* times.c - instants between nanoseconds and a file's seconds; times.h has why. */
#include <math.h>

#include "src/store/store.h"
#include "src/store/times.h"

double store_seconds(uint64_t time_ns)
{
	return time_ns > 0 ? ldexp((double)time_ticks(time_ns), -TICK_BITS) : 0;
}

uint64_t store_nanoseconds(double seconds)
{
	double ticks = ldexp(seconds, TICK_BITS);

	if (!(ticks >= 1 && ticks <= (double)time_ticks(TIMES_MAX_NS)))
		return 0;
	return ticks_time((uint64_t)ticks);
}

uint64_t store_time(uint64_t time_ns)
{
	return ticks_time(time_ticks(time_ns));
}
