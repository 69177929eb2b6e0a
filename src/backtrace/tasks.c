/* SPDX-License-Identifier: MIT */
/* tasks.c - see tasks.h. */
#include "src/backtrace/tasks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

void backtrace_tasks_done(struct backtrace_thread *thread)
{
	for (size_t i = 0; i < thread->n_tasks; i++) {
		free(thread->tasks[i].name);
		free(thread->tasks[i].frames);
		free(thread->tasks[i].awaiters);
	}
	free(thread->tasks);
}

/* Number of innermost frames that belong to a coroutine and its callees. */
static size_t frames_within(const struct frame *frames, size_t n, uint64_t coroutine)
{
	for (size_t i = 0; coroutine != 0 && i < n; i++)
		if (frames[i].kind == FRAME_PYTHON && frames[i].python.address == coroutine)
			return i + 1;
	return 0;
}

/* Name the frames of suspended coroutines. */
static int name_waiting(struct frame_names *names, const struct backtrace_options *options,
			const struct py_frame *python, size_t n, struct backtrace_task *ret)
{
	CLEANUP(freep) struct frame *frames = calloc(n + 1, sizeof *frames);

	if (!frames)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		frames[i].kind = FRAME_PYTHON;
		frames[i].python.code = python[i].code;
		frames[i].python.address = python[i].address;
		frames[i].python.instruction = python[i].instruction;
	}
	return frame_names_put(names, options, frames, n, NULL, &ret->frames, &ret->n_frames);
}

static int put_awaiters(const struct py_tasks *tasks, size_t task, size_t *at, struct backtrace_task *ret)
{
	size_t first = *at;

	while (*at < tasks->n_awaiters && tasks->awaiters[*at].task == task)
		++*at;
	ret->awaiters = calloc(*at - first + 1, sizeof *ret->awaiters);
	if (!ret->awaiters)
		return -ENOMEM;
	while (first < *at)
		ret->awaiters[ret->n_awaiters++] = tasks->awaiters[first++].awaiter;
	return 0;
}

int backtrace_name_tasks(struct frame_names *names, const struct backtrace_options *options, struct py_tasks *tasks,
			 const struct frame *frames, size_t n_frames, struct backtrace_thread *thread)
{
	size_t at = 0;
	int r = 0;

	thread->tasks = calloc(tasks->n + 1, sizeof *thread->tasks);
	if (!thread->tasks)
		return -ENOMEM;
	thread->n_tasks = tasks->n;
	thread->tasks_cut = tasks->is_cut;
	for (size_t i = 0; i < tasks->n && r >= 0; i++) {
		struct backtrace_task *task = &thread->tasks[i];
		struct py_task *source = &tasks->tasks[i];
		size_t n = source->is_running ? frames_within(frames, n_frames, source->frame) : 0;

		task->name = TAKE(source->name);
		task->is_running = source->is_running;
		if (n > 0)
			r = frame_names_put(names, options, frames, n, NULL, &task->frames, &task->n_frames);
		else
			r = name_waiting(names, options, tasks->frames.frames + source->first_frame, source->n_frames,
					 task);
		if (r >= 0)
			r = put_awaiters(tasks, i, &at, task);
	}
	return r;
}
