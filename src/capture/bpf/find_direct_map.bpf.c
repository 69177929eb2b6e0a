/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* find_direct_map.bpf.c - finds the kernel's map of all memory: see direct_map.h.
 *
 * Runs in the process that has loaded it, once for each candidate. The start of that map is one of the kernel's
 * variables, if the kernel randomises its addresses, and else a constant. A kernel whose symbol table has no variables does
 * not reveal which, so each is tried: its page tables must lead to the word that the process has written. Reads
 * stay within as many bytes from the start as there is memory. One candidate a run, because the kernel verifies each
 * copy of the walk through the tables.
 *
 * Interrupts are on here. The page tables are those of this process' own word, whose page can only move to
 * another one meanwhile. Then nothing is found, and memory is copied.
 */
#include <linux/bpf.h>

#include "src/capture/bpf/page_tables.h"

char program_license[] SEC("license") = "Dual MIT/GPL";

static const char variable_name[] = "page_offset_base";

static __always_inline uint64_t randomised_base(void)
{
	unsigned long long variable = 0; /* type that the helper expects */

	return bpf_kallsyms_lookup_name(variable_name, sizeof variable_name, 0, &variable) == 0 ? kernel_word(variable)
												: 0;
}

SEC("syscall")
int find_direct_map(struct direct_map_trial *trial)
{
	struct direct_map map = { .base = trial->map.base, .end = trial->map.end, .n_levels = trial->map.n_levels };
	struct place place;

	if (map.base == 0)
		map.base = randomised_base();
	if (map.base == 0 || !find_place(&map, own_tables(), trial->address, sizeof trial->word, &place) ||
	    kernel_word(place.address) != trial->word)
		return 0;
	trial->map.base = map.base;
	trial->is_right = 1;
	return 0;
}
