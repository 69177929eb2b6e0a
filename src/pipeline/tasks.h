/* SPDX-License-Identifier: MIT */
/* tasks.h - in whose course a sample was taken. Private. */
#ifndef PROBING_PIPELINE_TASKS_H
#define PROBING_PIPELINE_TASKS_H

#include <sys/types.h>

#include "base/sample.h"
#include "unwind/cpython/cpython.h"

/* Room for one stack, used anew for each. */
struct task_frames {
	struct frame *frames;
	size_t n, allocated;
};
void task_frames_done(struct task_frames *room);

/*
 * task_frames_add - put the running task into a stack, and outside of it those that wait for it.
 * Behind (outside of) the frame of the task's coroutine comes the task; then, for each that awaits it, the
 * coroutines that wait, and that task.
 * @stack: its frames are replaced by those in @room where there is a task, and its coroutine among
 *         the stack's Python frames: when the thread had gone on to another one, none is put there.
 * Errors: -ENOMEM.
 */
int task_frames_add(struct task_frames *room, struct py_runtime *runtime, pid_t tid, struct stack *stack);

#endif
