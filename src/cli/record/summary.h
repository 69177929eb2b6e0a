/* SPDX-License-Identifier: MIT */
/* summary.h - the closing lines of a recording. */
#ifndef PROBING_CLI_RECORD_SUMMARY_H
#define PROBING_CLI_RECORD_SUMMARY_H

#include "src/capture/capture.h"
#include "src/pipeline/pipeline.h"

/* ---- waits_summary.c: of the modes that record waits ---- */

/* Overhead of recording the switches. */
struct waits_cost {
	double switch_ns;   /* of a thread, for each of its switches; negative: unknown */
	double recorder_ns; /* CPU time of the recorder */
	bool is_counted;    /* switches are made of the kernel's counts of each thread: SOURCE_AGENT */
};

/* Where switches were so many that it matters: by trying it out on threads of our own. */
void waits_cost_measure(const struct capture_options *options, enum capture_source source,
			const struct pipeline_counts *counts, double seconds, struct waits_cost *ret);

/* Prints lines on stderr: time on a CPU, and off it by state; number of switches, number of
 * waits with a stack, and the overhead. */
void waits_summary_print(const struct pipeline_counts *counts, double seconds, const struct waits_cost *cost);

/* ---- summary.c ---- */

struct summary {
	const char *path;
	double seconds;
	enum capture_source source;
	const char *unit; /* of weights, where they are no CPU time; NULL: they are */
	bool is_estimate; /* by the kernel, which changed the pace all the time */
	enum capture_mode mode;
	struct capture_counts captured;
	struct pipeline_counts counts;
	const struct filter_options *filter; /* borrowed: the filter's options */
	bool kernel_left_out, has_kernel;    /* as asked; whether time in the kernel was sampled */
	bool is_idle;                        /* time is real time */
	struct waits_cost waits_cost;        /* not of MODE_CPU */
	struct pipeline_name_troubles names;
	struct pipeline_cfi_troubles cfi;
	const char *gpu_trouble; /* why a machine with a GPU driver has no rows of GPUs; NULL: it has. Borrowed. */
	struct pipeline_rows rows;
	int restrict_error; /* see struct recording */
};

/* Prints a few lines on stderr: samples, losses, completeness of stacks, verdicts. */
void summary_print(const struct summary *summary);

/* The top functions of the recording, in short, on stderr. */
void summary_report(const char *path);

/*
 * summary_counters - the same as rows for the table counter.
 * @ret: room for SUMMARY_MAX_COUNTERS, ends with a NULL name.
 */
enum { SUMMARY_MAX_COUNTERS = 64 };
void summary_counters(const struct capture_counts *captured, const struct pipeline_counts *counts,
		      struct pipeline_counter *ret);

#endif
