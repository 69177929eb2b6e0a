/* SPDX-License-Identifier: MIT */
/* cache.h - the folder with cached symbols of modules. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_CACHE_H
#define PROBING_SYMBOLIZE_CACHE_H

#include "symbolize/cache_entry.h"
#include "symbolize/symbolize.h"

/*
 * cache_write - write a file into the folder, atomically under its name; if the folder becomes too large, the least
 * recently used files are evicted. Errors: -ENOSPC the disk is nearly full; what openat(2), writev(2) and renameat(2)
 * report.
 */
int cache_write(struct symbol_cache *cache, const char *name, struct cache_pieces *pieces);

/*
 * cache_program - the build-id of this program, which distinguishes it from other versions.
 * @to: BUILD_ID_MAX. Returns its bytes; 0: it has none, and then nothing is cached.
 */
unsigned cache_program(uint8_t *to);

#endif
