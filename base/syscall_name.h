/* SPDX-License-Identifier: MIT */
/* syscall_name.h - names of this machine's system calls. */
#ifndef PROBING_BASE_SYSCALL_NAME_H
#define PROBING_BASE_SYSCALL_NAME_H

#include <stdint.h>

/* "futex" for its number; NULL: unknown number. Source: <asm/unistd.h>. */
const char *syscall_name(int64_t number);

#endif
