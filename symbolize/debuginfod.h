/* SPDX-License-Identifier: MIT */
/* debuginfod.h - files by build-id from the servers that DEBUGINFOD_URLS names. Private. */
#ifndef PROBING_SYMBOLIZE_DEBUGINFOD_H
#define PROBING_SYMBOLIZE_DEBUGINFOD_H

#include "base/elf_file.h"
#include "symbolize/symbolize.h"

struct debuginfod;

/*
 * debuginfod_open - prepare requests; the first one loads libdebuginfod.
 * @options: borrows patience_s and keep_going.
 * Errors: -ENOMEM.
 */
int debuginfod_open(const struct symbol_search_options *options, struct debuginfod **ret);
void debuginfod_close(struct debuginfod *servers);

/*
 * debuginfod_get - fetch a file, from the client's cache if it is there.
 * @executable: the program or library itself; false: its debug file.
 * @ret: a descriptor, owned by the caller.
 * Errors: -ENOENT no server has it; -ETIMEDOUT they are too slow, and are not used
 * again; -ENOSYS no libdebuginfod; -ECANCELED keep_going returned false;
 * other errors of the client.
 */
int debuginfod_get(struct debuginfod *servers, const struct build_id *id, bool executable, int *ret);

#endif
