/* SPDX-License-Identifier: MIT */
/* direct_map.h - the kernel's map of all memory, through which a BPF program can read a process' memory by its page
 * tables.
 *
 * Compiled for BPF, too; bpf/page_tables.h uses it. Private.
 */
#ifndef PROBING_CAPTURE_DIRECT_MAP_H
#define PROBING_CAPTURE_DIRECT_MAP_H

#include <stdint.h>

struct kernel_numbers;

struct direct_map {
	uint64_t base;     /* virtual address of the physical address 0 */
	uint64_t end;      /* the first physical address behind all memory */
	uint64_t n_levels; /* of page tables: 4 or 5 */
};

/* Input and output of the BPF program that searches for it: bpf/find_direct_map.bpf.c. */
struct direct_map_trial {
	uint64_t address, word; /* an aligned address of the caller, and the word there */
	struct direct_map map;  /* the candidate; base 0: the program reads the kernel's variable */
	uint64_t is_right;      /* output: map is right, and its base known */
};

/*
 * direct_map_find - find it through a page of the caller: the result must contain the caller's word.
 * @ret_numbers: of the running kernel, for programs that read through it.
 * Errors: -ENOSYS not on this machine, or built without it; -ECANCELED PROBING_DIRECT_MAP=0 is in the environment;
 *         -ENXIO not found; those of kernel_numbers_find(); errors of the kernel, or of libbpf.
 */
int direct_map_find(struct direct_map *ret, struct kernel_numbers *ret_numbers);

#endif
