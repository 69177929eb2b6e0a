/* SPDX-License-Identifier: MIT */
/* memory.c - stack bytes that the capture left out; see memory.h for the rules. */
#include "unwind/native/memory.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

enum {
	FIRST_REST_BYTES = 64 << 10,
	MAX_REST_BYTES = 64 << 20,
};

static uint64_t captured_end(const struct native_stack *stack)
{
	return stack->sample->regs.value[MACHINE_REG_SP] + stack->sample->stack_bytes;
}

bool memory_is_beyond(const struct native_stack *stack, uint64_t address)
{
	uint64_t end = captured_end(stack);

	return address + sizeof(uint64_t) > end && address < end + MAX_REST_BYTES;
}

static size_t seam_bytes(const struct native_stack *stack)
{
	return MIN(stack->sample->stack_bytes, (size_t)MEMORY_SEAM_BYTES);
}

/* Whether the last captured bytes equal these. */
static bool seam_matches(const struct native_stack *stack, const uint8_t *bytes)
{
	size_t seam = seam_bytes(stack);

	return memcmp(stack->sample->stack + stack->sample->stack_bytes - seam, bytes, seam) == 0;
}

/* Whether memory still holds the last captured bytes. */
static bool seam_is_there(const struct native_stack *stack)
{
	size_t seam = seam_bytes(stack);
	uint8_t bytes[MEMORY_SEAM_BYTES];

	return remote_read(stack->remote, RADDR(captured_end(stack) - seam), bytes, seam) == 0 &&
	       seam_matches(stack, bytes);
}

bool native_seam_holds(const struct native_stack *stack)
{
	return stack->rest.n_bytes == 0 || stack->sample->is_held || seam_is_there(stack);
}

/* ---- Rests kept from earlier samples ---- */

static struct stack_rest *find_kept(struct native_stack *stack, pid_t tid)
{
	for (size_t i = 0; i < NATIVE_KEPT_RESTS; i++)
		if (stack->kept[i].n_bytes > 0 && stack->kept[i].tid == tid)
			return &stack->kept[i];
	return NULL;
}

void memory_begin(struct native_stack *stack)
{
	struct stack_rest *kept, rest = stack->rest;

	stack->rest_refused = false;
	if (rest.n_bytes == 0)
		return;
	kept = find_kept(stack, rest.tid);
	if (!kept)
		kept = &stack->kept[stack->next_kept++ % NATIVE_KEPT_RESTS];
	stack->rest = *kept;
	stack->rest.n_bytes = 0;
	*kept = rest;
}

/*
 * If the stack has changed before this late read, use the rest kept from an earlier sample. Equal bytes at the seam
 * verify a rest read shortly before as well as one read shortly after.
 */
static bool take_kept(struct native_stack *stack)
{
	enum { KEPT_NS = 200000000 };
	struct stack_rest *kept = find_kept(stack, stack->sample->tid), rest = stack->rest;
	uint64_t start = captured_end(stack) - seam_bytes(stack);

	if (!kept || stack->sample->time_ns - kept->time_ns > KEPT_NS || start - kept->start >= kept->n_bytes ||
	    kept->n_bytes - (start - kept->start) <= seam_bytes(stack) ||
	    !seam_matches(stack, kept->bytes + (start - kept->start)))
		return false;
	stack->rest = *kept;
	*kept = rest;
	kept->n_bytes = 0;
	return true;
}

/* ---- Read the rest now ---- */

static int make_room(struct stack_rest *rest, size_t n_bytes)
{
	uint8_t *moved;

	if (n_bytes <= rest->n_allocated)
		return 0;
	moved = realloc(rest->bytes, n_bytes);
	if (!moved)
		return -ENOMEM;
	rest->bytes = moved;
	rest->n_allocated = n_bytes;
	return 0;
}

/* Start at the seam, or before it: the captured bytes of later samples may end there. */
static uint64_t start_of_read(const struct native_stack *stack)
{
	enum { BEFORE_BYTES = 16 << 10 };
	size_t before = MIN(stack->sample->stack_bytes, (size_t)BEFORE_BYTES);

	return captured_end(stack) - MAX(before, seam_bytes(stack));
}

/* Whether the n bytes read from @start on extend and match the captured bytes. */
static bool is_rest(const struct native_stack *stack, uint64_t start, ssize_t n)
{
	uint64_t end = captured_end(stack);

	return n > 0 && (size_t)n > end - start &&
	       seam_matches(stack, stack->rest.bytes + (end - start) - seam_bytes(stack)) && seam_is_there(stack);
}

static int refuse(struct native_stack *stack)
{
	stack->rest_refused = true;
	return -EFAULT;
}

/*
 * Read more of the stack. One call reads the seam and the bytes after it. The target keeps running: if it has popped
 * and pushed the stack down to the seam, the seam differs. Compare the seam again afterwards, because a read takes as
 * long as a few calls. After a mismatch, also drop what earlier reads returned.
 */
static int read_rest(struct native_stack *stack)
{
	struct stack_rest *rest = &stack->rest;
	size_t had = rest->n_bytes;
	uint64_t start = start_of_read(stack);
	size_t wanted = had > 0 ? 2 * had : captured_end(stack) - start + (size_t)FIRST_REST_BYTES;
	ssize_t n;
	int r;

	if (stack->rest_refused || !stack->remote || seam_bytes(stack) == 0 || wanted > MAX_REST_BYTES)
		return refuse(stack);
	r = make_room(rest, wanted);
	if (r < 0)
		return r;
	n = remote_read_some(stack->remote, RADDR(start), rest->bytes, wanted);
	if (!is_rest(stack, start, n)) {
		rest->n_bytes = 0;
		refuse(stack);
		return had == 0 && take_kept(stack) ? 0 : -EFAULT;
	}
	rest->start = start;
	rest->n_bytes = (size_t)n;
	rest->tid = stack->sample->tid;
	rest->time_ns = stack->sample->time_ns;
	return (size_t)n > had ? 0 : refuse(stack); /* no more bytes: this is the stack's end */
}

static int load_rest(struct native_stack *stack, uint64_t address, void *to, size_t n_bytes)
{
	for (;;) {
		uint64_t offset = address - stack->rest.start;
		int r;

		if (offset < stack->rest.n_bytes && stack->rest.n_bytes - offset >= n_bytes) {
			memcpy(to, stack->rest.bytes + offset, n_bytes);
			return 0;
		}
		r = read_rest(stack);
		if (r < 0)
			return r;
	}
}

void memory_done(struct native_stack *stack)
{
	free(stack->rest.bytes);
	for (size_t i = 0; i < NATIVE_KEPT_RESTS; i++)
		free(stack->kept[i].bytes);
}

int memory_load_elsewhere(struct native_stack *stack, uint64_t address, uint64_t *ret)
{
	uint64_t value;
	int r;

	if (memory_is_beyond(stack, address))
		return native_stack_read(stack, address, ret, sizeof *ret);
	if (!stack->remote)
		return -EFAULT;
	r = remote_read(stack->remote, RADDR(address), &value, sizeof value);
	if (r < 0)
		return -EFAULT;
	*ret = value;
	return 0;
}

int native_stack_read(struct native_stack *stack, uint64_t address, void *to, size_t n_bytes)
{
	const struct sample *sample = stack->sample;
	uint64_t offset = address - sample->regs.value[MACHINE_REG_SP];
	size_t n_captured = 0;

	if (offset < sample->stack_bytes) {
		n_captured = MIN(n_bytes, sample->stack_bytes - offset);
		memcpy(to, sample->stack + offset, n_captured);
	}
	if (n_captured == n_bytes)
		return 0;
	offset += n_captured;
	if (offset < sample->stack_bytes || offset - sample->stack_bytes >= MAX_REST_BYTES)
		return -EFAULT;
	return load_rest(stack, address + n_captured, (uint8_t *)to + n_captured, n_bytes - n_captured);
}
