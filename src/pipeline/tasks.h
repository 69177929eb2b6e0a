/* SPDX-License-Identifier: MIT */
/* tasks.h - in whose course a sample was taken. Private. */
#ifndef PROBING_PIPELINE_TASKS_H
#define PROBING_PIPELINE_TASKS_H

#include <sys/types.h>

#include "base/sample.h"
#include "unwind/cpython/cpython.h"

/* Room for one stack, reused for each. */
struct task_frames {
	struct frame *frames;
	size_t n, allocated;
};
void task_frames_done(struct task_frames *room);

/*
 * task_frames_add - add the running task, and the tasks that wait for it, to a stack.
 * Outside of the frame of the task's coroutine comes the task; then, for each that awaits it, the
 * coroutines that wait, and that task.
 * @stack: its frames are replaced by those in @room if there is a task, and its coroutine is among
 *         the stack's Python frames: if the thread had moved to another task, none is added.
 * Errors: -ENOMEM.
 */
int task_frames_add(struct task_frames *room, struct py_runtime *runtime, pid_t tid, struct stack *stack);

/* task_frames_put_waiting - append the coroutines of a task that waits, and the task. -ENOMEM. */
int task_frames_put_waiting(struct task_frames *room, const struct py_task_link *link);

#endif
