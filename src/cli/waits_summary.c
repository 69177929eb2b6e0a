/* waits_summary.c - see waits_summary.h. */
#include "src/cli/waits_summary.h"

#include <stdio.h>

#include "src/cli/format.h"

static void print_time(uint64_t time_ns)
{
	if (time_ns >= 1000000000)
		fprintf(stderr, "%.2f s", (double)time_ns / 1e9);
	else
		fprintf(stderr, "%.1f ms", (double)time_ns / 1e6);
}

static void print_states(const struct pipeline_counts *counts)
{
	const char *separator = "off CPU: ";

	if (counts->by_state[STATE_RUNNING] > 0) {
		fputs("on CPU: ", stderr);
		print_time(counts->by_state[STATE_RUNNING]);
		separator = "; off CPU: ";
	}
	for (int state = STATE_RUNNABLE; state < STATE_N; state++) {
		if (counts->by_state[state] == 0)
			continue;
		fprintf(stderr, "%s%s ", separator, thread_state_name((enum thread_state)state));
		print_time(counts->by_state[state]);
		separator = ", ";
	}
	fputc('\n', stderr);
}

void waits_summary_print(const struct pipeline_counts *counts, double seconds)
{
	char switches[32], stacks[32];

	print_states(counts);
	format_count(counts->switches, switches);
	format_count(counts->switch_stacks, stacks);
	fprintf(stderr, "%s switches away from a CPU", switches);
	if (seconds > 0 && counts->switches > 0)
		fprintf(stderr, " (%.0f a second)", (double)counts->switches / seconds);
	fprintf(stderr, ", stacks of %s waits%s\n", stacks,
		counts->switches > 2 * counts->switch_stacks
			? "; the time of the others is with those of their thread that are like them" : "");
	if (counts->unknown_ns > 0) {
		fputs("of ", stderr);
		print_time(counts->unknown_ns);
		fputs(" of threads nothing is known, for records of switches fell out: raise "
		      "kernel.perf_event_mlock_kb, or record fewer threads\n", stderr);
	}
}
