/* SPDX-License-Identifier: MIT */
/* record_metrics.h - probing record --metrics-only: metrics of processes and the machine, without samples. */
#ifndef PROBING_CLI_RECORD_METRICS_H
#define PROBING_CLI_RECORD_METRICS_H

#include "src/cli/background.h"
#include "src/cli/record_options.h"

/*
 * record_metrics - until the duration is over, SIGINT or SIGTERM comes, or the processes that were named by number have ended.
 * Signals are blocked (recording_block_signals()). Without a selection of processes: all of the machine.
 * @background: which --background has begun.
 * Returns an exit status, after a message.
 */
int record_metrics(struct record_options *options, struct background *background);

#endif
