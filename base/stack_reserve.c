/* SPDX-License-Identifier: MIT */
/* stack_reserve.c - see stack_reserve.h. */
#include "base/stack_reserve.h"

#include <string.h>

enum { RESERVE_BYTES = 256 * 1024 };

__attribute__((noinline)) void stack_reserve(void)
{
	char room[RESERVE_BYTES];

	memset(room, 0, sizeof room);
	__asm__ volatile("" : : "r"(room) : "memory"); /* a use, so that the compiler keeps the array */
}
