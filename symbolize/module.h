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
#include "symbolize/cython_names.h"
#include "symbolize/effort.h"
#include "symbolize/go_table.h"
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
	char *stem;            /* Python's name for a module in this file */
	char *package;         /* Python's name for the package that contains this file */
	struct elf_file *elf;
	const void *memory; /* the file's image where there is no file; borrowed */
	size_t memory_bytes;
	struct names *kept, *readable;
	bool is_debug_file;           /* has names and lines, but no code and no unwind information */
	struct symbol_search *search; /* borrowed; NULL: the usual places */
	struct effort effort;         /* cost of its names, and its part of the common limit */
	enum symbol_limit limit;      /* why they were given up */
	uint64_t n_limited;
	char *root; /* in front of path; NULL: none */

	/* Valid from the first look-up on. */
	bool is_ready;
	Dwfl *dwfl;
	Dwfl_Module *reported;           /* the file as libdwfl knows it; NULL: it did not want it */
	struct file_mapping *adopted[3]; /* libdwfl's mappings: the file, its debug file, that with its symbols */
	size_t n_adopted;
	bool may_harm;    /* its debug information refers to a pipe or the like */
	char *debug_path; /* of the separate debug file; NULL: none */
	int debug_fd;     /* the same; -1 */
	bool tried_debug; /* it was looked for */
	struct symtab *symtab;
	struct python_module python;

	/* Valid from the first look-up on that needs them; NULL then: there are none. */
	struct debug_lines *lines;
	struct unpacked *unpacked;       /* the file that contains them; NULL: libdwfl's */
	struct unpacked *unpacking;      /* started, not finished */
	struct elf_file *unpacking_file; /* the separate file it comes from; NULL: the module */
	struct method_tables *methods;
	struct go_table *go;
	struct cython_names *cython;
	bool tried_lines, tried_methods, tried_go, tried_cython;
	struct internal_functions *internal; /* NULL: no look-up of a nameless function of an interpreter yet */

	/* module_cache.h */
	bool tried_cache, has_cache_key;
	struct cache_key cache_key;
	struct file_mapping *cache_file; /* NULL: nothing is known */
	struct cache_entry cached;       /* in it */
	unsigned n_found_out;            /* tables that were made here */
	uint64_t n_unpacked_bytes;
};

/* module_make_ready - open the sources, once. Errors: -ENOMEM, the next call starts again; those of effort.h. */
int module_make_ready(struct symbol_module *module);

/* module_report - pass the file to libdwfl, once; module->reported is whether it accepts it. -ENOMEM; those of
 * effort.h. */
int module_report(struct symbol_module *module);

/* module_give_up - no more names from this module's files: frees everything allocated for them. */
void module_give_up(struct symbol_module *module, enum symbol_limit limit);

/* module_adopt - protect libdwfl's mappings against truncation of the files. -ENOMEM. */
int module_adopt(struct symbol_module *module, Elf *elf);

/*
 * module_find_separate - the separate debug file, searched for once, possibly on servers.
 * Returns a descriptor, owned by the caller, or -ENOENT.
 */
int module_find_separate(struct symbol_module *module);

/*
 * module_start_lines - begin to open debug information that module_open_lines() will need, if another thread can do so
 * meanwhile; after the functions above. -ENOMEM; those of effort.h.
 */
int module_start_lines(struct symbol_module *module);

/* module_drop_unpacking - end what module_start_lines() has begun. */
void module_drop_unpacking(struct symbol_module *module);

/* Open debug information, and scan the method tables, once; after the functions above. -ENOMEM; those of effort.h. */
int module_open_lines(struct symbol_module *module);
int module_open_methods(struct symbol_module *module);

/* module_open_go, module_open_cython - the same for the tables of Go's linker, and the tracebacks of Cython's functions. */
int module_open_go(struct symbol_module *module);
int module_open_cython(struct symbol_module *module);

/*
 * module_is_nameless_internal - judge a function of an interpreter that has no name.
 * The first call reads all the interpreter's code, unless its symbol table includes static functions.
 * Returns 1 if it is internal, 0 if it is not or the module is no interpreter; -ENOMEM, those of effort.h.
 */
int module_is_nameless_internal(struct symbol_module *module, uint64_t start);

#endif
