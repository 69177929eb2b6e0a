/* SPDX-License-Identifier: MIT */
/* syscall_name.h - what a system call of this machine is called. */
#ifndef PROBING_BASE_SYSCALL_NAME_H
#define PROBING_BASE_SYSCALL_NAME_H

#include <stdint.h>

/* "futex" for its number; NULL: unknown number. Source: <asm/unistd.h>. */
const char *syscall_name(int64_t number);

#endif
