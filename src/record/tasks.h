/* tasks.h - the threads of a process. */
#ifndef PROBING_RECORD_TASKS_H
#define PROBING_RECORD_TASKS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * tasks_list - the threads that /proc/PID/task names, the main thread first.
 * @ret: owned by the caller; not sorted; may be empty only for a process at its end.
 * Errors: -ESRCH no such process; -ENOMEM.
 */
int tasks_list(pid_t pid, pid_t **ret, size_t *ret_n);

/* A set of thread numbers. All zero is the empty set. */
struct task_set {
	pid_t *tids; /* sorted */
	size_t n, allocated;
};
void task_set_done(struct task_set *set);

/* Puts a thread in. Returns 1, 0 if it was in already, -ENOMEM. */
int task_set_add(struct task_set *set, pid_t tid);

#endif
