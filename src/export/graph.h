/* SPDX-License-Identifier: MIT */
/* graph.h - a call tree as a call graph: functions, costs of their lines, calls between functions.
 *
 * For formats that know functions and calls, not stacks.
 */
#ifndef PROBING_EXPORT_GRAPH_H
#define PROBING_EXPORT_GRAPH_H

#include "src/export/export.h"
#include "src/export/tree.h"

/* Functions are the same if name, file and first line are, and further properties by flag. */
enum graph_flags {
	GRAPH_MODULES = 1, /* the same function of a header in two modules counts as two */
	GRAPH_LINES = 2,   /* executing lines are functions of their own */
	GRAPH_NESTED = 4,  /* a recursive call counts as another function */
};

struct graph_function {
	enum label_kind kind;
	const char *name, *file, *module; /* foreign bytes; NULL: unknown, never the name */
	const char *place; /* shown with the name unless files distinguish functions: profile_frame_place(); NULL: none */
	int line;          /* its first one, with GRAPH_LINES the executing one; 0: unknown */
	bool nested;       /* it is called by itself, directly or not */
	uint64_t self_samples, self_weight_ns;
	uint64_t samples, weight; /* once for each sample that it is in, however often */
};

struct graph_cost {
	uint32_t function;
	int line;                 /* 0: unknown */
	uint64_t samples, weight; /* of its own */
};

/* A call inside another one of the same two functions is in that one's sums. */
struct graph_call {
	uint32_t caller, callee;
	int line; /* of the caller; 0: unknown */
	uint64_t samples, weight;
	uint64_t self_samples, self_weight_ns; /* the callee's own, of all such calls */
};

struct call_graph {
	struct graph_function *functions; /* [0]: "all", which calls the outermost ones */
	struct graph_cost *costs;         /* by function and line */
	struct graph_call *calls;         /* by caller, line and callee */
	size_t n_functions, n_costs, n_calls;
	struct call_tree *tree; /* owner of names */
};

/*
 * call_graph_new - the graph of a profile, which must outlive it; ended with call_graph_free().
 * Its order depends on names alone.
 * Errors: as fold_profile().
 */
int call_graph_new(const struct profile *profile, const struct export_options *options, enum graph_flags flags,
		   struct call_graph **ret);
void call_graph_free(struct call_graph *graph);
void call_graph_freep(struct call_graph **graph);

#endif
