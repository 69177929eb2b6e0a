/* SPDX-License-Identifier: MIT */
/* waits_summary.h - summary of a recording of waits. */
#ifndef PROBING_CLI_WAITS_SUMMARY_H
#define PROBING_CLI_WAITS_SUMMARY_H

#include "src/pipeline/pipeline.h"
#include "src/capture/capture.h"

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

#endif
