/* SPDX-License-Identifier: MIT */
/* session.c - see session.h.
 *
 * Forked workers map the same files: each is opened, and its debug information
 * uncompressed, once. No server is used for debug files, because the user waits.
 */
#include "src/backtrace/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { MANY_MODULES = 10000 }; /* a few MB */

/* A missing cache only makes lookups slower. */
static int open_cache(struct backtrace_session *session)
{
	return symbol_cache_open(&session->cache) == -ENOMEM ? -ENOMEM : 0;
}

int backtrace_session_new(bool use_cache, struct backtrace_session **ret)
{
	struct symbol_search_options options = { .is_brief = true };
	CLEANUP(backtrace_session_freep) struct backtrace_session *session = calloc(1, sizeof *session);
	int r;

	if (!session)
		return -ENOMEM;
	r = module_table_new(&session->modules);
	if (r >= 0 && use_cache)
		r = open_cache(session);
	options.cache = session->cache;
	if (r >= 0)
		r = symbol_search_new(&options, &session->search);
	if (r < 0)
		return r;
	*ret = TAKE(session);
	return 0;
}

void backtrace_session_free(struct backtrace_session *session)
{
	if (!session)
		return;
	for (size_t i = 0; i < session->n_symbols; i++)
		symbol_module_free(session->symbols[i].symbols);
	free(session->symbols);
	symbol_search_free(session->search);
	symbol_cache_free(session->cache);
	module_table_free(session->modules);
	free(session);
}

void backtrace_session_freep(struct backtrace_session **session)
{
	backtrace_session_free(*session);
}

bool backtrace_session_is_large(const struct backtrace_session *session)
{
	return module_table_size(session->modules) > MANY_MODULES;
}

void backtrace_session_keep(struct backtrace_session *session)
{
	for (size_t i = 0; i < session->n_symbols; i++)
		if (session->symbols[i].symbols)
			symbol_module_keep(session->symbols[i].symbols);
}

/* Make room for all modules known by now. */
static int make_room(struct backtrace_session *session)
{
	size_t n = module_table_size(session->modules);
	struct session_symbols *more;

	if (n <= session->n_symbols)
		return 0;
	more = reallocarray(session->symbols, n, sizeof *more);
	if (!more)
		return -ENOMEM;
	memset(more + session->n_symbols, 0, (n - session->n_symbols) * sizeof *more);
	session->symbols = more;
	session->n_symbols = n;
	return 0;
}

int session_symbols(struct backtrace_session *session, struct module *module, struct symbol_module **ret)
{
	struct session_symbols *entry;
	int r;

	r = make_room(session);
	if (r < 0)
		return r;
	entry = &session->symbols[module->id];
	if (!entry->tried) {
		struct build_id id = { .n_bytes = 0 };

		entry->tried = true;
		(void)module_build_id(module, &id); /* without a build-id, only the path identifies it */
		r = symbol_module_open_mapped(module, &id, session->search, &entry->symbols);
		if (r == -ENOMEM)
			return r;
	}
	*ret = entry->symbols;
	return 0;
}
