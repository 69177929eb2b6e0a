/* SPDX-License-Identifier: MIT */
/* kernel_private.h - the symbols of /proc/kallsyms, for kernel.c and kernel_place.c. Private. */
#ifndef PROBING_SYMBOLIZE_KERNEL_PRIVATE_H
#define PROBING_SYMBOLIZE_KERNEL_PRIVATE_H

#include "symbolize/symbolize.h"

struct kernel_entry {
	uint64_t address;
	uint32_t name; /* offset in names */
	bool has_module;
};

/* A loadable module's code. */
struct kernel_module {
	uint64_t start; /* of its lowest function */
	uint32_t hash;  /* of its name, 30 bits */
};

struct kernel_symbols {
	char *names;
	size_t n_name_bytes, name_bytes_allocated;
	struct kernel_entry *entries;
	size_t n_entries, entries_allocated;
	uint64_t text, end; /* of the kernel's own image, from _text up to _end; 0: not listed */
	struct kernel_module *modules;
	size_t n_modules, modules_allocated;
};

/* The last entry at or before an address; NULL: there is none. */
const struct kernel_entry *kernel_find_entry(const struct kernel_symbols *symbols, uint64_t ip);

/* "[kvm]", NULL: the kernel's own. Borrowed. */
const char *kernel_entry_module(const struct kernel_symbols *symbols, const struct kernel_entry *entry);

/* Fill modules, from the sorted entries. -ENOMEM. */
int kernel_find_modules(struct kernel_symbols *symbols);

#endif
