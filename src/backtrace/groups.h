/* SPDX-License-Identifier: MIT */
/* groups.h - threads and tasks that look alike, so that a pool of hundreds is printed once. Private. */
#ifndef PROBING_BACKTRACE_GROUPS_H
#define PROBING_BACKTRACE_GROUPS_H

#include "src/backtrace/backtrace.h"

/*
 * Both: by place among them, the first that looks like it: the same frames and variables, and all that is said of it but
 * its id and its name. One whose leader is itself is the first.
 * A thread with tasks looks like no other.
 * Owned by the caller; NULL: no memory.
 */
size_t *groups_of_threads(const struct backtrace *backtrace);
size_t *groups_of_tasks(const struct backtrace_thread *thread);

#endif
