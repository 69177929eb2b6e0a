/* switch_cost.h - what it costs a thread that its switches are recorded. */
#ifndef PROBING_RECORD_SWITCH_COST_H
#define PROBING_RECORD_SWITCH_COST_H

#include "src/record/record.h"

/*
 * switch_cost_measure - CPU time that recording adds to each switch away from a CPU, on this machine, now.
 * Records two threads of our own that do nothing but switch, for some 20 ms; best without another
 * recording of ours beside it.
 * @options: of the recording; its ring is not taken, for few records come.
 * @source:  the one that was used, never SOURCE_POLL.
 * @ret_ns:  nanoseconds, not below 0.
 * Errors: those of capture_attach(); what pipe(2) and pthread_create(3) report.
 */
int switch_cost_measure(const struct capture_options *options, enum capture_source source, double *ret_ns);

#endif
