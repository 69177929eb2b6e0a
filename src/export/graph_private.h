/* SPDX-License-Identifier: MIT */
/* graph_private.h - declarations for the two parts of making a call graph. */
#ifndef PROBING_EXPORT_GRAPH_PRIVATE_H
#define PROBING_EXPORT_GRAPH_PRIVATE_H

#include "src/export/graph.h"
#include "src/export/tree.h"

/*
 * graph_sort_labels - the functions of all labels.
 * @functions: receives them, "all" first, then by name; not yet summed up.
 * @of_label:  receives the function of each label.
 * Both are ended with free(3), also on failure. Errors: -ENOMEM.
 */
int graph_sort_labels(const struct profile *profile, const struct call_tree *tree, enum graph_flags flags,
		      struct graph_function **functions, size_t *ret_n, uint32_t **of_label);

#endif
