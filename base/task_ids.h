/* SPDX-License-Identifier: MIT */
/* task_ids.h - the ids that threads have in their own PID namespace.
 *
 * What a process knows of its threads (CPython's native_thread_id, the tid in
 * glibc's struct pthread) are ids of the namespace it runs in. In a container
 * these are not the ids by which we see the same threads.
 */
#ifndef PROBING_BASE_TASK_IDS_H
#define PROBING_BASE_TASK_IDS_H

#include <sys/types.h>

struct task_ids;

/*
 * task_ids_new - for the threads of one process.
 * @pid: in our PID namespace. It stays in its namespace, and so do all of its threads, also
 *       through exec; a forked child may be in another one, and needs its own.
 * @ret: ended with task_ids_free().
 * Errors: -ESRCH no such process; -ENOMEM; whatever open(2) reports.
 */
int task_ids_new(pid_t pid, struct task_ids **ret);
void task_ids_free(struct task_ids *ids);
void task_ids_freep(struct task_ids **ids);

/*
 * task_ids_own - what a thread of the process is to itself.
 * @tid: as we see it.
 * @ret: its id in its innermost PID namespace.
 * Where that namespace is ours the answer is @tid, with nothing looked at; otherwise it
 * costs one short read for a thread asked for before, and some ten microseconds for another.
 * Errors: -ESRCH no thread of the process has that id now; -EBADMSG; -ENOMEM; whatever
 * open(2) reports.
 * Source: proc_pid_status(5), NSpid; pid_namespaces(7).
 */
int task_ids_own(struct task_ids *ids, pid_t tid, pid_t *ret);

#endif
