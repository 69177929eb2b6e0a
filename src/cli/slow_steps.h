/* SPDX-License-Identifier: MIT */
/* slow_steps.h - the slowest steps of a recording against its other steps. */
#ifndef PROBING_CLI_SLOW_STEPS_H
#define PROBING_CLI_SLOW_STEPS_H

#include "src/cli/compare_arguments.h"

/*
 * slow_steps_run - compare the steps of the one recording in the arguments (NULL: the default one).
 * @percent: of the steps, how many are slow.
 * Returns 0, or prints a message and returns an exit status. Without an error it prints which steps are slow on stderr.
 * @ret: ended with compare_free(). Base: the others; head: the slow ones.
 */
int slow_steps_run(struct compare_arguments *arguments, double percent, struct compare **ret);

#endif
