/* SPDX-License-Identifier: MIT */
/* place.h - whether a thread that stands still is where libc may be called by it. Private.
 *
 * Calling pthread_create() and dlopen() needs locks of the allocator, of the dynamic loader and of libc's threads. A thread
 * that was stopped while it holds one of them would wait for itself. Other threads may hold them: they go on. So what
 * matters is the stack of the one thread that is used:
 *
 * - it is known to its end, and there is no signal handler in it;
 * - no frame is in the dynamic loader;
 * - no frame is in an exported function of the allocator's names, or of fork, threads, loading, exit, in any module,
 *   nor in a library that brings an allocator;
 * - a frame in libc is below main(), or a thread's start; or it is in a plain system call or wait, by exported name. What
 *   has no name there is accepted innermost, in a system call that such functions make: a tail call has hidden the name.
 *   malloc's and stdio's locks wait by FUTEX_WAIT, conditions and semaphores by FUTEX_WAIT_BITSET.
 *
 * No debug symbols are needed.
 */
#ifndef PROBING_INJECT_PLACE_H
#define PROBING_INJECT_PLACE_H

#include "src/inject/target.h"

struct place_call {
	long number; /* the system call that it was stopped in; -1: none */
	uint64_t arguments[6];
};

/*
 * place_is_safe - by the stack of a thread that stands still.
 * Returns 1, 0, -EAGAIN: names of a module have to be read first (place_learn()), which nobody should wait for; -ENOMEM.
 */
int place_is_safe(struct inject_target *target, pid_t tid, const struct regs *regs, const struct place_call *call);

/* Read the names that were missing. -ENOMEM. */
int place_learn(struct inject_target *target);

void place_names_free(struct inject_target *target);

#endif
