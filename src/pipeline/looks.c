/* looks.c - see looks.h.
 *
 * The kernel tells two registers. The others are recovered as far as inner functions saved
 * them; a function whose frame hangs on one that is not ends the walk. Then the Python frames are
 * taken from memory alone, as they are where nothing was captured.
 */
#include "src/pipeline/looks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/pipeline/wait_state.h"

enum { LOOK_BYTES = 32768 };

void looker_done(struct looker *looker)
{
	free(looker->bytes);
	looker->bytes = NULL;
}

static int python_stack(struct looker *looker, struct process *process, pid_t tid, struct stack *ret)
{
	int r = 0;

	if (!*looker->memory)
		r = memory_stitcher_new(looker->memory);
	return r < 0 ? r : stitch_memory(*looker->memory, process->runtime, tid, ret);
}

static int whole_stack(struct looker *looker, struct process *process, struct sample *sample, struct stack *ret)
{
	ssize_t n;
	int r;

	n = remote_read_some(process->remote, RADDR(sample->regs.value[MACHINE_REG_SP]), looker->bytes, LOOK_BYTES);
	if (n < 0)
		return (int)n;
	sample->stack_bytes = (size_t)n & ~(size_t)7;
	r = native_unwind(process->native, sample, process->remote, looker->native);
	return r < 0 ? r : stitch(looker->stitcher, process->space, process->runtime, looker->native, ret);
}

static bool is_whole(const struct stack *stack)
{
	return stack->end == STACK_COMPLETE || stack->end == STACK_COMPLETED;
}

int look_at_thread(struct looker *looker, struct process *process, pid_t tid, enum thread_state *ret_state,
		   struct stack *ret)
{
	struct sample sample = { .pid = process->pid, .tid = tid, .has_user = true, .is_held = true };
	struct proc_call call;
	int r;

	if (!looker->bytes)
		looker->bytes = malloc(LOOK_BYTES);
	if (!looker->bytes)
		return -ENOMEM;
	r = proc_call_read(process->pid, tid, &call);
	if (r < 0)
		return r;
	*ret_state = wait_state(&call, process->runtime, tid);
	sample.time_ns = monotonic_ns();
	sample.stack = looker->bytes;
	sample.regs.value[MACHINE_REG_SP] = call.sp;
	sample.regs.value[MACHINE_REG_PC] = call.pc;
	r = call.is_running ? -ENODATA : whole_stack(looker, process, &sample, ret);
	if (r == -ENOMEM || (r >= 0 && (is_whole(ret) || !process->runtime)))
		return r;
	return python_stack(looker, process, tid, ret);
}
