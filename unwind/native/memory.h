/* memory.h - the memory a stack is unwound over. Private to this folder.
 *
 * Three grounds, tried in this order: the bytes captured with the sample; the
 * rest of the stack, read afterwards and accepted only when 512 bytes at the
 * seam were what was captured before and after that; single words elsewhere (below SP, on
 * another stack), read live.
 */
#ifndef PROBING_MEMORY_H
#define PROBING_MEMORY_H

#include <string.h>

#include "base/util.h"
#include "unwind/native/native.h"

enum { MEMORY_SEAM_BYTES = 512 };

/* What the captured bytes do not hold. -EFAULT, -ENOMEM. */
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

/*
 * Captured bytes come from the kernel's ring, cold, and each frame has to wait
 * for the return address of the one before: keep so much of the stack above
 * the walk on its way into the cache. Of frames of 600 bytes these are seven: less
 * would be read before it is there. Where what the walk will read was asked for
 * before (native_expect), less is enough for what was not expected.
 */
enum { MEMORY_AHEAD_BYTES = 4096, MEMORY_AHEAD_EXPECTED_BYTES = 512, CACHE_LINE_BYTES = 64 };

static inline void memory_prefetch(const struct sample *sample, uint64_t from, uint64_t to)
{
	uint64_t offset = from - sample->regs.value[MACHINE_REG_SP];
	uint64_t end = MIN(to - sample->regs.value[MACHINE_REG_SP], sample->stack_bytes);

	for (; offset < end; offset += CACHE_LINE_BYTES)
		__builtin_prefetch(sample->stack + offset);
	/* GCC drops calls of functions that do nothing but prefetch. */
	__asm__ volatile("");
}

/* Whether an address lies behind the captured bytes, where the stack goes on. */
bool memory_is_beyond(const struct native_stack *stack, uint64_t address);

#endif
