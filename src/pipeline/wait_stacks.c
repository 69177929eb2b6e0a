/* SPDX-License-Identifier: MIT */
/* wait_stacks.c - see wait_stacks.h.
 *
 * The kernel reports two registers. The others are recovered as far as inner functions saved
 * them; a frame that depends on another one ends unwinding. Then the Python frames come
 * from memory alone, as for samples without captured bytes.
 */
#include "src/pipeline/wait_stacks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/pipeline/wait_state.h"

enum { LOOK_BYTES = 32768 };

void wait_stack_reader_done(struct wait_stack_reader *wait_stack_reader)
{
	free(wait_stack_reader->bytes);
	wait_stack_reader->bytes = NULL;
}

static int python_stack(struct wait_stack_reader *wait_stack_reader, struct process *process, pid_t tid,
			struct stack *ret)
{
	int r = 0;

	if (!*wait_stack_reader->memory)
		r = memory_stitcher_new(wait_stack_reader->memory);
	return r < 0 ? r : stitch_memory(*wait_stack_reader->memory, process->runtime, tid, ret);
}

static int whole_stack(struct wait_stack_reader *wait_stack_reader, struct process *process, struct sample *sample,
		       struct stack *ret)
{
	ssize_t n;
	int r;

	n = remote_read_some(process->remote, RADDR(sample->regs.value[MACHINE_REG_SP]), wait_stack_reader->bytes,
			     LOOK_BYTES);
	if (n < 0)
		return (int)n;
	sample->stack_bytes = wait_stack_reader->n_bytes = (size_t)n & ~(size_t)7;
	r = native_unwind(process->native, sample, process->remote, wait_stack_reader->native);
	return r < 0 ? r
		     : stitch(wait_stack_reader->stitcher, process->space, process->runtime, wait_stack_reader->native,
			      ret);
}

static bool is_whole(const struct stack *stack)
{
	return stack->end == STACK_COMPLETE || stack->end == STACK_COMPLETED;
}

int read_wait_stack(struct wait_stack_reader *wait_stack_reader, struct process *process, pid_t tid,
		    struct proc_call *ret_call, enum thread_state *ret_state, struct stack *ret)
{
	struct sample sample = { .pid = process->pid, .tid = tid, .has_user = true, .is_held = true };
	struct proc_call call;
	int r;

	if (!wait_stack_reader->bytes)
		wait_stack_reader->bytes = malloc(LOOK_BYTES);
	if (!wait_stack_reader->bytes)
		return -ENOMEM;
	wait_stack_reader->n_bytes = 0;
	r = proc_call_read(process->pid, tid, &call);
	if (r == -EPERM || r == -EACCES) { /* its memory may be lent nevertheless: what it waits for is not known */
		*ret_call = (struct proc_call){ .number = -1 };
		*ret_state = STATE_BLOCKED;
		return python_stack(wait_stack_reader, process, tid, ret);
	}
	if (r < 0)
		return r;
	*ret_call = call;
	*ret_state = wait_state(&call, process->runtime, tid);
	sample.time_ns = monotonic_ns();
	sample.stack = wait_stack_reader->bytes;
	sample.regs.value[MACHINE_REG_SP] = call.sp;
	sample.regs.value[MACHINE_REG_PC] = call.pc;
	r = call.is_running ? -ENODATA : whole_stack(wait_stack_reader, process, &sample, ret);
	if (r == -ENOMEM || (r >= 0 && (is_whole(ret) || !process->runtime)))
		return r;
	return python_stack(wait_stack_reader, process, tid, ret);
}
