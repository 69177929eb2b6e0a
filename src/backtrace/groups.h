/* SPDX-License-Identifier: MIT */
/* groups.h - groups of equal threads and tasks, so that a pool of hundreds is printed once. Private. */
#ifndef PROBING_BACKTRACE_GROUPS_H
#define PROBING_BACKTRACE_GROUPS_H

#include "src/backtrace/backtrace.h"

/*
 * Both: for each index, the index of its group's first member. Members have equal frames and variables, and equal other
 * properties except id and name. A first member has its own index.
 * A thread with tasks is a group of its own.
 * Owned by the caller; NULL: no memory.
 */
size_t *groups_of_threads(const struct backtrace *backtrace);
size_t *groups_of_tasks(const struct backtrace_thread *thread);

#endif
