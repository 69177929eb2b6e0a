/* module.h - one module's sources of names. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_MODULE_H
#define PROBING_SYMBOLIZE_MODULE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "symbolize/lines.h"
#include "symbolize/method_tables.h"
#include "symbolize/names.h"
#include "symbolize/plumbing.h"
#include "symbolize/python_module.h"
#include "symbolize/symbolize.h"
#include "symbolize/symtab.h"

struct symbol_module {
	char *path;
	const char *base_name; /* in path */
	char *stem;            /* what Python would call a module in this file */
	struct elf_file *elf;
	const void *memory; /* the file's image where there is no file; borrowed */
	size_t memory_bytes;
	struct names *kept, *readable;
	bool is_debug_file; /* has names and lines, but no code and no unwind information */
	struct symbol_search *search; /* borrowed; NULL: the usual places */
	char *root;                   /* in front of path; NULL: none */

	/* From the first look-up on. */
	bool is_ready;
	Dwfl *dwfl;
	Dwfl_Module *reported; /* the file as libdwfl knows it; NULL: it did not want it */
	bool may_block;   /* its debug information leads to a pipe or the like */
	char *debug_path; /* of the separate debug file; NULL: none */
	struct symtab *symtab;
	struct debug_lines *lines; /* NULL: no debug information */
	struct python_module python;
	struct method_tables *methods; /* NULL: nothing to do with Python */
	struct plumbing *plumbing; /* NULL: no nameless function of an interpreter was met yet */
};

/* module_make_ready - open the sources, once. Errors: -ENOMEM; the next call begins anew. */
int module_make_ready(struct symbol_module *module);

/*
 * module_is_nameless_plumbing - judge a function of an interpreter that has no name.
 * Reads all the interpreter's code the first time.
 * Returns 1 where it is plumbing, 0 where not or not an interpreter, -ENOMEM.
 */
int module_is_nameless_plumbing(struct symbol_module *module, uint64_t start);

#endif
