/* SPDX-License-Identifier: MIT */
/* sanitizer.h - what AddressSanitizer must know of the agent's threads. Nothing without it. Private. */
#ifndef PROBING_AGENT_SANITIZER_H
#define PROBING_AGENT_SANITIZER_H

#ifdef __SANITIZE_ADDRESS__
#include <pthread.h>
#include <stddef.h>

void __asan_unpoison_memory_region(const volatile void *address, size_t n_bytes); /* sanitizer/asan_interface.h */

/*
 * pthread_exit(3), which the interpreter calls at its end, leaves the frames of a thread without running their ends:
 * their redzones stay poisoned. The libasan of gcc 12 removes them at the next call that does not return. But it
 * writes into that part of the stack first (asan_posix.cpp, PlatformUnpoisonStacks()), and reports itself.
 */
static inline void sanitizer_forget_frames(void)
{
	pthread_attr_t attributes;
	size_t n_bytes;
	void *base;

	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return;
	if (pthread_attr_getstack(&attributes, &base, &n_bytes) == 0)
		__asan_unpoison_memory_region(base, (size_t)((char *)__builtin_frame_address(0) - (char *)base));
	pthread_attr_destroy(&attributes);
}
#else
static inline void sanitizer_forget_frames(void)
{
}
#endif

#endif
