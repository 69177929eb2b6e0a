/* SPDX-License-Identifier: MIT */
/* waits.h - running and waiting of each thread from its first moment to its last. Private.
 *
 * Pure accounting: input is switches and stacks, output is intervals. The intervals of a thread
 * add up to the time between its first and its last moment.
 */
#ifndef PROBING_PIPELINE_WAITS_H
#define PROBING_PIPELINE_WAITS_H

#include "base/sample.h"

/* The stack of a wait shorter than this is reused for the thread's other waits below the limit, never for longer ones.
 * */
enum { WAIT_SHORT_NS = 4000000 };

/* A stack, of a thread that did not run from from_ns to to_ns. */
struct wait_stack {
	uint32_t id;    /* 0: unreadable */
	unsigned depth; /* frames in it */
	enum verdict verdict;
	enum stack_end end;
	enum thread_state state; /* were it not preempted */
	uint64_t from_ns, to_ns;
	bool at_switch;     /* taken as it left the processor; else during the wait */
	uint32_t object;    /* what it waits for: a number of intern_object_name(); 0: unknown */
	uint64_t object_ns; /* when that had been read: of this wait only if it went on until then */
};

/* A longer wait is put in such portions, so that a recording shows it before it ends. */
#define WAIT_PORTION_NS UINT64_C(10000000000)

/* An interval of a thread's time. */
struct interval {
	pid_t pid, tid;
	unsigned cpu;
	uint64_t since_ns; /* CLOCK_MONOTONIC: when it left the processor; while it runs: end of its last interval */
	uint64_t weight;
	enum thread_state state;
	const struct wait_stack *stack; /* NULL: was not taken */
};

struct waits_sums {
	uint64_t by_state[STATE_N]; /* nanoseconds */
	uint64_t n_switches;        /* away from a processor */
	uint64_t n_stacks;          /* waits whose own stack was taken */
	uint64_t unknown_ns;        /* neither, because records were lost */
};

struct waits;

/*
 * waits_new - without any thread.
 * @put: receives each interval; its negative result is returned to the caller.
 * @running: whether to put intervals of running, too.
 */
int waits_new(bool running, int (*put)(void *data, const struct interval *interval), void *data, struct waits **ret);
void waits_free(struct waits *waits);

/* All below: -ENOMEM, or what put returned. Times in CLOCK_MONOTONIC, in the order of the events. */

/* Start of accounting: earlier events count as of then. */
void waits_begin(struct waits *waits, uint64_t time_ns);

/* A thread older than the recording; its state is unknown. */
int waits_find(struct waits *waits, pid_t pid, pid_t tid);
/* A new thread: it waits for a processor. */
int waits_created(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns);
/* One that runs, and begins to count only now: its process runs another program. */
int waits_exec(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns);

int waits_sched_out(struct waits *waits, pid_t pid, pid_t tid, unsigned cpu, bool is_preempted, uint64_t time_ns);
int waits_sched_in(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns);
/* An arrival that is reported only as the thread leaves again: a sample of it, or its end, may have come before. */
int waits_sched_in_late(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns);
int waits_exit(struct waits *waits, pid_t tid, uint64_t time_ns);
/* Every thread's last moment. */
int waits_end(struct waits *waits, uint64_t time_ns);

/*
 * waits_account_run - a sample of a running thread.
 * @period_ns: weight of the sample by itself, for an unknown thread.
 * @ret: its weight: all running time of the thread since its last sample.
 */
int waits_account_run(struct waits *waits, pid_t pid, pid_t tid, uint64_t period_ns, uint64_t time_ns, uint64_t *ret);

/*
 * waits_sampled - the same of a sample that weighs its thread's CPU time itself, and may come before the events of its
 * time: that much of the thread's running time is not put at its end.
 * Returns its weight, without the time before the start of accounting.
 */
uint64_t waits_sampled(struct waits *waits, pid_t tid, uint64_t weight, uint64_t time_ns);

/* The stack of a thread as it left the processor, or during its wait. */
int waits_stack(struct waits *waits, pid_t pid, pid_t tid, const struct wait_stack *stack);

/*
 * waits_flush_partial - put the first portions of long waits that continue.
 * @until_ns: all earlier events have been processed.
 */
int waits_flush_partial(struct waits *waits, uint64_t until_ns);

/* Records were lost: threads with a stack may have run meanwhile. Those that wait are to be read again. */
int waits_invalidate(struct waits *waits);

/*
 * waits_next - a waiting thread without a stack, to be read.
 * @before_ns: it left the processor before that; preempted ones WAIT_SHORT_NS before that.
 * @ret_since: when it left; they come in that order, each once for each wait.
 * Returns whether there is one.
 */
bool waits_next(struct waits *waits, uint64_t before_ns, pid_t *ret_pid, pid_t *ret_tid, uint64_t *ret_since);

void waits_read_sums(const struct waits *waits, struct waits_sums *ret);

#endif
