/* SPDX-License-Identifier: MIT */
/* waits_summary.c - see summary.h. */
#include "src/cli/cli.h"
#include "src/cli/record/summary.h"

#include <stdio.h>
#include <time.h>

#include "src/cli/format.h"

enum { MANY_SWITCHES = 1000 }; /* per second; costs perhaps a thousandth of a CPU */

static void print_time(uint64_t time_ns)
{
	if (time_ns >= 1000000000)
		cli_say("%.2f s", (double)time_ns / 1e9);
	else
		cli_say("%.1f ms", (double)time_ns / 1e6);
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
		cli_say("%s%s ", separator, thread_state_name((enum thread_state)state));
		print_time(counts->by_state[state]);
		separator = ", ";
	}
	fputc('\n', stderr);
	if (counts->n_task_reads == 0)
		return;
	fputs("asyncio tasks waited ", stderr);
	print_time(counts->task_ns);
	cli_say(" (state await), read %llu times for %.1f ms each\n", (unsigned long long)counts->n_task_reads,
		(double)counts->task_read_ns / 1e6 / (double)counts->n_task_reads);
}

void waits_cost_measure(const struct capture_options *options, enum capture_source source,
			const struct pipeline_counts *counts, double seconds, struct waits_cost *ret)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	ret->recorder_ns = (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
	ret->switch_ns = -1;
	ret->is_counted = source == SOURCE_AGENT;
	if (source == SOURCE_POLL || source == SOURCE_AGENT || (double)counts->switches < MANY_SWITCHES * seconds)
		return;
	if (capture_switch_cost(options, source, &ret->switch_ns) < 0)
		ret->switch_ns = -1; /* the recording is complete without it */
}

/* Relative to the threads' CPU time if that was recorded, else to one CPU. */
static void print_cost(const struct pipeline_counts *counts, double seconds, const struct waits_cost *cost)
{
	double running_ns = (double)counts->by_state[STATE_RUNNING], taken_ns;

	if (cost->switch_ns >= 0) {
		taken_ns = cost->switch_ns * (double)counts->switches;
		cli_say("recording a context switch took about %.0f ns: ", cost->switch_ns);
		if (running_ns > taken_ns)
			cli_say("%.1f %% of the threads' time on a CPU; ", 100 * taken_ns / (running_ns - taken_ns));
		else
			cli_say("%.1f %% of a CPU; ", taken_ns / seconds / 1e7);
	}
	cli_say("the recorder used %.1f %% of a CPU\n", cost->recorder_ns / seconds / 1e7);
}

void waits_summary_print(const struct pipeline_counts *counts, double seconds, const struct waits_cost *cost)
{
	char switches[32], stacks[32];

	print_states(counts);
	format_count(counts->switches, switches);
	format_count(counts->switch_stacks, stacks);
	cli_say("%s context switches%s", switches, cost->is_counted ? " seen" : "");
	if (seconds > 0 && counts->switches > 0)
		cli_say(" (%.0f a second)", (double)counts->switches / seconds);
	cli_say(", stacks of %s waits%s\n", stacks,
		counts->switches > 2 * counts->switch_stacks
			? "; the others' time is added to similar waits of their thread"
			: "");
	if (seconds > 0)
		print_cost(counts, seconds, cost);
	if (counts->unknown_ns > 0) {
		fputs("of ", stderr);
		print_time(counts->unknown_ns);
		fputs(cost->is_counted ? " of threads' time is unknown: these threads ended between two readings\n"
				       : " of threads' time is unknown, because records of context switches were lost: "
					 "raise kernel.perf_event_mlock_kb, or record fewer threads\n",
		      stderr);
	}
}
