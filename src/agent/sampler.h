/* SPDX-License-Identifier: MIT */
/* sampler.h - samples all threads of the own process by signals, for a recorder. Private.
 *
 * Each thread has a POSIX timer on its own CPU clock, which sends a real-time signal to that thread. The handler copies
 * registers, stack bytes and Python frames into a ring (sample_ring.h). Timers of CPU clocks never interrupt a thread
 * that waits. All functions are for the listening thread; only one recorder samples at a time.
 */
#ifndef PROBING_AGENT_SAMPLER_H
#define PROBING_AGENT_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/python_record.h"

/* Between two calls of sampler_tick(), where it asks for more: a few samples of a busy thread. */
enum { SAMPLER_MIN_TICK_MS = 100, SAMPLER_MAX_TICK_MS = 500 };

/*
 * sampler_start - sample all threads but the agent's, from now on, also those that start later.
 * @period_ns:   of CPU time, between two samples of a thread.
 * @stack_bytes: at most, copied from the stack pointer on; a multiple of 8, up to SAMPLE_RING_MAX_STACK_BYTES.
 * @ret_ring:    the ring's memfd, owned by the caller. Filled on success only.
 * Returns NULL, or why not, a clause.
 */
const char *sampler_start(uint64_t period_ns, uint32_t stack_bytes, int *ret_ring);

/* No timer is left afterwards, and the ring is complete. Harmless where nothing is sampled. */
void sampler_stop(void);

bool sampler_runs(void);

/* sampler_watch - read Python frames by a layout from now on. False: the handlers do not end. */
bool sampler_watch(const struct python_layout *layout);

/* sampler_tick - find new threads, forget ended ones, and see whose the signal is. False: no more ticks are needed. */
bool sampler_tick(void);

/* sampler_tick_ms - after which the next one is due. */
unsigned sampler_tick_ms(void);

/* In a forked child, which has neither timers nor the ring. Async-signal-safe. */
void sampler_reset(void);

#endif
