/* SPDX-License-Identifier: MIT */
/* waits.h - what each thread did from its first moment to its last: it ran, or it waited. Private.
 *
 * Pure accounting: switches and stacks in, stretches of time out. Of each thread the
 * stretches add up to the time between its first and its last moment.
 */
#ifndef PROBING_PIPELINE_WAITS_H
#define PROBING_PIPELINE_WAITS_H

#include "base/sample.h"

/* The stack of a wait shorter than this may stand for others that are as short, and of no longer ones. */
enum { WAIT_SHORT_NS = 4000000 };

/* A stack as it is kept, of a thread that stood still from from_ns to to_ns. */
struct wait_stack {
	uint32_t id;    /* 0: nothing could be read */
	unsigned depth; /* frames in it */
	enum verdict verdict;
	enum stack_end end;
	enum thread_state state; /* were it not preempted */
	uint64_t from_ns, to_ns;
	bool at_switch; /* taken as it left the processor; else it was met waiting */
};

/* A wait that is longer is put in such portions, so that a recording shows it before it ends. */
#define WAIT_PORTION_NS UINT64_C(10000000000)

/* A stretch of a thread's time. */
struct stretch {
	pid_t pid, tid;
	unsigned cpu;
	uint64_t since_ns; /* CLOCK_MONOTONIC: when it left the processor; of running: the end of it */
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
 * waits_new - nothing is known yet.
 * @put: takes each stretch; a negative result is handed on to whoever called.
 * @running: whether stretches of running are put, too.
 */
int waits_new(bool running, int (*put)(void *data, const struct stretch *stretch), void *data, struct waits **ret);
void waits_free(struct waits *waits);

/* All below: -ENOMEM, or what put returned. Times in CLOCK_MONOTONIC, in the order of the events. */

/* From when on time counts: what is told of earlier counts as told then. */
void waits_begin(struct waits *waits, uint64_t time_ns);

/* A thread that is there when the recording begins; what it does is not known yet. */
int waits_find(struct waits *waits, pid_t pid, pid_t tid);
/* One that has just been made: it waits for a processor. */
int waits_make(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns);
/* One that runs, and begins to count only now: its process runs another program. */
int waits_exec(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns);

int waits_leave(struct waits *waits, pid_t pid, pid_t tid, unsigned cpu, bool is_preempted, uint64_t time_ns);
int waits_enter(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns);
int waits_exit(struct waits *waits, pid_t tid, uint64_t time_ns);
/* Every thread's last moment. */
int waits_end(struct waits *waits, uint64_t time_ns);

/*
 * waits_ran - a sample of a running thread.
 * @period_ns: that the sample would weigh by itself, where nothing better is known.
 * @ret: what it weighs: all that the thread ran since its last one.
 */
int waits_ran(struct waits *waits, pid_t pid, pid_t tid, uint64_t period_ns, uint64_t time_ns, uint64_t *ret);

/* The stack of a thread as it left the processor, or as it was met while it waited. */
int waits_stack(struct waits *waits, pid_t pid, pid_t tid, const struct wait_stack *stack);

/*
 * waits_portion - put the first portions of long waits that still go on.
 * @until_ns: all that happened before has been told.
 */
int waits_portion(struct waits *waits, uint64_t until_ns);

/* Records were lost: who was looked at may have gone on meanwhile. */
void waits_doubt(struct waits *waits);

/*
 * waits_next - a thread that waits and has no stack yet, to be looked at.
 * @before_ns: it left the processor before that; preempted ones WAIT_SHORT_NS before that.
 * @ret_since: when it left; in the order of which they come out, each once for each wait.
 * Returns whether there is one.
 */
bool waits_next(struct waits *waits, uint64_t before_ns, pid_t *ret_pid, pid_t *ret_tid, uint64_t *ret_since);

void waits_read_sums(const struct waits *waits, struct waits_sums *ret);

#endif
