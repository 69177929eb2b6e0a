/* SPDX-License-Identifier: MIT */
/* pending_tasks.c - see pending_tasks.h. */
#include "src/pipeline/pending_tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum {
	PERIOD_NS = 100000000,
	EMPTY_PERIOD_NS = 1000000000, /* for a thread without tasks, which may start a loop later */
	MAX_SHARE = 20,               /* reading takes at most 1/20 of the time */
};

#define MAX_WEIGHT_NS UINT64_C(10000000000) /* longer gaps do not count: the recorder was stopped */

void pending_tasks_done(struct pending_tasks *self)
{
	py_tasks_done(&self->tasks);
	free(self->is_awaiter);
	task_frames_done(&self->room);
	free(self->stacks);
	*self = (struct pending_tasks){ 0 };
}

void pending_tasks_note(struct pending_tasks *self, pid_t pid, pid_t tid, uint64_t now_ns)
{
	for (unsigned i = 0; i < self->n_loops; i++)
		if (self->loops[i].pid == pid && self->loops[i].tid == tid)
			return;
	if (self->n_loops < MAX_EVENT_LOOPS)
		self->loops[self->n_loops++] = (struct event_loop){ .pid = pid, .tid = tid, .next_ns = now_ns };
}

struct event_loop *pending_tasks_next(struct pending_tasks *self, uint64_t now_ns)
{
	for (unsigned i = 0; i < self->n_loops; i++)
		if (self->loops[i].next_ns <= now_ns)
			return &self->loops[i];
	return NULL;
}

void pending_tasks_forget(struct pending_tasks *self, struct event_loop *loop)
{
	*loop = self->loops[--self->n_loops];
}

int pending_tasks_read(struct pending_tasks *self, struct py_runtime *runtime, pid_t tid)
{
	int r;

	py_tasks_done(&self->tasks);
	free(TAKE(self->is_awaiter));
	self->n_stacks = 0;
	py_begin_sample(runtime);
	r = py_tasks_of(runtime, tid, &self->tasks);
	if (r < 0)
		return r;
	self->is_awaiter = calloc(self->tasks.n + 1, 1);
	if (!self->is_awaiter)
		return -ENOMEM;
	for (size_t i = 0; i < self->tasks.n_awaiters; i++)
		self->is_awaiter[self->tasks.awaiters[i].awaiter] = 1;
	return 0;
}

/* The first task that awaits this one; awaiters are sorted by task. NULL: none. */
static const struct py_awaiter *awaiter_of(const struct py_tasks *tasks, size_t task)
{
	size_t low = 0, high = tasks->n_awaiters;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (tasks->awaiters[middle].task < task)
			low = middle + 1;
		else
			high = middle;
	}
	return low < tasks->n_awaiters && tasks->awaiters[low].task == task ? &tasks->awaiters[low] : NULL;
}

int pending_tasks_stack(struct pending_tasks *self, size_t task, struct stack *ret)
{
	const struct py_tasks *tasks = &self->tasks;
	const struct py_awaiter *awaiter;
	int r = 0;

	if (tasks->tasks[task].is_running || tasks->tasks[task].n_frames == 0 || self->is_awaiter[task])
		return 0;
	self->room.n = 0;
	/* PY_MAX_LINKS ends a cycle of tasks that await each other. */
	for (unsigned n = 0; n < PY_MAX_LINKS && r >= 0; n++) {
		const struct py_task *at = &tasks->tasks[task];
		const struct py_task_link link = {
			.name = at->name,
			.frames = tasks->frames.frames + at->first_frame,
			.n_frames = at->n_frames,
		};

		r = task_frames_put_waiting(&self->room, &link);
		awaiter = awaiter_of(tasks, task);
		if (!awaiter)
			break;
		task = awaiter->awaiter;
	}
	if (r < 0)
		return r;
	*ret = (struct stack){ .frames = self->room.frames, .n_frames = self->room.n, .end = STACK_TRUNCATED };
	return 1;
}

int pending_tasks_keep(struct pending_tasks *self, uint32_t stack)
{
	int r = grow(&self->stacks, self->n_stacks, &self->stacks_allocated, sizeof *self->stacks);

	if (r >= 0)
		self->stacks[self->n_stacks++] = stack;
	return r;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

uint64_t pending_tasks_end_tick(struct pending_tasks *self, struct event_loop *loop, uint64_t began_ns, uint64_t now_ns)
{
	uint64_t period_ns = self->tasks.n > 0 ? PERIOD_NS : EMPTY_PERIOD_NS, cost_ns = now_ns - began_ns;
	uint64_t weight = loop->last_ns != 0 ? MIN(began_ns - loop->last_ns, MAX_WEIGHT_NS) : 0;

	if (self->n_stacks > 0)
		qsort(self->stacks, self->n_stacks, sizeof *self->stacks, by_number);
	loop->last_ns = began_ns;
	loop->next_ns = began_ns + MAX(period_ns, cost_ns * MAX_SHARE);
	return weight;
}
