/* SPDX-License-Identifier: MIT */
/* module.h - one module's sources of names. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_MODULE_H
#define PROBING_SYMBOLIZE_MODULE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "base/mapping.h"
#include "symbolize/cache_entry.h"
#include "symbolize/effort.h"
#include "symbolize/lines.h"
#include "symbolize/method_tables.h"
#include "symbolize/names.h"
#include "symbolize/internal_functions.h"
#include "symbolize/python_module.h"
#include "symbolize/symbolize.h"
#include "symbolize/symtab.h"
#include "symbolize/unpack.h"

struct symbol_module {
	char *path;
	const char *base_name; /* in path */
	char *stem;            /* what Python would call a module in this file */
	char *package;         /* what Python calls the package that this file is a part of */
	struct elf_file *elf;
	const void *memory; /* the file's image where there is no file; borrowed */
	size_t memory_bytes;
	struct names *kept, *readable;
	bool is_debug_file;           /* has names and lines, but no code and no unwind information */
	struct symbol_search *search; /* borrowed; NULL: the usual places */
	struct effort effort;         /* what its names have cost, and its part of what those of all may cost */
	enum symbol_limit limit;      /* why they were given up */
	uint64_t n_limited;
	char *root; /* in front of path; NULL: none */

	/* From the first look-up on. */
	bool is_ready;
	Dwfl *dwfl;
	Dwfl_Module *reported;           /* the file as libdwfl knows it; NULL: it did not want it */
	struct file_mapping *adopted[3]; /* what libdwfl has mapped: the file, its debug file, that with its symbols */
	size_t n_adopted;
	bool may_harm;    /* its debug information leads to a pipe or the like */
	char *debug_path; /* of the separate debug file; NULL: none */
	int debug_fd;     /* the same; -1 */
	bool tried_debug; /* it was looked for */
	struct symtab *symtab;
	struct python_module python;

	/* From the first look-up on that needs them; NULL then: there are none. */
	struct debug_lines *lines;
	struct unpacked *unpacked; /* what they are in; NULL: that is libdwfl's */
	struct method_tables *methods;
	bool tried_lines, tried_methods;
	struct internal_functions *internal; /* NULL: no nameless function of an interpreter was met yet */

	/* module_cache.h */
	bool tried_cache, has_cache_key;
	struct cache_key cache_key;
	struct file_mapping *cache_file; /* NULL: nothing is known */
	struct cache_entry cached;       /* in it */
	unsigned n_found_out;            /* tables that were made here */
	uint64_t n_unpacked_bytes;
};

/* module_make_ready - open the sources, once. Errors: -ENOMEM, the next call begins anew; those of effort.h. */
int module_make_ready(struct symbol_module *module);

/* module_report - hand the file to libdwfl, once; module->reported says whether it wants it. -ENOMEM; those of effort.h. */
int module_report(struct symbol_module *module);

/* module_give_up - no more names out of this module's files: all that was taken for them is given back. */
void module_give_up(struct symbol_module *module, enum symbol_limit limit);

/* module_adopt - protect what libdwfl has mapped, from its being truncated. -ENOMEM. */
int module_adopt(struct symbol_module *module, Elf *elf);

/*
 * module_find_separate - the separate debug file, looked for once: servers may have to be asked for it.
 * Returns a descriptor of the caller's, or -ENOENT.
 */
int module_find_separate(struct symbol_module *module);

/* Open debug information, and scan the method tables, once; needs what is above. -ENOMEM; those of effort.h. */
int module_open_lines(struct symbol_module *module);
int module_open_methods(struct symbol_module *module);

/*
 * module_is_nameless_internal - judge a function of an interpreter that has no name.
 * Reads all the interpreter's code the first time, unless its symbol table names the static functions as well.
 * Returns 1 where it is internal, 0 where not or not an interpreter; -ENOMEM, those of effort.h.
 */
int module_is_nameless_internal(struct symbol_module *module, uint64_t start);

#endif
