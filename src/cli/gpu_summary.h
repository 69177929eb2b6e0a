/* SPDX-License-Identifier: MIT */
/* gpu_summary.h - adds up the GPU activity of a recording for its report. */
#ifndef PROBING_CLI_GPU_SUMMARY_H
#define PROBING_CLI_GPU_SUMMARY_H

#include <sqlite3.h>

#include "src/report/report.h"

/*
 * gpu_summary - of the tables gpu_*.
 * @ret: ended with report_gpu_done(), on failure, too.
 * Returns 1, or 0: the recording has no activity with times and no summary of it; negative errno of reading.
 */
int gpu_summary(sqlite3 *db, struct report_gpu *ret);

#endif
