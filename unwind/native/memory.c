/* memory.c - stack bytes that the capture left out; see memory.h for the rules. */
#include "unwind/native/memory.h"

#include <errno.h>

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

/* Are the last captured bytes these? */
static bool seam_matches(const struct native_stack *stack, const uint8_t *bytes)
{
	size_t seam = seam_bytes(stack);

	return memcmp(stack->sample->stack + stack->sample->stack_bytes - seam, bytes, seam) == 0;
}

/* Are they still what stands there now? */
static bool seam_is_there(const struct native_stack *stack)
{
	size_t seam = seam_bytes(stack);
	uint8_t bytes[MEMORY_SEAM_BYTES];

	return remote_read(stack->remote, RADDR(captured_end(stack) - seam), bytes, seam) == 0 &&
	       seam_matches(stack, bytes);
}

bool native_seam_holds(const struct native_stack *stack)
{
	return stack->rest_bytes == 0 || stack->sample->is_held || seam_is_there(stack);
}

static int make_room(struct native_stack *stack, size_t n_bytes)
{
	uint8_t *moved;

	if (n_bytes <= stack->rest_allocated)
		return 0;
	moved = realloc(stack->rest, n_bytes);
	if (!moved)
		return -ENOMEM;
	stack->rest = moved;
	stack->rest_allocated = n_bytes;
	return 0;
}

/*
 * Read the stack on from what is there already; one call reads the seam, the
 * bytes behind it, and compares. The target runs on meanwhile: a stack that
 * has been popped and pushed anew down to here shows at the seam, which is
 * looked at once more afterwards: reading takes as long as some calls. After a read
 * that did not match, nothing of an earlier one is given out either.
 */
static int read_rest(struct native_stack *stack)
{
	size_t seam = seam_bytes(stack);
	size_t had = stack->rest_bytes;
	size_t wanted = seam + (had > 0 ? 2 * had : (size_t)FIRST_REST_BYTES);
	uint64_t start = captured_end(stack) - seam;
	ssize_t n;
	int r;

	if (stack->rest_refused || !stack->remote || seam == 0 || wanted > MAX_REST_BYTES) {
		stack->rest_refused = true;
		return -EFAULT;
	}
	r = make_room(stack, wanted);
	if (r < 0)
		return r;
	n = remote_read_some(stack->remote, RADDR(start), stack->rest, wanted);
	if (n < 0 || (size_t)n <= seam || !seam_matches(stack, stack->rest) || !seam_is_there(stack)) {
		stack->rest_refused = true;
		stack->rest_bytes = 0;
		return -EFAULT;
	}
	stack->rest_start = start;
	stack->rest_bytes = (size_t)n;
	if ((size_t)n > had)
		return 0;
	stack->rest_refused = true; /* that was the top */
	return -EFAULT;
}

static int load_rest(struct native_stack *stack, uint64_t address, void *to, size_t n_bytes)
{
	for (;;) {
		uint64_t offset = address - stack->rest_start;
		int r;

		if (stack->rest_bytes > 0 && offset < stack->rest_bytes &&
		    stack->rest_bytes - offset >= n_bytes) {
			memcpy(to, stack->rest + offset, n_bytes);
			return 0;
		}
		r = read_rest(stack);
		if (r < 0)
			return r;
	}
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
