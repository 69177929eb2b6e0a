/* SPDX-License-Identifier: MIT */
/* poll_pace.c - see poll_pace.h. */
#include "src/capture/poll_pace.h"

#include <errno.h>

#include "base/util.h"

enum { MAX_HZ = 20000, LONGEST_PERIOD_NS = 1000000000, MEAN_OVER = 8 };

int poll_pace_init(struct poll_pace *pace, double hz, uint64_t now_ns)
{
	uint64_t period_ns;

	if (!(hz >= 0.001 && hz <= MAX_HZ)) /* false for NaN */
		return -EINVAL;
	period_ns = (uint64_t)(1e9 / hz);
	*pace = (struct poll_pace){
		.wanted_ns = period_ns,
		.period_ns = period_ns,
		.next_ns = now_ns + period_ns,
	};
	return 0;
}

static void count(struct poll_pace *pace, uint64_t began_ns)
{
	uint64_t n_periods;

	pace->n_looks++;
	if (pace->began_ns != 0) {
		n_periods = (began_ns - pace->began_ns + pace->wanted_ns / 2) / pace->wanted_ns;
		if (n_periods > 1)
			pace->n_lost += n_periods - 1;
	}
	pace->began_ns = began_ns;
}

static void adapt(struct poll_pace *pace, uint64_t took_ns)
{
	uint64_t longest = MAX(pace->wanted_ns, (uint64_t)LONGEST_PERIOD_NS);

	pace->mean_ns = (pace->mean_ns * (MEAN_OVER - 1) + took_ns) / MEAN_OVER;
	if (pace->mean_ns > pace->period_ns / 2)
		pace->period_ns = MIN(pace->mean_ns * 4, longest);
	else if (pace->mean_ns < pace->period_ns / 8)
		pace->period_ns = MAX(pace->period_ns / 2, pace->wanted_ns);
	if (pace->period_ns > pace->wanted_ns)
		pace->longest_ns = MAX(pace->longest_ns, pace->period_ns);
}

void poll_pace_looked(struct poll_pace *pace, uint64_t began_ns, uint64_t now_ns)
{
	count(pace, began_ns);
	adapt(pace, now_ns - began_ns);
	if (now_ns >= pace->next_ns)
		pace->next_ns += ((now_ns - pace->next_ns) / pace->period_ns + 1) * pace->period_ns;
}

void poll_pace_resume(struct poll_pace *pace, uint64_t now_ns)
{
	pace->began_ns = 0;
	pace->next_ns = now_ns;
}
