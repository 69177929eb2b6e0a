/* SPDX-License-Identifier: MIT */
/* cache.h - the folder of what was found out about modules before. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_CACHE_H
#define PROBING_SYMBOLIZE_CACHE_H

#include "symbolize/cache_entry.h"
#include "symbolize/symbolize.h"

/*
 * cache_write - put a file into the folder, under its name at once and as a whole; the files used longest ago go where the
 * folder becomes too large. Errors: -ENOSPC the disk is nearly full; what openat(2), writev(2) and renameat(2) report.
 */
int cache_write(struct symbol_cache *cache, const char *name, struct cache_pieces *pieces);

/*
 * cache_program - what tells this program from another version of it: the build-id that its linker gave it.
 * @to: BUILD_ID_MAX. Returns its bytes; 0: it has none, and then nothing is cached.
 */
unsigned cache_program(uint8_t *to);

#endif
