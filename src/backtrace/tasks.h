/* SPDX-License-Identifier: MIT */
/* tasks.h - the tasks of an event loop, as they are shown. Private. */
#ifndef PROBING_BACKTRACE_TASKS_H
#define PROBING_BACKTRACE_TASKS_H

#include "src/backtrace/frame_names.h"

/*
 * backtrace_name_tasks - the stacks of a thread's tasks, with names.
 * @tasks:  as read; ownership of names passes.
 * @frames: of the thread's stack, which includes those of the running task.
 * @thread: receives the tasks.
 * Errors: -ENOMEM.
 */
int backtrace_name_tasks(struct frame_names *names, const struct backtrace_options *options, struct py_tasks *tasks,
			 const struct frame *frames, size_t n_frames, struct backtrace_thread *thread);
void backtrace_tasks_done(struct backtrace_thread *thread);

#endif
