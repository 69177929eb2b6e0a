/* SPDX-License-Identifier: MIT */
/* search.h - where separate debug files are looked for. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_SEARCH_H
#define PROBING_SYMBOLIZE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "symbolize/effort.h"
#include "symbolize/symbolize.h"

/* The file that a module, or a debug file with a reference to a common one, needs. */
struct search_wanted {
	const char *path; /* of the referring file, in the process' mount namespace */
	const char *root; /* prefix of path for us: "/proc/12/root"; NULL: none */
	const struct build_id *id;
	const char *link; /* .gnu_debuglink or .gnu_debugaltlink; NULL: none */
	uint32_t crc;     /* of the linked file, which counts where there is no build-id */
};

/*
 * search_debug_file - find a debug file: by build-id, by the link's name, from a server.
 * @search: NULL: only /usr/lib/debug and beside the file.
 * @ret:    a descriptor of the caller's; only of a regular file that passes the fence.
 * @ret_path: where it was, owned by the caller; "debuginfod" for a server's.
 * Errors: -ENOENT, -ENOMEM.
 */
int search_debug_file(struct symbol_search *search, const struct search_wanted *wanted, int *ret, char **ret_path);

/*
 * search_cached - a module's file in the cache. @name: of cache_key_name(). @ret: a descriptor, owned by the caller.
 * Errors: -ENOENT none, or not allowed: the contents of folders and servers are not part of a key.
 */
int search_cached(struct symbol_search *search, const char *name, int *ret);

/* Whether search_cached() can ever find anything; where it is written, NULL: nowhere. */
bool search_has_cache(const struct symbol_search *search);
struct symbol_cache *search_cache(const struct symbol_search *search);
bool search_is_brief(const struct symbol_search *search);

/* See symbol_search_options; NULL: none, or @search is NULL. */
const char *search_scratch_folder(const struct symbol_search *search);

/*
 * search_may_harm_link - as search_may_harm(), for a common debug file that a search has not found.
 * If another process opens files, it decides.
 */
bool search_may_harm_link(struct symbol_search *search, const char *beside, const char *name);

/*
 * search_may_harm - whether opening a file that debug information refers to could block, act, or exhaust memory:
 * something is there, and it is not a regular file, or does not pass the fence. libdw opens such names without looking.
 * @beside: a file in whose folder a relative name is looked up.
 */
bool search_may_harm(const char *beside, const char *name);

/* Count one more address of a module without a name because of a limit; @is_first: of that module. @search may be
 * NULL. */
void search_count_limited(struct symbol_search *search, const char *path, enum symbol_limit limit, bool is_first);

/* The common limit of all modules of the search. NULL: @search is NULL. */
struct effort_budget *search_budget(struct symbol_search *search);

#endif
