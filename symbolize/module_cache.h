/* SPDX-License-Identifier: MIT */
/* module_cache.h - one module and the cache. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_MODULE_CACHE_H
#define PROBING_SYMBOLIZE_MODULE_CACHE_H

#include "symbolize/module.h"

/*
 * module_open_cached - search the cache for a module, once; module->cached is the result.
 * A missing entry is no error. -ENOMEM.
 */
int module_open_cached(struct symbol_module *module);

/* The cached data, after module_open_cached(). Returns 1, 0 not cached or invalid; -ENOMEM, those of effort.h. */
int module_cached_symbols(struct symbol_module *module);
int module_cached_methods(struct symbol_module *module);
int module_cached_internal(struct symbol_module *module);
int module_cached_lines(struct symbol_module *module); /* of debug information that was packed */

/* The index of debug information that was not packed; false: none. */
bool module_cached_index(const struct symbol_module *module, struct debug_index *ret);

#endif
