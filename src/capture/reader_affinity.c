/* SPDX-License-Identifier: MIT */
/* reader_affinity.c - moves the reading thread to the processor of the samples; see reader_affinity.h. */
#include "src/capture/reader_affinity.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

enum {
	MAX_NEEDED = 8,
	LONG_STAY = 8, /* samples; a stay this long paid for the move */
	SLICE_NS = 100000,
	LATE_NS = 20000000,
	MAX_LATE = 32,     /* late reads in a row: the scheduler does not let us run there */
	FIRST_REST = 4096, /* samples; doubles with each rest */
	MAX_REST = 1 << 24,
};

/* The first version of the kernel's struct sched_attr. The kernel's header and the C library's exclude each other. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
_Static_assert(sizeof(struct scheduling) == 48, "SCHED_ATTR_SIZE_VER0");

/*
 * A normal thread that requests short slices is scheduled sooner and gets no more time. Kernels before 6.12 ignore the
 * request.
 * Source: sched_setattr(2); kernel/sched/fair.c, "PREEMPT_SHORT", Linux 6.12.
 */
static void ask_for_short_slices(void)
{
	struct scheduling attr = { .size = sizeof attr };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0) < 0 || attr.policy != SCHED_OTHER)
		return;
	attr.runtime = SLICE_NS;
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

void reader_affinity_begin(struct reader_affinity *follow)
{
	*follow = (struct reader_affinity){ .needed = 1, .next_rest = FIRST_REST };
	follow->is_on = sched_getaffinity(0, sizeof follow->allowed, &follow->allowed) == 0;
	if (follow->is_on)
		ask_for_short_slices();
}

void reader_affinity_note(struct reader_affinity *follow, unsigned cpu, uint64_t late_ns)
{
	follow->n_late = follow->is_bound && late_ns >= LATE_NS ? follow->n_late + 1 : 0;
	if (follow->rest > 0) {
		follow->rest--;
		return;
	}
	if (follow->is_bound && cpu == follow->cpu) {
		follow->n_stayed += follow->n_stayed < LONG_STAY;
		follow->n_wanted = 0;
		return;
	}
	follow->n_wanted = cpu == follow->wanted ? follow->n_wanted + 1 : 1;
	follow->wanted = cpu;
}

bool reader_affinity_wants(const struct reader_affinity *follow)
{
	return follow->is_on && (follow->n_wanted >= follow->needed || follow->n_late >= MAX_LATE);
}

/* After a short stay, require more samples before the next move. */
static unsigned needed_next(const struct reader_affinity *follow)
{
	if (!follow->is_bound || follow->n_stayed >= LONG_STAY)
		return 1;
	return MIN(follow->needed * 2, (unsigned)MAX_NEEDED);
}

void reader_affinity_went(struct reader_affinity *follow)
{
	follow->needed = needed_next(follow);
	follow->is_bound = true;
	follow->cpu = follow->wanted;
	follow->n_wanted = follow->n_stayed = 0;
}

/* Reads were late too often: return to all processors and rest. */
static void give_up(struct reader_affinity *follow)
{
	(void)sched_setaffinity(0, sizeof follow->allowed, &follow->allowed);
	follow->is_bound = false;
	follow->n_late = follow->n_wanted = 0;
	follow->rest = follow->next_rest;
	follow->next_rest = MIN(follow->next_rest * 2, (unsigned)MAX_REST);
}

void reader_affinity_go(struct reader_affinity *follow)
{
	cpu_set_t there;

	if (follow->n_late >= MAX_LATE) {
		give_up(follow);
		return;
	}
	CPU_ZERO(&there);
	CPU_SET(follow->wanted, &there);
	if (CPU_ISSET(follow->wanted, &follow->allowed) && sched_setaffinity(0, sizeof there, &there) == 0)
		reader_affinity_went(follow);
	follow->n_wanted = 0;
}

void reader_affinity_end(struct reader_affinity *follow)
{
	if (follow->is_bound)
		(void)sched_setaffinity(0, sizeof follow->allowed, &follow->allowed);
	follow->is_bound = follow->is_on = false;
}
