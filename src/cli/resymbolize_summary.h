/* SPDX-License-Identifier: MIT */
/* resymbolize_summary.h - summary of symbolize. */
#ifndef PROBING_CLI_RESYMBOLIZE_SUMMARY_H
#define PROBING_CLI_RESYMBOLIZE_SUMMARY_H

#include <stddef.h>

#include "src/pipeline/pipeline.h"

/* A few lines on stderr: names before and after, and for each module without them why. */
void resymbolize_summary(const struct resymbolize_result *result, const char *path,
			 const struct resymbolize_options *options);

/* A name from a file, truncated to fit, terminal controls as '?', a byte that is not UTF-8 as U+FFFD. */
void format_printable_name(const char *name, char *to, size_t n_bytes);

#endif
