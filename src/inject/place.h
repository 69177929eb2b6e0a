/* SPDX-License-Identifier: MIT */
/* place.h - whether a stopped thread may call libc where it is. Private.
 *
 * Calling pthread_create() and dlopen() needs locks of the allocator, of the dynamic loader and of libc's threads. A
 * thread that holds one of them would wait for itself. Other threads may hold them: they continue. So only
 * the stack of the one thread counts:
 *
 * - it is complete, and contains no signal handler;
 * - no frame is in the dynamic loader;
 * - no frame is in an exported function of the allocator's names, or of fork, threads, loading or exit, in any module;
 *   nor in a library with an allocator of its own;
 * - a frame in libc is below main(), or a thread's start; or it is in a plain system call or wait, by exported name. A
 *   nameless one is accepted only as the innermost, in a system call of such functions: a tail call has hidden the
 *   name. malloc's and stdio's locks wait by FUTEX_WAIT, conditions and semaphores by FUTEX_WAIT_BITSET.
 *
 * It needs no debug symbols.
 */
#ifndef PROBING_INJECT_PLACE_H
#define PROBING_INJECT_PLACE_H

#include "src/inject/target.h"

struct place_call {
	long number; /* the system call that it was stopped in; -1: none */
	uint64_t arguments[6];
};

/*
 * place_is_safe - by the stack of a stopped thread.
 * Returns 1, 0, -EAGAIN: symbols of a module have to be read first (place_learn()), while the thread runs; -ENOMEM.
 */
int place_is_safe(struct inject_target *target, pid_t tid, const struct regs *regs, const struct place_call *call);

/* Read the names that were missing. -ENOMEM. */
int place_learn(struct inject_target *target);

void place_names_free(struct inject_target *target);

#endif
