/* SPDX-License-Identifier: MIT */
/* pending_tasks.h - asyncio tasks that wait, read at poll ticks: a task that waits has no thread of its own. Private.
 *
 * A thread enters the list of event loops when a wait of it is read. At each poll tick the tasks of a due loop become
 * rows, whose weight is the time since the loop's previous tick.
 */
#ifndef PROBING_PIPELINE_PENDING_TASKS_H
#define PROBING_PIPELINE_PENDING_TASKS_H

#include "src/pipeline/tasks.h"

enum { MAX_EVENT_LOOPS = 64 };

struct event_loop {
	pid_t pid, tid;
	uint64_t last_ns,
		next_ns; /* CLOCK_MONOTONIC: of the last tick (0: none yet), and from when on the next one is due */
};

/* Zeroed: none. */
struct pending_tasks {
	struct event_loop loops[MAX_EVENT_LOOPS];
	unsigned n_loops;
	struct py_tasks tasks;   /* of the loop that was read last */
	uint8_t *is_awaiter;     /* by task: whether it awaits another one of them */
	struct task_frames room; /* for one stack */
	uint32_t *stacks;        /* numbers of the stacks of one tick */
	size_t n_stacks, stacks_allocated;
};

void pending_tasks_done(struct pending_tasks *self);

/* pending_tasks_note - a thread of an interpreter waits: it may run an event loop. Threads beyond MAX_EVENT_LOOPS are left out. */
void pending_tasks_note(struct pending_tasks *self, pid_t pid, pid_t tid, uint64_t now_ns);

/* pending_tasks_next - a loop whose tick is due; NULL: none. Borrowed until the next call of any of these. */
struct event_loop *pending_tasks_next(struct pending_tasks *self, uint64_t now_ns);

/* pending_tasks_forget - its thread has ended, or may not be read. */
void pending_tasks_forget(struct pending_tasks *self, struct event_loop *loop);

/* pending_tasks_read - the tasks of a loop's thread, into self->tasks. Errors: -ESRCH, -ENOMEM. */
int pending_tasks_read(struct pending_tasks *self, struct py_runtime *runtime, pid_t tid);

/*
 * pending_tasks_stack - where one of the tasks waits: its coroutines, the task, and the tasks that await it.
 * Of several awaiting tasks the first one counts.
 * @ret: borrowed until the next call; the verdict is the caller's.
 * Returns 1; 0: the task runs, or another pending task is what it awaits; -ENOMEM.
 */
int pending_tasks_stack(struct pending_tasks *self, size_t task, struct stack *ret);

/* pending_tasks_keep - a stack of this tick. -ENOMEM. */
int pending_tasks_keep(struct pending_tasks *self, uint32_t stack);

/*
 * pending_tasks_end_tick - choose the next tick, so that reading takes at most a twentieth of the recorder's time.
 * @began_ns, @now_ns: of this tick. Returns the weight of each task; 0: there was no tick before.
 */
uint64_t pending_tasks_end_tick(struct pending_tasks *self, struct event_loop *loop, uint64_t began_ns,
				uint64_t now_ns);

#endif
