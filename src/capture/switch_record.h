/* SPDX-License-Identifier: MIT */
/* switch_record.h - records of context switches by the BPF program, and their rings.
 *
 * Compiled for BPF, too: fixed-size members only. Each processor has a ring in shared memory: the
 * kernel's side writes records and then the head, ours reads up to there and then moves the tail.
 */
#ifndef PROBING_CAPTURE_SWITCH_RECORD_H
#define PROBING_CAPTURE_SWITCH_RECORD_H

#include <stdint.h>

/* A power of two. At 100,000 switches a second of one processor it takes more than half a second to fill it. */
enum { SWITCH_RING_RECORDS = 1 << 16 };

/* A bit of the number of the thread that leaves: it remains runnable. Threads have no such numbers. */
#define SWITCH_PREEMPTED (UINT32_C(1) << 31)

/*
 * If the program cannot report an arrival at once, it reports it as the thread leaves, with that time, so records stay
 * in order: the scheduler's clock may place the arrival before the thread's departure from another processor.
 */
enum { SWITCH_LATE_NS = 1024 };

/* One switch, limited to wanted threads. */
struct switch_record {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t out, in; /* threads; 0: not wanted. Both 0: records are missing before this one, ... */
	uint32_t out_pid; /* ... so many. out alone 0: it arrived so many SWITCH_LATE_NS before time_ns */
	uint32_t in_pid;
};

struct switch_ring {
	/* The kernel's side: number of all records, of missing ones, and of missing ones that are not reported yet. */
	uint64_t head, n_lost, n_untold;
	/* One more than the number of the thread that came last, 0: none yet; and how often another one was found
	 * there. */
	uint64_t running, n_hidden;
	/* Time at which that thread came, 0: nobody noted it; and the offset by which the scheduler's clock is behind
	 * CLOCK_MONOTONIC, 0: unknown. */
	uint64_t arrived_ns, behind_ns;
	uint64_t wanted_pid; /* the last process that was judged wanted */
	uint64_t tail;       /* our side's: records that were read; in a cache line of its own */
	uint64_t reserved_too[7];
	struct switch_record records[SWITCH_RING_RECORDS];
};

_Static_assert(sizeof(struct switch_record) == 24, "padding");
_Static_assert(sizeof(struct switch_ring) == 128 + 24 * SWITCH_RING_RECORDS, "padding");

#endif
