/* SPDX-License-Identifier: MIT */
/* function_rows.h - the rows of whole functions, sent from one process to another. Private to this folder. */
#ifndef PROBING_FUNCTION_ROWS_H
#define PROBING_FUNCTION_ROWS_H

#include "unwind/native/cfi.h"

/*
 * function_rows_find - the row of an address, from cached answers, else from the source.
 * Returns 0; 1 the row is for this address alone, and no table here has it; -ENOENT there is no CFI;
 * -ENOMEM.
 */
int function_rows_find(struct row_pool *pool, const struct native_row_source *source, struct module *module,
		       struct cfi_module *cfi, uint64_t address, uint32_t *ret);

#endif
