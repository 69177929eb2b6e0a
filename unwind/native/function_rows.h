/* SPDX-License-Identifier: MIT */
/* function_rows.h - the rows of whole functions, sent from one process to another. Private to this folder. */
#ifndef PROBING_FUNCTION_ROWS_H
#define PROBING_FUNCTION_ROWS_H

#include "unwind/native/cfi.h"

/* function_rows_find - the row of an address from earlier answers. False: it is not known yet. */
bool function_rows_find(const struct cfi_module *cfi, uint64_t address, uint32_t *ret);

/*
 * function_rows_ask - ask the source for rows.
 * @addresses, @n: as in native_row_source; none of them is known yet.
 * @ret: row of the first address. Errors: -ENOMEM.
 */
int function_rows_ask(struct row_pool *pool, const struct native_row_source *source, struct module *module,
		      struct cfi_module *cfi, const uint64_t *addresses, size_t n, uint32_t *ret);

#endif
