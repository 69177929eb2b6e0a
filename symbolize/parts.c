/* SPDX-License-Identifier: MIT */
/* parts.c - see parts.h.
 *
 * Instructions are not decoded: each byte may begin a jump of 32 bits, which hits the middle of a function by chance once
 * in some thousand ranges. Hence both signs.
 */
#include "symbolize/parts.h"

#include <dwarf.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/effort.h"

enum { MAX_PART_BYTES = 64 << 10, BYTES_A_STEP = 16, STEPS_OF_LOOK = 8 };

/* Whether the frame differs from a function's entry: rules change before the first instruction. */
static bool begins_with_frame(struct elf_file *elf, uint64_t address)
{
	struct elf_cfi cfi;
	size_t at = 0;

	if (elf_file_cfi(elf, address, &cfi) < 0)
		return false;
	while (at < cfi.n_program && cfi.program[at] == DW_CFA_nop)
		at++;
	if (at == cfi.n_program)
		return false;
	switch (cfi.program[at]) {
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_expression:
		return true;
	default:
		return (cfi.program[at] & 0xc0) == DW_CFA_offset;
	}
}

/* All stubs of a section share one range: a jump into it is a call to another module. */
static bool is_stub(struct elf_file *elf, uint64_t address)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };

	for (size_t i = 0; i < N_ELEMENTS(sections); i++) {
		uint64_t start, n_bytes;

		if (elf_file_section(elf, sections[i], &start, &n_bytes) == 0 && address - start < n_bytes)
			return true;
	}
	return false;
}

/* The function whose middle is the jump's target; 0: none. */
static uint64_t function_around(struct elf_file *elf, uint64_t target)
{
	uint64_t start, end;

	if (elf_file_function(elf, target, &start, &end) < 0 || start == target || is_stub(elf, target) ||
	    begins_with_frame(elf, start))
		return 0;
	return start;
}

/* jmp rel32 and jcc rel32. */
static bool is_jump(const uint8_t *code, size_t at)
{
	return code[at] == 0xe9 || ((code[at] & 0xf0) == 0x80 && at > 0 && code[at - 1] == 0x0f);
}

bool part_find_function(struct elf_file *elf, uint64_t start, uint64_t end, uint64_t *ret)
{
	const size_t n_bytes = end - start;
	uint64_t found = 0;
	const void *bytes;
	const uint8_t *code;

	if (elf_file_machine(elf) != EM_X86_64 || n_bytes > MAX_PART_BYTES || !begins_with_frame(elf, start) ||
	    elf_file_data(elf, start, n_bytes, &bytes) < 0 || !effort_go_on(n_bytes / BYTES_A_STEP))
		return false;
	code = bytes;
	for (size_t at = 0; at + 5 <= n_bytes; at++) {
		int32_t distance;
		uint64_t target, function;

		if (!is_jump(code, at))
			continue;
		memcpy(&distance, code + at + 1, sizeof distance);
		target = start + at + 5 + (uint64_t)(int64_t)distance;
		if (target - start < n_bytes)
			continue;
		function = effort_go_on(STEPS_OF_LOOK) ? function_around(elf, target) : 0;
		if (function != 0 && found != 0 && function != found)
			return false;
		found = function ?: found;
	}
	*ret = found;
	return found != 0;
}
