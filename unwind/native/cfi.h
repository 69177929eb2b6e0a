/* SPDX-License-Identifier: MIT */
/* cfi.h - compiled rows: the pool of distinct rows, and a module's PCs. Private. */
#ifndef PROBING_CFI_H
#define PROBING_CFI_H

#include "base/address_space.h"
#include "base/id_map.h"
#include "unwind/native/native.h"
#include "unwind/native/row.h"

enum { ROW_NONE = 0 }; /* the pool's first row: no CFI */

struct row_pool {
	struct cfi_row *rows;
	size_t n, allocated;
	struct cfi_slow *slow; /* [0] unused */
	size_t n_slow, slow_allocated;
	struct id_map index; /* hash of a row -> its number, for sharing */
	size_t n_compiled;
	size_t n_kept_bytes; /* of answers whose rows are kept; see function_rows.c */
};

int row_pool_init(struct row_pool *pool);
void row_pool_done(struct row_pool *pool);

/*
 * cfi_row_at - the row of one address of a module, compiled at the first call.
 * @source: compiles it; NULL: this process does.
 * @address: the module's own. ROW_NONE if the module has no CFI for it.
 * Errors: -ENOMEM.
 */
int cfi_row_at(struct row_pool *pool, const struct native_row_source *source, struct module *module, uint64_t address,
	       uint32_t *ret);

/* cfi_row_find - the same if it has been compiled already; false: it has not. */
bool cfi_row_find(const struct module *module, uint64_t address, uint32_t *ret);

/*
 * cfi_rows_ask - ask a source for the rows of several addresses; none of them has been compiled.
 * @addresses, @n: as in native_row_source. @ret: row of the first one, as above.
 */
int cfi_rows_ask(struct row_pool *pool, const struct native_row_source *source, struct module *module,
		 const uint64_t *addresses, size_t n, uint32_t *ret);

/* Add a row that does not come from CFI. Equal rows share an entry. -ENOMEM. */
int row_pool_share(struct row_pool *pool, const struct cfi_row *row, uint32_t *ret);

/* pool_add - put a compiled row into the pool. Takes ownership of slow if kept, on failure as well. -ENOMEM. */
int pool_add(struct row_pool *pool, struct cfi_row *row, struct cfi_slow *slow, bool kept, uint32_t *ret);

/*
 * cfi_row_by_libdw - libdw's row of one address.
 * @error: why our own reader failed; -ENOENT: .eh_frame has no function there.
 * @ret_start, @ret_end: the code range of the row.
 * Returns 1 if slow was filled, 0 if not, -ENOENT, -ENOMEM.
 */
int cfi_row_by_libdw(struct module *module, uint64_t address, int error, struct cfi_row *row, struct cfi_slow *slow,
		     uint64_t *ret_start, uint64_t *ret_end);

/*
 * cfi_leaves_restored - does the row read registers from below the stack pointer, where a call's end has left them?
 * Such a row is another one at instructions that end the call: see cfi_forget_restored().
 */
bool cfi_leaves_restored(const struct cfi_row *row);
void cfi_forget_restored(struct elf_file *elf, const struct elf_cfi *cfi, uint64_t address, struct cfi_row *row);

/* Code of a module whose rows another process has compiled: [start, end), and the rows in it. */
struct cfi_function {
	uint64_t start, end;
	uint32_t first, n; /* of ranges[] */
};

struct cfi_range {
	uint32_t from, to; /* from the function's start */
	uint32_t row;
};

struct cfi_module {
	struct id_map pcs;   /* own address + 1 -> row; of single addresses */
	Dwarf_CFI *eh_frame; /* only opened where our own reading of the programs has no answer */
	bool eh_frame_tried;
	Dwarf *dwarf;           /* only opened where .eh_frame has no answer */
	Dwarf_CFI *debug_frame; /* borrowed from dwarf */
	bool debug_frame_tried;
	struct cfi_function *functions; /* sorted, none overlaps */
	size_t n_functions, functions_allocated;
	struct cfi_range *ranges; /* of a function in order of address, with gaps */
	size_t n_ranges, ranges_allocated;
};

/* Frees module->cfi. */
void cfi_module_done(struct module *module);

#endif
