/* SPDX-License-Identifier: MIT */
/* off_cpu.c - see off_cpu.h.
 *
 * If a thread's stack is taken as it leaves the processor, it is read only if it stays
 * away for a while without one. Otherwise each thread that waits as the recorder wakes up
 * is read: the probability grows with the length of a wait, as with any sampling.
 */
#include "src/pipeline/off_cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"

enum { BUDGET_NS = 20000000, BUDGET_STACKS = 10, PATIENCE_NS = 2000000 };

bool off_cpu_affords(struct off_cpu *off_cpu, struct stack_budget *budget, uint64_t now_ns)
{
	if (now_ns - budget->began_ns >= BUDGET_NS)
		*budget = (struct stack_budget){ now_ns, BUDGET_STACKS * MAX(off_cpu->n_cpus, 1u) };
	if (budget->n_left == 0)
		return false;
	budget->n_left--;
	return true;
}

void off_cpu_done(struct off_cpu *off_cpu)
{
	waits_free(off_cpu->waits);
	wait_stack_reader_done(&off_cpu->wait_stack_reader);
	*off_cpu = (struct off_cpu){ 0 };
}

/* An ended main thread stays in /proc as long as other threads of its process run. */
static bool has_ended(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	return proc_stat_read(pid, tid, &stat) >= 0 && strchr("ZX", stat.state);
}

int off_cpu_find_threads(struct off_cpu *off_cpu, pid_t pid, uint64_t since_ns)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n = 0;
	int r;

	if (!off_cpu->waits)
		return 0;
	r = proc_tasks(pid, &tids, &n);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	waits_begin(off_cpu->waits, since_ns);
	for (size_t i = 0; i < n && r >= 0; i++)
		if (!has_ended(pid, tids[i]) && !(off_cpu->is_counted && capture_is_agents(pid, tids[i])))
			r = waits_find(off_cpu->waits, pid, tids[i]);
	waits_begin(off_cpu->waits, off_cpu->began_ns); /* threads reported later may have waited since the start */
	return r;
}

static int take_switch(struct waits *waits, const struct capture_event *event)
{
	if (event->tid <= 0) /* an ending thread has no TID any more */
		return 0;
	if (event->change.is_late)
		return waits_sched_in_late(waits, event->pid, event->tid, event->time_ns);
	if (!event->change.is_out)
		return waits_sched_in(waits, event->pid, event->tid, event->time_ns);
	return waits_sched_out(waits, event->pid, event->tid, event->change.cpu, event->change.is_preempted,
			       event->time_ns);
}

int off_cpu_event(struct off_cpu *off_cpu, const struct capture_event *event)
{
	struct waits *waits = off_cpu->waits;

	if (!waits)
		return 0;
	switch (event->type) {
	case CAPTURE_SWITCH:
		return take_switch(waits, event);
	case CAPTURE_FORK:
		return waits_created(waits, event->pid, event->tid, event->time_ns);
	case CAPTURE_EXIT:
		return waits_exit(waits, event->tid, event->time_ns);
	case CAPTURE_LOST:
		return waits_invalidate(waits);
	case CAPTURE_END:
		return waits_end(waits, event->time_ns);
	case CAPTURE_COMM:
		return event->comm.is_exec ? waits_exec(waits, event->pid, event->tid, event->time_ns) : 0;
	default:
		return 0;
	}
}

int off_cpu_idle(struct off_cpu *off_cpu)
{
	/* Report only older waits: newer events may still be in the rings. */
	enum { EVERY_NS = 1000000000, MARGIN_NS = 100000000 };
	uint64_t now_ns = monotonic_ns();

	if (!off_cpu->waits || now_ns < off_cpu->next_portion_ns)
		return 0;
	off_cpu->next_portion_ns = now_ns + EVERY_NS;
	return waits_flush_partial(off_cpu->waits, now_ns - MARGIN_NS);
}

bool off_cpu_next(struct off_cpu *off_cpu, pid_t *ret_pid, pid_t *ret_tid)
{
	uint64_t now_ns = monotonic_ns(), since_ns;
	struct stack_budget *budget = &off_cpu->of_looks;

	if (!off_cpu->waits || (budget->n_left == 0 && now_ns - budget->began_ns < BUDGET_NS))
		return false;
	if (!waits_next(off_cpu->waits, off_cpu->has_switch_stacks ? now_ns - PATIENCE_NS : now_ns, ret_pid, ret_tid,
			&since_ns))
		return false;
	return off_cpu_affords(off_cpu, budget, now_ns);
}
