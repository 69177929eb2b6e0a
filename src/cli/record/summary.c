/* SPDX-License-Identifier: MIT */
/* summary.c - see summary.h. */
#include "src/cli/record/summary.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/format.h"
#include "src/cli/report/report.h"
#include "src/report/report.h"

/* Give a hint if a tenth of all CPU time has no sample. */
enum { REPORT_ROWS = 8, MISSING_SHARE = 10 };

static const char *const verdict_counters[VERDICT_N] = {
	[VERDICT_EXACT] = "verdict exact",
	[VERDICT_VERIFIED] = "verdict verified",
	[VERDICT_APPROXIMATE] = "verdict approximate",
	[VERDICT_NO_PYTHON] = "verdict no_python",
	[VERDICT_PYTHON] = "verdict python",
};

static const char *const end_counters[STACK_N_ENDS] = {
	[STACK_COMPLETE] = "stack complete",     [STACK_COMPLETED] = "stack completed",
	[STACK_TRUNCATED] = "stack truncated",   [STACK_NO_UNWIND_INFO] = "stack no unwind info",
	[STACK_BAD_MEMORY] = "stack bad memory", [STACK_FRAME_LIMIT] = "stack frame limit",
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static uint64_t sampled(const struct pipeline_counts *counts)
{
	return counts->samples - counts->n_unsampled;
}

static void print_verdicts(const struct pipeline_counts *counts, enum capture_source source)
{
	uint64_t with_python = counts->samples - counts->by_verdict[VERDICT_NO_PYTHON];
	const char *separator = "";

	if (source == SOURCE_POLL)
		cli_say("%.1f %% of samples run Python", percent(with_python, sampled(counts)));
	else
		cli_say("%.1f %% of stacks reach the thread's start",
			percent(counts->by_end[STACK_COMPLETE] + counts->by_end[STACK_COMPLETED],
				counts->samples - counts->without_stack));
	if (with_python > 0)
		fputs("; with Python: ", stderr);
	for (int i = 0; i < VERDICT_N && with_python > 0; i++) {
		if (i == VERDICT_NO_PYTHON || counts->by_verdict[i] == 0)
			continue;
		cli_say("%s%.1f %% %s", separator, percent(counts->by_verdict[i], with_python),
			verdict_name((enum verdict)i));
		separator = ", ";
	}
	fputc('\n', stderr);
}

/* Samples dropped by the filters. --gil also drops threads whose state is unknown. */
static void print_left_out(const struct summary *summary)
{
	const struct filter_options *filter = summary->filter;
	const char *const names[] = {
		filter->threads.n > 0 ? "--threads" : NULL,
		filter->functions.n > 0 ? "--function" : NULL,
		filter->gil ? "--gil" : NULL,
	};
	const char *separator = "";
	char count[32];

	if (summary->counts.left_out == 0)
		return;
	format_count(summary->counts.left_out, count);
	cli_say("%s more samples excluded by ", count);
	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		if (!names[i])
			continue;
		cli_say("%s%s", separator, names[i]);
		separator = ", ";
	}
	fputc('\n', stderr);
}

/* Explain missing samples, and what to change. */
static void print_missing(const struct summary *summary, uint64_t missing_ns)
{
	const struct capture_counts *captured = &summary->captured;

	if (summary->source == SOURCE_POLL) {
		fputs("processes that ended between two polls have no samples: raise -F\n", stderr);
		return;
	}
	if (summary->source == SOURCE_AGENT) {
		fputs("threads that end within 0.1 s, and processes without an agent, have no samples\n", stderr);
		return;
	}
	if (summary->kernel_left_out)
		fputs("time in the kernel has no samples (--no-kernel)\n", stderr);
	else if (!summary->has_kernel)
		fputs("time in the kernel has no samples: `sysctl kernel.perf_event_paranoid=1`, or record as root\n",
		      stderr);
	if (captured->lost > 0)
		fputs("lost samples have no stack: lower -F\n", stderr);
	else if (captured->ended_ns >= missing_ns / 2)
		fputs("threads that ended before their next sample have no samples: raise -F\n", stderr);
}

/* Compare the kernel's CPU time of the program with the sampled time. */
static void print_account(const struct summary *summary)
{
	uint64_t used_ns = summary->captured.used_ns, sampled_ns = summary->captured.sampled_ns;
	uint64_t missing_ns = used_ns > sampled_ns ? used_ns - sampled_ns : 0;

	if (used_ns == 0)
		return;
	cli_say("CPU time by the kernel's account %.2f s, sampled %.2f s, not sampled %.2f s (%.1f %%)\n",
		(double)used_ns / 1e9, (double)sampled_ns / 1e9, (double)missing_ns / 1e9,
		percent(missing_ns, used_ns));
	if (missing_ns >= used_ns / MISSING_SHARE)
		print_missing(summary, missing_ns);
}

static void print_held(const struct pipeline_counts *counts)
{
	struct held_time held = { counts->weight, counts->gil_ns, counts->gil_known_ns, counts->gc_ns,
				  counts->gc_known_ns };

	report_held(&held, cli_columns(STDERR_FILENO), stderr);
}

/* Skipped polls lose no CPU time: the next poll includes it. */
static void print_skipped_ticks(const struct capture_counts *captured)
{
	cli_say("%llu of %llu polls skipped (the previous one overran, or the recorder got no CPU)",
		(unsigned long long)captured->skipped_ticks,
		(unsigned long long)(captured->poll_ticks + captured->skipped_ticks));
	if (captured->longest_period_ns > 0)
		cli_say("; the period grew to %.1f ms: lower the rate with -F",
			(double)captured->longest_period_ns / 1e6);
	fputs("; their time is in the samples after them\n", stderr);
}

static void print_limited(const struct symbol_limited *limited)
{
	char others[48] = "";

	if (limited->n_modules > 1)
		snprintf(others, sizeof others, ", and %llu more", (unsigned long long)limited->n_modules - 1);
	cli_say("%llu native addresses have no names: %s%s (%s)\n", (unsigned long long)limited->n_places,
		limited->path, others, symbol_limit_text(limited->limit));
}

/* If the reading process died of a file, the file may be damaged or malicious. */
static void print_confinement(const struct summary *summary)
{
	const struct pipeline_name_troubles *names = &summary->names;
	const struct pipeline_cfi_troubles *cfi = &summary->cfi;

	if (names->n_deaths > 0)
		cli_say("the process that reads foreign files died %u time%s\n", names->n_deaths,
			names->n_deaths > 1 ? "s" : "");
	if (names->path)
		cli_say("it first died while reading %s, whose functions are shown by their offsets\n", names->path);
	if (names->is_of_generated)
		fputs("it died while reading a perf map or a jitdump: generated code has no names from then on\n",
		      stderr);
	if (cfi->n_deaths > 0)
		cli_say("the process that reads call frame information died %u time%s\n", cfi->n_deaths,
			cfi->n_deaths > 1 ? "s" : "");
	if (cfi->path)
		cli_say("%u file%s unwound without call frame information, the first is %s\n", cfi->n_unread,
			cfi->n_unread > 1 ? "s are" : " is", cfi->path);
	if (names->filter_error < 0 || cfi->filter_error < 0)
		cli_say("files were read without a seccomp filter: %s\n",
			strerror(names->filter_error < 0 ? -names->filter_error : -cfi->filter_error));
	if (summary->gpu_trouble)
		cli_say("GPUs were not read to the end: %s\n", summary->gpu_trouble);
	if (summary->restrict_error < 0)
		cli_say("the recorder kept more privileges than it needed: %s\n", strerror(-summary->restrict_error));
}

/* What keeps an agent from sampling threads. */
static void print_agent(const struct capture_counts *captured)
{
	if (captured->n_yielded > 0)
		cli_say("sampling ended in %llu process%s: the program uses the signal of the agent itself now\n",
			(unsigned long long)captured->n_yielded, captured->n_yielded > 1 ? "es" : "");
	if (captured->n_blocked > 0)
		cli_say("%llu thread%s the signal of the agent, and %s no samples\n",
			(unsigned long long)captured->n_blocked, captured->n_blocked > 1 ? "s block" : " blocks",
			captured->n_blocked > 1 ? "have" : "has");
	if (captured->n_refused > 0)
		cli_say("%llu thread%s no timer, and no samples: raise RLIMIT_SIGPENDING (`ulimit -i`)\n",
			(unsigned long long)captured->n_refused, captured->n_refused > 1 ? "s have" : " has");
}

/* Rows that the program wrote, and those that came too fast. */
static void print_rows(const struct pipeline_rows *rows)
{
	char count[32];

	if (rows->n_names == 0)
		return;
	format_count(rows->n_rows, count);
	cli_say("%s row%s of ", count, rows->n_rows == 1 ? "" : "s");
	for (size_t i = 0; i < rows->n_names; i++)
		cli_say("%s%s", i > 0 ? ", " : "", rows->names[i]);
	if (rows->n_names_in_all > rows->n_names)
		cli_say(" and %zu more tables", rows->n_names_in_all - rows->n_names);
	if (rows->n_lost > 0) {
		format_count(rows->n_lost, count);
		cli_say("; %s lost: the program wrote them faster than they were read (larger rings: ExternalTable(..., rows=N))",
			count);
	}
	fputc('\n', stderr);
}

void summary_print(const struct summary *summary)
{
	const struct pipeline_counts *counts = &summary->counts;
	char samples[32], lost[32], weight[32];

	format_count(sampled(counts), samples);
	format_count(summary->captured.lost, lost);
	format_count(counts->weight, weight);
	cli_say("%s sample%s in %.1f s (", samples, sampled(counts) == 1 ? "" : "s", summary->seconds);
	if (summary->unit)
		cli_say("%s%s %s", summary->is_estimate ? "about " : "", weight, summary->unit);
	else
		cli_say("%.2f s of %s", (double)counts->weight / 1e9,
			summary->is_idle || summary->mode != MODE_CPU ? "threads' time" : "CPU time");
	cli_say("), %s lost; written to %s\n", lost, summary->path);
	if (counts->dropped > 0) {
		format_count(counts->samples - counts->dropped, samples);
		cli_say("the newest %s are kept (--max-size, --retention)\n", samples);
	}
	print_account(summary);
	print_agent(&summary->captured);
	print_left_out(summary);
	if (summary->mode != MODE_CPU)
		waits_summary_print(counts, summary->seconds, &summary->waits_cost);
	if (sampled(counts) > 0)
		print_verdicts(counts, summary->source);
	print_held(counts);
	if (counts->of_32_bit > 0)
		cli_say("%llu samples are of a 32-bit program and have no stacks\n",
			(unsigned long long)counts->of_32_bit);
	if (counts->limited.n_places > 0)
		print_limited(&counts->limited);
	print_rows(&summary->rows);
	print_confinement(summary);
	if (summary->captured.skipped_ticks > 0)
		print_skipped_ticks(&summary->captured);
	if (summary->captured.lost > 0 && summary->unit)
		fputs("events came faster than they could be kept: take fewer with -c N, or keep less of each with "
		      "--stack-bytes 4096\n",
		      stderr);
	if (summary->captured.throttled > 0)
		fprintf(stderr,
			"the kernel paused sampling %llu times: %s, or raise "
			"kernel.perf_cpu_time_max_percent\n",
			(unsigned long long)summary->captured.throttled,
			summary->unit ? "take fewer with -c N" : "lower the rate with -F");
}

void summary_report(const char *path)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(profile_freep) struct profile *profile = NULL;
	struct report_options options = { .max_rows = REPORT_ROWS };

	if (store_open_reader(path, &db) < 0 || profile_load(db, &profile) < 0)
		return;
	if (profile->n_totals == 0) {
		cli_say("no samples: %s\n", cli_why_empty(db, profile));
		return;
	}
	options.columns = cli_columns(STDERR_FILENO);
	options.colour = cli_colour(STDERR_FILENO);
	fputc('\n', stderr);
	(void)report_print(profile, &options, stderr);
	nameless_print(profile, &options, path, stderr);
}

void summary_counters(const struct capture_counts *captured, const struct pipeline_counts *counts,
		      struct pipeline_counter *ret)
{
	*ret++ = (struct pipeline_counter){ "samples", counts->samples };
	*ret++ = (struct pipeline_counter){ "lost", captured->lost };
	*ret++ = (struct pipeline_counter){ "throttled", captured->throttled };
	if (captured->used_ns > 0) {
		*ret++ = (struct pipeline_counter){ "cpu ns", captured->used_ns };
		*ret++ = (struct pipeline_counter){ "sampled ns", captured->sampled_ns };
		*ret++ = (struct pipeline_counter){ "not sampled ns", counts->unsampled_ns };
	}
	if (captured->poll_ticks > 0) {
		*ret++ = (struct pipeline_counter){ "poll ticks", captured->poll_ticks };
		*ret++ = (struct pipeline_counter){ "skipped poll ticks", captured->skipped_ticks };
	}
	if (captured->handler_ns > 0)
		*ret++ = (struct pipeline_counter){ "handler ns", captured->handler_ns };
	if (counts->switches > 0) {
		*ret++ = (struct pipeline_counter){ "switches", counts->switches };
		*ret++ = (struct pipeline_counter){ "switch stacks", counts->switch_stacks };
		*ret++ = (struct pipeline_counter){ "unknown ns", counts->unknown_ns };
	}
	if (counts->n_task_reads > 0) {
		*ret++ = (struct pipeline_counter){ "task reads", counts->n_task_reads };
		*ret++ = (struct pipeline_counter){ "task read ns", counts->task_read_ns };
		*ret++ = (struct pipeline_counter){ "task ns", counts->task_ns };
	}
	*ret++ = (struct pipeline_counter){ "python cut", counts->python_cut };
	*ret++ = (struct pipeline_counter){ "python unpaired", captured->unpaired };
	*ret++ = (struct pipeline_counter){ "stacks", counts->n_stacks };
	*ret++ = (struct pipeline_counter){ "frames", counts->n_frames };
	*ret++ = (struct pipeline_counter){ "first sample ns", counts->first_sample_ns };
	*ret++ = (struct pipeline_counter){ "left out", counts->left_out };
	*ret++ = (struct pipeline_counter){ "nobody's", counts->nobodys };
	*ret++ = (struct pipeline_counter){ "gil ns", counts->gil_ns };
	*ret++ = (struct pipeline_counter){ "gil known ns", counts->gil_known_ns };
	*ret++ = (struct pipeline_counter){ "gc ns", counts->gc_ns };
	*ret++ = (struct pipeline_counter){ "gc known ns", counts->gc_known_ns };
	for (int i = 0; i < VERDICT_N; i++)
		*ret++ = (struct pipeline_counter){ verdict_counters[i], counts->by_verdict[i] };
	for (int i = 0; i < STACK_N_ENDS; i++)
		*ret++ = (struct pipeline_counter){ end_counters[i], counts->by_end[i] };
	*ret = (struct pipeline_counter){ NULL, 0 };
}
