/* waits_summary.h - what a recording of waits says at its end. */
#ifndef PROBING_CLI_WAITS_SUMMARY_H
#define PROBING_CLI_WAITS_SUMMARY_H

#include "src/pipeline/pipeline.h"

/* Lines on stderr: time on a CPU, and off it by state; how many switches there were, and of how many
 * waits the stack was taken. */
void waits_summary_print(const struct pipeline_counts *counts, double seconds);

#endif
