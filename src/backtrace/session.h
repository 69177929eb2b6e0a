/* SPDX-License-Identifier: MIT */
/* session.h - data shared by several backtraces: files, and their names. Private. */
#ifndef PROBING_BACKTRACE_SESSION_H
#define PROBING_BACKTRACE_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "src/backtrace/backtrace.h"
#include "symbolize/symbolize.h"

struct backtrace_session {
	struct module_table *modules;
	struct symbol_cache *cache; /* NULL: none */
	struct symbol_search *search;
	struct session_symbols {
		struct symbol_module *symbols; /* NULL: none to be had */
		bool tried;
	} * symbols; /* by a module's id */
	size_t n_symbols;
};

/* session_symbols - of a module of the session's table; *ret is NULL where there are none. -ENOMEM. */
int session_symbols(struct backtrace_session *session, struct module *module, struct symbol_module **ret);

#endif
