/* SPDX-License-Identifier: MIT */
/* off_cpu.h - recordings of waits: events and poll results become intervals. Private. */
#ifndef PROBING_PIPELINE_OFF_CPU_H
#define PROBING_PIPELINE_OFF_CPU_H

#include "src/pipeline/wait_stacks.h"
#include "src/pipeline/waits.h"
#include "src/capture/capture.h"

/* Limit of stacks within an interval of time, since reading them costs the recorder time. */
struct stack_budget {
	uint64_t began_ns;
	unsigned n_left;
};

struct off_cpu {
	struct waits *waits; /* NULL: a recording of CPU time alone */
	struct wait_stack_reader wait_stack_reader;
	struct stack_budget at_switches, of_looks;
	unsigned n_cpus;
	bool has_switch_stacks;
	bool is_counted;   /* switches are made of the kernel's counts, and samples weigh their CPU time themselves */
	uint64_t began_ns; /* of the capture */
	uint64_t next_portion_ns;
};

/* The recorder's own time for one more stack. */
bool off_cpu_affords(struct off_cpu *off_cpu, struct stack_budget *budget, uint64_t now_ns);

/* Free everything; accepts a zeroed struct. */
void off_cpu_done(struct off_cpu *off_cpu);

/* The threads that a process has now, whose time counts from @since_ns on (CLOCK_MONOTONIC). -ENOMEM. */
int off_cpu_find_threads(struct off_cpu *off_cpu, pid_t pid, uint64_t since_ns);

/* Process an event's information about running and waiting; ignores samples. */
int off_cpu_event(struct off_cpu *off_cpu, const struct capture_event *event);

/* No more events up to now: see waits_flush_partial(). */
int off_cpu_idle(struct off_cpu *off_cpu);

/* The next thread whose stack to read; false: none for now. */
bool off_cpu_next(struct off_cpu *off_cpu, pid_t *ret_pid, pid_t *ret_tid);

#endif
