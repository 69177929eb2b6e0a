/* summary.h - what is said when a recording has ended. */
#ifndef PROBING_CLI_SUMMARY_H
#define PROBING_CLI_SUMMARY_H

#include "src/pipeline/pipeline.h"
#include "src/record/record.h"

struct summary {
	const char *path;
	double seconds;
	enum capture_source source;
	enum capture_mode mode;
	struct capture_counts captured;
	struct pipeline_counts counts;
};

/* A few lines on stderr: samples, losses, how whole the stacks are, how sure. */
void summary_print(const struct summary *summary);

/* The top functions of the recording, in short, on stderr. */
void summary_report(const char *path);

/*
 * summary_counters - the same as rows for the table counter.
 * @ret: room for SUMMARY_MAX_COUNTERS, ends with a NULL name.
 */
enum { SUMMARY_MAX_COUNTERS = 32 };
void summary_counters(const struct capture_counts *captured, const struct pipeline_counts *counts,
		      struct pipeline_counter *ret);

#endif
