/* SPDX-License-Identifier: MIT */
/* children.h - the children of running processes. Private. */
#ifndef PROBING_CAPTURE_CHILDREN_H
#define PROBING_CAPTURE_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/capture/tasks.h"

/* Whether the kernel lists the children of each thread. Source: proc_tid_children(5), CONFIG_PROC_CHILDREN. */
bool children_are_listed(void);

/*
 * children_of_thread - add the processes that a thread has started to a set; only where children_are_listed().
 * A thread that has ended has none. Errors: -ENOMEM.
 */
int children_of_thread(pid_t pid, pid_t tid, struct task_set *ret);

/* children_search - add the children of all threads of a process, from the list of all processes. Errors: -ENOMEM. */
int children_search(pid_t pid, struct task_set *ret);

/* children_of - add the children of all threads of a process, by the cheaper way that there is. Errors: -ENOMEM. */
int children_of(pid_t pid, struct task_set *ret);

#endif
