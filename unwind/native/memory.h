/* SPDX-License-Identifier: MIT */
/* memory.h - the memory of the unwound stack. Private to this folder.
 *
 * Three sources, in this order: the bytes captured with the sample; the rest of the stack, read
 * afterwards and accepted only if 512 bytes at the seam match the captured ones before and after the
 * read; if that is too late, the rest read for an earlier sample with the same bytes at the seam; single
 * words elsewhere (below SP, on another stack), read live.
 */
#ifndef PROBING_MEMORY_H
#define PROBING_MEMORY_H

#include <string.h>

#include "base/util.h"
#include "unwind/native/native.h"

enum { MEMORY_SEAM_BYTES = 512 };

/* Before a sample's stack is unwound: memory read for the last one remains usable for its thread. */
void memory_begin(struct native_stack *stack);
void memory_done(struct native_stack *stack);

/* A word outside the captured bytes. -EFAULT, -ENOMEM. */
int memory_load_elsewhere(struct native_stack *stack, uint64_t address, uint64_t *ret);

/* A word of the captured bytes; false: it is not among them. */
static inline bool memory_captured(const struct sample *sample, uint64_t address, uint64_t *ret)
{
	uint64_t offset = address - sample->regs.value[MACHINE_REG_SP];

	if (offset >= sample->stack_bytes || sample->stack_bytes - offset < sizeof *ret)
		return false;
	memcpy(ret, sample->stack + offset, sizeof *ret);
	return true;
}

static inline int memory_load(struct native_stack *stack, uint64_t address, uint64_t *ret)
{
	if (memory_captured(stack->sample, address, ret))
		return 0;
	return memory_load_elsewhere(stack, address, ret);
}

/* Whether an address is above the captured bytes, in the rest of the stack. */
bool memory_is_beyond(const struct native_stack *stack, uint64_t address);

#endif
