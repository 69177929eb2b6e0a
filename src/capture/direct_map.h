/* SPDX-License-Identifier: MIT */
/* direct_map.h - where the kernel has all memory mapped, so that a program in it can read a process' by its page tables.
 *
 * Compiled for BPF, too; see bpf/page_tables.h for what it is good for. Private.
 */
#ifndef PROBING_CAPTURE_DIRECT_MAP_H
#define PROBING_CAPTURE_DIRECT_MAP_H

#include <stdint.h>

struct direct_map {
	uint64_t base;     /* what has the physical address 0 */
	uint64_t end;      /* the first physical address behind all memory */
	uint64_t n_levels; /* of page tables: 4 or 5 */
};

/* What the program that looks for it is told and tells: bpf/find_direct_map.bpf.c. */
struct direct_map_trial {
	uint64_t address, word; /* where the caller has which word: at a whole one */
	struct direct_map map;  /* its end is given; it is found if n_levels is not 0 afterwards */
};

/*
 * direct_map_find - find it, by a page of the caller's own: what is found there is what the caller has written.
 * Errors: -ENOSYS not on this machine, or built without it; -ECANCELED PROBING_DIRECT_MAP=0 is in the environment; -ENXIO it is
 *         not where it was looked for; what the kernel reports, or libbpf: -ESRCH it is without BTF.
 */
int direct_map_find(struct direct_map *ret);

#endif
