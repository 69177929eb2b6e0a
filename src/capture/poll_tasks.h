/* SPDX-License-Identifier: MIT */
/* poll_tasks.h - the processes and threads that are looked at. Private. */
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
	int fd;           /* of the file with its CPU time; -1: opened at each look */
	bool is_new;      /* not looked at yet */
	uint64_t used_ns; /* at the last look */
	uint64_t owed_ns; /* used since the last sample */
	uint64_t met_ns;  /* where idle ones are sampled: when that was last; 0: never */
	uint64_t n_samples;
	/* How often it was put on a CPU, as of this look, and had left one, as of the last that found
	 * it to have used time. */
	uint64_t n_runs, n_waits, n_preempted;
	bool is_uncounted; /* the first is not of its whole life */
	char name[POLL_NAME_BYTES];
};

struct poll_process {
	pid_t pid, parent_pid;
	uint64_t image;              /* see struct poll_stat; 0: not known */
	struct poll_thread *threads; /* in order of tid */
	size_t n, allocated;
};

struct poll_tasks {
	struct poll_process *processes; /* parents first */
	size_t n, allocated;
	/* Children that were there before we were; those of them that the current list has shown. */
	struct task_set ignored, still_ignored;
	bool by_ticks;         /* there are no nanoseconds to be had: ticks of 10 ms */
	bool without_children; /* there is no list of a thread's children: all processes are asked */
	bool has_one_cpu;      /* we run where they do */
	pid_t command;         /* whose descendants become children of this process when their parents end; 0: none */
	/* Those that have; those of them that nobody has asked for yet. */
	struct task_set orphans, new_orphans;
	size_t n_open, most_open;
};

/* Finds out what this kernel tells. */
void poll_tasks_init(struct poll_tasks *tasks);
void poll_tasks_done(struct poll_tasks *tasks);

/* poll_tasks_add - one more process, without its threads. The last of processes. -ENOMEM. */
int poll_tasks_add(struct poll_tasks *tasks, pid_t pid, pid_t parent_pid);

/*
 * poll_tasks_list - add the threads of a process that are new.
 * @index: of the process. Errors: -ESRCH it is gone; -ENOMEM.
 */
int poll_tasks_list(struct poll_tasks *tasks, size_t index);

/*
 * poll_tasks_adopt - add the children of a process that are new, or ignore them for good.
 * Processes may move. Errors: -ENOMEM.
 */
int poll_tasks_adopt(struct poll_tasks *tasks, size_t index, bool ignore);

/*
 * poll_tasks_adopt_orphans - add processes whose parent ended, as daemons' do, before its children were listed.
 * All of those that became children of this process are orphans from now on, whether they are new or not. Processes may move.
 * Errors: -ENOMEM.
 */
int poll_tasks_adopt_orphans(struct poll_tasks *tasks);

/* All processes have been asked: who was not there any more is forgotten, and its number free. */
void poll_tasks_settle_ignored(struct poll_tasks *tasks);

/* poll_tasks_used - CPU time of a thread up to now. Errors: -ESRCH it has ended; -EBADMSG. */
int poll_tasks_used(struct poll_tasks *tasks, pid_t pid, struct poll_thread *thread, uint64_t *ret_ns);

/* Its "stat" file. Errors: -ESRCH, -EBADMSG. */
int poll_tasks_stat(pid_t pid, pid_t tid, struct poll_stat *ret);

/*
 * poll_tasks_runs - is a thread on a CPU, or was it until another took that?
 * One that has been waiting for something and now waits for a CPU is as ready, but where it
 * stands is not where it used its time. To be asked at each look at which it has used some.
 * @used_ns: how much. @state: by its "stat" file.
 */
bool poll_tasks_runs(const struct poll_tasks *tasks, pid_t pid, struct poll_thread *thread, uint64_t used_ns,
		     char state);

void poll_tasks_remove_thread(struct poll_tasks *tasks, struct poll_process *process, size_t index);
void poll_tasks_remove(struct poll_tasks *tasks, size_t index);

#endif
