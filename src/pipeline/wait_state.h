/* SPDX-License-Identifier: MIT */
/* wait_state.h - the kind of a thread's wait, by its system call. Private. */
#ifndef PROBING_PIPELINE_WAIT_STATE_H
#define PROBING_PIPELINE_WAIT_STATE_H

#include "base/proc.h"
#include "base/remote.h"
#include "base/sample.h"
#include "unwind/cpython/cpython.h"

/* @runtime: distinguishes the interpreter's lock from others; NULL: there is none. @tid: as we see it. */
enum thread_state wait_state(const struct proc_call *call, struct py_runtime *runtime, pid_t tid);

/*
 * wait_state_of_sample - of one that was taken as the thread left the processor.
 * @remote:   its memory.
 * @ret_call: its system call; number -1: none, or unknown.
 */
enum thread_state wait_state_of_sample(const struct sample *sample, struct remote *remote, struct py_runtime *runtime,
				       struct proc_call *ret_call);

#endif
