/* SPDX-License-Identifier: MIT */
/* search.h - where separate debug files are looked for. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_SEARCH_H
#define PROBING_SYMBOLIZE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "symbolize/effort.h"
#include "symbolize/symbolize.h"

/* What a module, or a debug file that refers to a common one, says of the file it wants. */
struct search_wanted {
	const char *path; /* of the file that refers to it, as the process names it */
	const char *root; /* in front of path, where the process sees it: "/proc/12/root"; NULL: none */
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
 * search_cached - the file of a module in the cache. @name: of cache_key_name(). @ret: a descriptor, the caller's.
 * Errors: -ENOENT none, or it may not be used: what folders and servers have is not part of a key.
 */
int search_cached(struct symbol_search *search, const char *name, int *ret);

/* Whether search_cached() can ever find anything; where it is written, NULL: nowhere. */
bool search_has_cache(const struct symbol_search *search);
struct symbol_cache *search_cache(const struct symbol_search *search);
bool search_is_brief(const struct symbol_search *search);

/* See symbol_search_options; NULL: none, or @search is NULL. */
const char *search_scratch_folder(const struct symbol_search *search);

/*
 * search_may_harm_link - the same as search_may_harm(), of a common debug file that a search has not found.
 * Where another process opens files, it is asked.
 */
bool search_may_harm_link(struct symbol_search *search, const char *beside, const char *name);

/*
 * search_may_harm - whether opening a file that debug information refers to could block, act, or exhaust memory:
 * something is there, and it is not a regular file, or does not pass the fence. libdw opens such names without looking.
 * @beside: a file in whose folder a relative name is looked up.
 */
bool search_may_harm(const char *beside, const char *name);

/* One more place of a module has no name because of a limit; @is_first: of that module. @search may be NULL. */
void search_count_limited(struct symbol_search *search, const char *path, enum symbol_limit limit, bool is_first);

/* What all modules together may cost; the search's. NULL: @search is NULL. */
struct effort_budget *search_budget(struct symbol_search *search);

#endif
