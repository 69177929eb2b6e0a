/* SPDX-License-Identifier: MIT */
/* fuzz_cfi.c - an ELF file's call frame information and a stack, both hostile.
 *
 * Input: 8 bytes of offsets of two PCs in the file's mapping, 1,024 bytes of
 * stack, and the file. The file is mapped at MAPPED_AT; the first half of the
 * stack counts as captured at STACK_AT, all of it can be read later. Rows are
 * compiled at PCs all over the file and the stack is walked from each of them.
 * fuzz/make_cfi_corpus.py makes the corpus.
 */
#include <stdlib.h>
#include <string.h>

#include "unwind/native/native.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#define MAPPED_AT UINT64_C(0x10000000)
#define STACK_AT UINT64_C(0x7ffd00000000)

enum {
	STACK_BYTES = 1024,
	CAPTURED_BYTES = 512,
	HEADER_BYTES = 8 + STACK_BYTES,
	N_PLACES = 24,
};

static uint64_t checksum; /* keeps the compiler from dropping the reads */

struct fixture {
	struct module_table *modules;
	struct address_space *space;
	struct remote *remote;
	struct native_unwinder *unwinder;
	struct native_process *process;
	struct native_stack stack;
};

static void must(int r)
{
	if (r < 0)
		abort();
}

/* Treat the file as a module that is mapped from its first byte on. False: not an ELF file. */
static bool map_file(struct fixture *fixture, const uint8_t *image, size_t n_bytes)
{
	const struct mapping_source source = {
		.start = MAPPED_AT,
		.end = MAPPED_AT + ((n_bytes + 4095) & ~(size_t)4095),
		.executable = true,
		.inode = 1,
		.path = "/hostile.so",
	};
	struct elf_file *elf;

	if (elf_file_open_memory(image, n_bytes, &elf) < 0)
		return false;
	must(address_space_add(fixture->space, &source));
	module_table_get(fixture->modules, 0)->elf = elf;
	return true;
}

static uint64_t word(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof value);
	return value;
}

/* Also read callers' registers: they depend on rows of other frames. */
static void ask(struct native_stack *stack)
{
	uint64_t value, bytes[8];

	for (size_t i = 0; i < stack->n_frames; i += 1 + stack->n_frames / 8)
		for (unsigned reg = 0; reg <= MACHINE_N_REGS; reg++)
			if (native_register(stack, i, reg, &value) == 0)
				checksum += value;
	if (native_stack_read(stack, STACK_AT + CAPTURED_BYTES - 16, bytes, sizeof bytes) == 0)
		checksum += bytes[7];
}

static void walk(struct fixture *fixture, const uint8_t *stack, uint64_t pc)
{
	struct sample sample = {
		.has_user = true,
		.stack = stack,
		.stack_bytes = CAPTURED_BYTES,
	};

	for (unsigned i = 0; i < MACHINE_N_REGS; i++)
		sample.regs.value[i] = word(stack + 8 * i);
	sample.regs.value[MACHINE_REG_SP] = STACK_AT;
	sample.regs.value[MACHINE_REG_PC] = pc;
	must(native_unwind(fixture->process, &sample, fixture->remote, &fixture->stack));
	ask(&fixture->stack);
	must(native_unwind(fixture->process, &sample, NULL, &fixture->stack));
}

static void walk_all(struct fixture *fixture, const uint8_t *data, size_t n_image)
{
	uint32_t offsets[2];

	memcpy(offsets, data, sizeof offsets);
	for (unsigned i = 0; i < 2; i++)
		walk(fixture, data + 8, MAPPED_AT + offsets[i]);
	for (unsigned i = 0; i < N_PLACES; i++)
		walk(fixture, data + 8, MAPPED_AT + n_image * i / N_PLACES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct fixture fixture = { 0 };
	uint8_t *image, *stack;

	if (n_bytes <= HEADER_BYTES)
		return 0;
	/* Blocks of exact size, so that the sanitizer detects every overrun. */
	image = malloc(n_bytes - HEADER_BYTES);
	stack = malloc(STACK_BYTES);
	if (!image || !stack)
		abort();
	memcpy(image, data + HEADER_BYTES, n_bytes - HEADER_BYTES);
	memcpy(stack, data + 8, STACK_BYTES);

	must(module_table_new(&fixture.modules));
	must(address_space_new(1, fixture.modules, &fixture.space));
	must(remote_open_buffer(RADDR(STACK_AT), stack, STACK_BYTES, &fixture.remote));
	must(native_unwinder_new(fixture.modules, &fixture.unwinder));
	must(native_process_new(fixture.unwinder, fixture.space, &fixture.process));
	if (map_file(&fixture, image, n_bytes - HEADER_BYTES))
		walk_all(&fixture, data, n_bytes - HEADER_BYTES);
	native_stack_done(&fixture.stack);
	native_process_free(fixture.process);
	native_unwinder_free(fixture.unwinder);
	remote_free(fixture.remote);
	address_space_free(fixture.space);
	module_table_free(fixture.modules);
	free(stack);
	free(image);
	return 0;
}
