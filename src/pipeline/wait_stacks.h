/* SPDX-License-Identifier: MIT */
/* wait_stacks.h - the stack of a waiting thread, read during its wait. Private.
 *
 * For a thread inside a system call the kernel reports the number, stack pointer and program
 * counter; the rest is its memory, which only this thread writes to. Nothing is stopped:
 * the records of switches show later whether it did not run meanwhile.
 */
#ifndef PROBING_PIPELINE_WAIT_STACKS_H
#define PROBING_PIPELINE_WAIT_STACKS_H

#include "base/proc.h"
#include "base/sample.h"
#include "src/pipeline/process.h"
#include "unwind/native/native.h"
#include "unwind/stitch/stitch.h"

/* Tools for reading. */
struct wait_stack_reader {
	struct stitcher *stitcher; /* borrowed, as is the next */
	struct native_stack *native;
	struct memory_stitcher **memory; /* made when it is first needed */
	uint8_t *bytes;                  /* of a stack, from the stack pointer on */
	size_t n_bytes;                  /* that were read of the last one */
};
void wait_stack_reader_done(struct wait_stack_reader *wait_stack_reader);

/*
 * read_wait_stack - the stack of a waiting thread, and the kind of the wait.
 * @ret_call:  its system call.
 * @ret_state: STATE_RUNNABLE if it is not in the kernel after all: its Python frames alone.
 * @ret: frames are borrowed until the next stitching.
 * Errors: -ESRCH it has ended; -EPERM, -EACCES; -ENOMEM.
 */
int read_wait_stack(struct wait_stack_reader *wait_stack_reader, struct process *process, pid_t tid,
		    struct proc_call *ret_call, enum thread_state *ret_state, struct stack *ret);

#endif
