/* SPDX-License-Identifier: MIT */
/* clock.c - how far the clock of another machine is ahead of ours. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/cluster/cluster.h"

bool clock_offset_of(const struct clock_exchange *exchanges, size_t n, struct clock_offset *ret)
{
	int64_t shortest = INT64_MAX;

	for (size_t i = 0; i < n; i++) {
		const struct clock_exchange *exchange = &exchanges[i];
		int64_t trip = exchange->answered_ns - exchange->asked_ns;

		/* Our own clock was set meanwhile. */
		if (trip < 0 || trip >= shortest)
			continue;
		shortest = trip;
		*ret = (struct clock_offset){ exchange->theirs_ns - (exchange->asked_ns + trip / 2), trip / 2 + 1 };
	}
	return shortest < INT64_MAX;
}

int clock_parse(const char *text, int64_t *ret)
{
	size_t n = strspn(text, "0123456789");

	/* 18 digits are the year 2001, and 19 may be too large. */
	if (n == 0 || n > 19 || text[n + (text[n] == '\n')] != '\0')
		return -EBADMSG;
	errno = 0;
	*ret = strtoll(text, NULL, 10);
	return errno == 0 ? 0 : -EBADMSG;
}
