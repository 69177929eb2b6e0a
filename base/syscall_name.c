/* SPDX-License-Identifier: MIT */
/* syscall_name.c - see syscall_name.h. The build makes the table from the kernel's header. */
#include "base/syscall_name.h"

#include <stddef.h>

#include "base/util.h"

static const char *const names[] = {
#define SYSCALL(number, name) [number] = name,
#include "base/syscall_names.h"
};

const char *syscall_name(int64_t number)
{
	return number >= 0 && number < (int64_t)N_ELEMENTS(names) ? names[number] : NULL;
}
