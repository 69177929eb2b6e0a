/* SPDX-License-Identifier: MIT */
/* task_ids.h - the ids of threads in their own PID namespace.
 *
 * A process stores ids of its own namespace (CPython's native_thread_id, the tid in
 * glibc's struct pthread). In a container these differ from the ids by which we see
 * the same threads.
 */
#ifndef PROBING_BASE_TASK_IDS_H
#define PROBING_BASE_TASK_IDS_H

#include <sys/types.h>

struct task_ids;

/*
 * task_ids_new - for the threads of one process.
 * @pid: in our PID namespace. The namespace of a process and its threads never changes, also
 *       not by exec; a forked child may be in another one, and needs its own.
 * @ret: ended with task_ids_free().
 * Errors: -ESRCH no such process; -ENOMEM; whatever open(2) reports.
 */
int task_ids_new(pid_t pid, struct task_ids **ret);
void task_ids_free(struct task_ids *ids);
void task_ids_freep(struct task_ids **ids);

/*
 * task_ids_own - the id that a thread has in its own process.
 * @tid: as we see it.
 * @ret: its id in its innermost PID namespace.
 * If that namespace is ours, the result is @tid, without a read. Otherwise it costs one
 * short read for a cached thread, and about ten microseconds for a new one.
 * Errors: -ESRCH no thread of the process has that id now; -EBADMSG; -ENOMEM; whatever
 * open(2) reports.
 * Source: proc_pid_status(5), NSpid; pid_namespaces(7).
 */
int task_ids_own(struct task_ids *ids, pid_t tid, pid_t *ret);

#endif
