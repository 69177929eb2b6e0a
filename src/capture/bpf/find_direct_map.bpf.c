/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* find_direct_map.bpf.c - finds the kernel's map of all memory: see direct_map.h.
 *
 * Runs once, in the process that has loaded it. The start of that map is one of the kernel's variables, if the kernel
 * randomises its addresses, and else a constant. A kernel whose symbol table has no variables does not reveal which, so
 * each is tried: its page tables must lead to the word that the process has written. Reads stay within
 * as many bytes from the start as there is memory.
 *
 * Interrupts are on here. The page tables are those of this process' own word, whose page can only move to
 * another one meanwhile. Then nothing is found, and memory is copied.
 */
#include <linux/bpf.h>

#include "src/capture/bpf/page_tables.h"

char program_license[] SEC("license") = "Dual MIT/GPL";

/* Source: arch/x86/include/asm/page_64_types.h, Linux 6.18. */
#define BASE_OF_4_LEVELS 0xffff888000000000ull
#define BASE_OF_5_LEVELS 0xff11000000000000ull

static const char variable_name[] = "page_offset_base";

static __always_inline bool is_right(const struct direct_map_trial *trial, const struct direct_map *map)
{
	struct place place;

	return find_place(map, own_tables(), trial->address, sizeof trial->word, &place) &&
	       kernel_word(place.address) == trial->word;
}

static __always_inline bool try_map(struct direct_map_trial *trial, uint64_t base, uint64_t n_levels)
{
	struct direct_map map = { .base = base, .end = trial->map.end, .n_levels = n_levels };

	if (!is_right(trial, &map))
		return false;
	trial->map.base = base;
	trial->map.n_levels = n_levels;
	return true;
}

SEC("syscall")
int find_direct_map(struct direct_map_trial *trial)
{
	unsigned long long variable = 0; /* type that the helper expects */
	uint64_t base = 0;

	if (bpf_kallsyms_lookup_name(variable_name, sizeof variable_name, 0, &variable) == 0)
		base = kernel_word(variable);
	if (base != 0)
		return try_map(trial, base, 4) || try_map(trial, base, 5);
	return try_map(trial, BASE_OF_4_LEVELS, 4) || try_map(trial, BASE_OF_5_LEVELS, 5);
}
