/* SPDX-License-Identifier: MIT */
/* stack_reserve.h - stack pages that are there before memory runs out. */
#ifndef PROBING_BASE_STACK_RESERVE_H
#define PROBING_BASE_STACK_RESERVE_H

/*
 * stack_reserve - map 256 KiB of the calling thread's stack below this call.
 *
 * The kernel maps a main thread's stack page by page. Where a limit (RLIMIT_AS) or the machine has no page left it answers
 * with SIGSEGV, which no caller can handle; malloc() fails with -ENOMEM, which callers do.
 * Source: mm/memory.c, expand_stack(), Linux 6.1; setrlimit(2), RLIMIT_AS.
 */
void stack_reserve(void);

#endif
