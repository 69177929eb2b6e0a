/* SPDX-License-Identifier: MIT */
/* tree.h - a call tree: one node per (caller's node, label).
 *
 * The recording distinguishes stacks by address; a reader wants them by
 * function.
 */
#ifndef PROBING_EXPORT_TREE_H
#define PROBING_EXPORT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/export/label.h"

/* Node 0 is the root: no function, contains everything. There may be millions, so the struct has no padding. */
struct __attribute__((packed, aligned(4))) node {
	uint32_t parent, label;
	uint32_t first_child, next_sibling; /* 0: none; siblings are sorted by text */
	uint32_t depth;                     /* 0: the root */
	uint64_t samples, weight;           /* own ones; with all callees' after call_tree_finish() */
};

struct call_tree {
	struct labels labels;
	struct node *nodes; /* callers come before their callees */
	size_t n_nodes, n_allocated;
	uint32_t *slots; /* hash table of nodes by (parent, label), until call_tree_finish(): the first of each chain; 0: none */
	size_t n_slots;
	uint32_t no_stack; /* label "[no stack]" */
	double min_share;  /* of call_tree_finish() */
	uint32_t rest;     /* node of the omitted ones right below the root; 0: none */
};

/*
 * call_tree_new - the root, and labels for all frames of a profile.
 * @profile: outlives the result.
 * @ret: ended with call_tree_free(). Errors: -ENOMEM.
 */
int call_tree_new(const struct profile *profile, const struct label_options *options, struct call_tree **ret);
void call_tree_free(struct call_tree *tree);
void call_tree_freep(struct call_tree **tree);

/*
 * call_tree_enter - the node that a caller's node calls by that label, made where missing.
 * Moves tree->nodes. Errors: -ENOMEM; -EOVERFLOW more than 2^32 nodes.
 */
int call_tree_enter(struct call_tree *tree, uint32_t parent, uint32_t label, uint32_t *ret);

/*
 * call_tree_finish - after the last node; none can be added later: sums up weights, links and sorts children.
 * @min_share: omit nodes with a smaller share of the root's weight (of its samples, if there are no weights):
 *   call_tree_next() does not return them, and their time counts for their caller. 0: omit none.
 * Errors: -ENOMEM.
 */
int call_tree_finish(struct call_tree *tree, double min_share);

/* call_tree_is_small - whether a node is left out. Then so is all that it calls. */
bool call_tree_is_small(const struct call_tree *tree, uint32_t node);

/* call_tree_self_samples - a node's own samples, after call_tree_finish(): including those of omitted callees. */
uint64_t call_tree_self_samples(const struct call_tree *tree, uint32_t node);

/* call_tree_self_weight - the same of weights. */
uint64_t call_tree_self_weight(const struct call_tree *tree, uint32_t node);

/*
 * call_tree_next - the node after this one, callers first, siblings in order.
 * @enter: false skips the node's callees.
 * Returns 0 after the last.
 */
uint32_t call_tree_next(const struct call_tree *tree, uint32_t node, bool enter);

static inline const struct label *call_tree_label(const struct call_tree *tree, uint32_t node)
{
	return &tree->labels.items[tree->nodes[node].label];
}

#endif
