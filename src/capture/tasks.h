/* SPDX-License-Identifier: MIT */
/* tasks.h - sets of threads. */
#ifndef PROBING_CAPTURE_TASKS_H
#define PROBING_CAPTURE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A set of thread numbers. All zero is the empty set. */
struct task_set {
	pid_t *tids; /* sorted */
	size_t n, allocated;
};
void task_set_done(struct task_set *set);

/* Puts a thread in. Returns 1, 0 if it was in already, -ENOMEM. */
int task_set_add(struct task_set *set, pid_t tid);

bool task_set_has(const struct task_set *set, pid_t tid);

/* Takes a thread out, if it is in. */
void task_set_remove(struct task_set *set, pid_t tid);

#endif
