/* SPDX-License-Identifier: MIT */
/* symtab.h - the function symbols of one module, sorted once, searched often. */
#ifndef PROBING_SYMBOLIZE_SYMTAB_H
#define PROBING_SYMBOLIZE_SYMTAB_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/cache_entry.h"

struct symtab_entry {
	uint64_t address;
	const char *name; /* borrowed from the ELF file's string table */
	uint64_t parent;  /* where the function begins that this is a part or copy of, "f" of "f.cold"; 0: of none */
	uint64_t body_of; /* where "f" begins of "f_impl"; 0: there is none */
	uint32_t size;    /* 0: unknown; saturated */
	uint8_t rank;     /* lower is preferred among names of one address */
	uint8_t n_underscores; /* leading ones; saturated */
	bool exported;         /* global binding */
};

struct symtab {
	struct symtab_entry *entries; /* by address, one per address */
	size_t n_entries;
	bool has_gc_main; /* a "gc_collect_main", or a part of it */
	bool has_static;  /* more than exported symbols: a whole table, or a debug file's */
};

/*
 * symtab_new - collect .symtab, .gnu_debugdata or .dynsym, whichever libdwfl finds.
 * @bias: libdwfl's offset to the module's own addresses.
 * A module without symbols yields an empty table. Errors: -ENOMEM; those of effort.h.
 */
int symtab_new(Dwfl_Module *dwfl_module, uint64_t bias, struct symtab **ret);

/*
 * symtab_restore - the same from a cache. @symbols: n of them, which need not be valid. @strings: borrowed, n_strings
 * bytes that end with a NUL. Errors: -EBADMSG out of order, or without a name; -ENOMEM; those of effort.h.
 */
int symtab_restore(const struct cache_symbol *symbols, size_t n, const char *strings, size_t n_strings,
		   struct symtab **ret);
void symtab_free(struct symtab *symtab);
void symtab_freep(struct symtab **symtab);

/* The function that contains an address; NULL: none. One of size 0 extends to the next symbol. */
const struct symtab_entry *symtab_find(const struct symtab *symtab, uint64_t address);

#endif
