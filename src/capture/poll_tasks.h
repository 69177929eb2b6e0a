/* SPDX-License-Identifier: MIT */
/* poll_tasks.h - the polled processes and threads. Private. */
#ifndef PROBING_CAPTURE_POLL_TASKS_H
#define PROBING_CAPTURE_POLL_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/capture/poll_parse.h"
#include "src/capture/tasks.h"

struct poll_thread {
	pid_t tid;
	int fd;           /* of the file with its CPU time; -1: opened at each tick */
	bool is_new;      /* not polled yet */
	uint64_t used_ns; /* at the last tick */
	uint64_t owed_ns; /* used since the last sample */
	uint64_t met_ns;  /* where idle ones are sampled: when that was last; 0: never */
	uint64_t n_samples;
	/*
	 * How often it was put on a CPU, as of this tick; how often it had left one, as of the last tick at which it
	 * had used time.
	 */
	uint64_t n_runs, n_waits, n_preempted;
	bool is_uncounted; /* the first does not cover its whole life */
	bool has_run;      /* since its children were last read: it may have more */
	uint64_t ran_ns;   /* its CPU time when that was last looked at */
	char name[POLL_NAME_BYTES];
};

struct poll_process {
	pid_t pid, parent_pid;
	uint64_t image;              /* see struct poll_stat; 0: not known */
	struct poll_thread *threads; /* in order of tid */
	size_t n, allocated;
	bool has_lost_threads; /* since its children were last read: they are other threads' now */
};

struct poll_tasks {
	struct poll_process *processes; /* parents first */
	size_t n, allocated;
	/* Children older than the recording; those of them in the current list. */
	struct task_set ignored, still_ignored;
	bool by_ticks;         /* no times in nanoseconds: ticks of 10 ms */
	bool without_children; /* /proc has no list of a thread's children: read all processes */
	bool has_one_cpu;      /* we run where they do */
	bool is_sure;          /* this listing relies on nothing seen before */
	bool has_skipped;      /* this listing has not read the children of all threads */
	uint64_t sure_ns;      /* when the last such listing began */
	pid_t command;         /* whose descendants become children of this process when their parents end; 0: none */
	/* Adopted processes whose parent has ended; those not yet taken by the caller. */
	struct task_set orphans, new_orphans;
	size_t n_open, most_open;
};

/* Find out what this kernel provides. */
void poll_tasks_init(struct poll_tasks *tasks);
void poll_tasks_done(struct poll_tasks *tasks);

/* poll_tasks_add - one more process, without its threads. The last of processes. -ENOMEM. */
int poll_tasks_add(struct poll_tasks *tasks, pid_t pid, pid_t parent_pid);

/*
 * poll_tasks_begin_listing - before all processes are listed. Most listings read what can have changed: the threads of
 * a process that has another number of them, and the children of threads that have run. One each few seconds reads all.
 */
void poll_tasks_begin_listing(struct poll_tasks *tasks, uint64_t now_ns);

/*
 * poll_tasks_list - add the new threads of a process.
 * @index: of the process. Errors: -ESRCH it has ended; -ENOMEM.
 */
int poll_tasks_list(struct poll_tasks *tasks, size_t index);

/*
 * poll_tasks_adopt - add the new children of a process, or ignore them for good.
 * Processes may move in the array. Errors: -ENOMEM.
 */
int poll_tasks_adopt(struct poll_tasks *tasks, size_t index, bool ignore);

/*
 * poll_tasks_adopt_orphans - add processes whose parent ended, as daemons' do, before its children were listed.
 * All of those that became children of this process are orphans from now on, whether they are new or not. Processes
 * may move.
 * Errors: -ENOMEM.
 */
int poll_tasks_adopt_orphans(struct poll_tasks *tasks);

/* All processes have been listed: drop ignored ones that have ended, since their numbers may be reused. */
void poll_tasks_end_listing(struct poll_tasks *tasks);

/* poll_tasks_used - CPU time of a thread up to now. Errors: -ESRCH it has ended; -EBADMSG. */
int poll_tasks_used(struct poll_tasks *tasks, pid_t pid, struct poll_thread *thread, uint64_t *ret_ns);

/* Its "stat" file. Errors: -ESRCH, -EBADMSG. */
int poll_tasks_stat(pid_t pid, pid_t tid, struct poll_stat *ret);

/*
 * poll_tasks_runs - is a thread on a CPU, or was it until another thread took it? One that has
 * waited for something and now waits for a CPU is runnable as well. But its present stack is not
 * the one that used its time. Call it at each tick with used time.
 * @used_ns: how much. @state: from its "stat" file.
 */
bool poll_tasks_runs(const struct poll_tasks *tasks, pid_t pid, struct poll_thread *thread, uint64_t used_ns,
		     char state);

void poll_tasks_remove_thread(struct poll_tasks *tasks, struct poll_process *process, size_t index);
void poll_tasks_remove(struct poll_tasks *tasks, size_t index);

#endif
