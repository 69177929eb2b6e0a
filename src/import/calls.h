/* SPDX-License-Identifier: MIT */
/* calls.h - functions that call each other, with times, spread over the stacks in which they may have run. */
#ifndef PROBING_IMPORT_CALLS_H
#define PROBING_IMPORT_CALLS_H

#include "src/import/sink.h"

struct call_function {
	int64_t frame; /* of the sink */
	double calls, self_weight, total_weight;
	/* calls.c's own: */
	double root_calls, root_self_ns, in_ns, root_share, met_self_ns, met_calls;
	size_t first_edge, n_edges; /* its callees */
	bool is_on_path;
};

struct call_edge {
	uint32_t caller, callee;                 /* indices of functions */
	double calls, self_weight, total_weight; /* of the callee, when that one called it */
};

struct calls {
	struct call_function *functions;
	size_t n_functions, functions_allocated;
	struct call_edge *edges;
	size_t n_edges, edges_allocated;
};

/*
 * calls_spread - put a total for each stack that the calls imply.
 * Time and calls of each function are exact to the nanosecond. Their distribution over stacks is known only for
 * direct callers; further out it follows the callers' own times, which is right if a function
 * does the same for all callers.
 */
int calls_spread(struct calls *calls, struct sink *sink, pid_t pid);
void calls_done(struct calls *calls);

#endif
