/* SPDX-License-Identifier: MIT */
/* sums.h - self and total time by group, by thread, and in a tree of calls. Private.
 *
 * Sums only grow: new samples are added to them, so that a
 * refresh costs only the new ones.
 */
#ifndef PROBING_TOP_SUMS_H
#define PROBING_TOP_SUMS_H

#include "src/top/cells.h"
#include "src/top/groups.h"

enum { SUMS_NO_FOCUS = UINT32_MAX, SUMS_ALL_THREADS = UINT32_MAX };

/* Options of counting. */
struct sums_options {
	bool show_native, show_kernel, show_interpreter;
	bool tree;       /* fill in the tree too */
	uint32_t thread; /* of this one alone; SUMS_ALL_THREADS */
	uint32_t focus;  /* whose callers and callees: a group; SUMS_NO_FOCUS */
};

/* All in nanoseconds. A recursive function counts once in a total. */
struct sum {
	uint64_t self, total;
	uint64_t as_caller, as_callee; /* of the focus */
	uint64_t total_stamp, caller_stamp, callee_stamp;
};

/* A node of the tree of calls. Parents come before children. */
struct tree_node {
	int32_t parent; /* index; -1: outermost */
	uint32_t group, depth;
	uint64_t self, total;
	bool has_children;
};

struct sums {
	struct sums_options options;
	struct sum *groups; /* by group */
	size_t n_groups;
	uint64_t *threads; /* by thread */
	size_t n_threads;
	struct tree_node *nodes;
	size_t n_nodes, nodes_allocated;
	struct id_map node_index;
	uint64_t samples, weight; /* counted ones */
	uint64_t stamp;           /* of the current path */
	int32_t *path;
	size_t path_allocated;
};

/* Empty, and counting this from now on. */
void sums_reset(struct sums *sums, const struct sums_options *options);

/* sums_add - count cells. @groups knows all frames. -ENOMEM. */
int sums_add(struct sums *sums, const struct cells *cells, const struct profile *profile, const struct groups *groups);
void sums_done(struct sums *sums);

#endif
