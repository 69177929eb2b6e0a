/* SPDX-License-Identifier: MIT */
/* kernel_numbers.h - puts numbers of the running kernel into a BPF program, in place of its placeholders. Private. */
#ifndef PROBING_CAPTURE_KERNEL_NUMBERS_H
#define PROBING_CAPTURE_KERNEL_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "src/capture/bpf/placeholders.h"

struct kernel_numbers {
	uint32_t of[N_PLACEHOLDERS]; /* by placeholder, from PLACEHOLDER_FIRST on */
};

/*
 * kernel_numbers_find - of the running kernel.
 * Errors: -ESRCH the kernel does not describe its types; -ENOENT the description lacks one of them: an older kernel;
 * -EBADMSG; -ENOMEM.
 */
int kernel_numbers_find(struct kernel_numbers *ret);

/*
 * kernel_numbers_put - copy a compiled object, with these numbers in its instructions.
 * @ret: as many bytes, owned by the caller. Errors: -ENOMEM; -ENOENT no placeholder is in it.
 */
int kernel_numbers_put(const struct kernel_numbers *numbers, const void *object, size_t n_bytes, void **ret);

#endif
