/* SPDX-License-Identifier: MIT */
/* cfi.h - compiled rows: the pool of distinct rows, and a module's PCs. Private. */
#ifndef PROBING_CFI_H
#define PROBING_CFI_H

#include "base/address_space.h"
#include "base/id_map.h"
#include "unwind/native/row.h"

enum { ROW_NONE = 0 }; /* the pool's first row: no CFI */

struct row_pool {
	struct cfi_row *rows;
	size_t n, allocated;
	struct cfi_slow *slow; /* [0] unused */
	size_t n_slow, slow_allocated;
	struct id_map index; /* hash of a row -> its number, for sharing */
	size_t n_compiled;
};

int row_pool_init(struct row_pool *pool);
void row_pool_done(struct row_pool *pool);

/*
 * cfi_row_at - the row of one address of a module, compiled at the first call.
 * @address: the module's own. ROW_NONE where the module has no CFI for it.
 * Errors: -ENOMEM.
 */
int cfi_row_at(struct row_pool *pool, struct module *module, uint64_t address, uint32_t *ret);

/* A row that no CFI gave. Shares equal ones. -ENOMEM. */
int row_pool_share(struct row_pool *pool, const struct cfi_row *row, uint32_t *ret);

/* Frees module->cfi. */
void cfi_module_done(struct module *module);

#endif
