/* SPDX-License-Identifier: MIT */
/* tree.c - the call tree's nodes: a table by (parent, label), sums and order.
 *
 * Invariants: a node's parent has a smaller index; node 0 is the root and
 * has no parent, hence 0 also means "none" in links and in the hash table.
 * No function is recursive: stacks may be tens of thousands of frames deep.
 * Until call_tree_finish() next_sibling chains the nodes of one slot of the table: with millions of them a sparse
 * table would be a tenth of all memory.
 */
#include "src/export/tree.h"

#include <errno.h>

#include "base/util.h"

enum { FIRST_SLOTS = 1024, NODES_OF_SLOT = 2 };

static uint32_t *slot_of(const struct call_tree *tree, uint32_t parent, uint32_t label)
{
	return &tree->slots[mix64((uint64_t)parent << 32 | label) & (tree->n_slots - 1)];
}

/* 0: not found. */
static uint32_t find(const struct call_tree *tree, uint32_t parent, uint32_t label)
{
	uint32_t at = *slot_of(tree, parent, label);

	while (at != 0 && (tree->nodes[at].parent != parent || tree->nodes[at].label != label))
		at = tree->nodes[at].next_sibling;
	return at;
}

static void chain(struct call_tree *tree, uint32_t at)
{
	struct node *node = &tree->nodes[at];
	uint32_t *slot = slot_of(tree, node->parent, node->label);

	node->next_sibling = *slot;
	*slot = at;
}

static int grow_slots(struct call_tree *tree)
{
	size_t wanted = tree->n_slots ? tree->n_slots * 2 : FIRST_SLOTS;
	uint32_t *slots;

	slots = calloc(wanted, sizeof *slots);
	if (!slots)
		return -ENOMEM;
	free(tree->slots);
	tree->slots = slots;
	tree->n_slots = wanted;
	for (size_t i = 1; i < tree->n_nodes; i++)
		chain(tree, (uint32_t)i);
	return 0;
}

static int add_node(struct call_tree *tree, uint32_t parent, uint32_t label)
{
	int r;

	if (tree->n_nodes >= UINT32_MAX)
		return -EOVERFLOW;
	r = grow(&tree->nodes, tree->n_nodes, &tree->n_allocated, sizeof *tree->nodes);
	if (r < 0)
		return r;
	tree->nodes[tree->n_nodes] = (struct node){
		.parent = parent,
		.label = label,
		.depth = tree->nodes[parent].depth + 1,
	};
	chain(tree, (uint32_t)tree->n_nodes++);
	return 0;
}

int call_tree_enter(struct call_tree *tree, uint32_t parent, uint32_t label, uint32_t *ret)
{
	uint32_t found;
	int r = 0;

	if (tree->n_nodes >= tree->n_slots * NODES_OF_SLOT)
		r = grow_slots(tree);
	if (r < 0)
		return r;
	found = find(tree, parent, label);
	if (found == 0) {
		r = add_node(tree, parent, label);
		if (r < 0)
			return r;
		found = (uint32_t)tree->n_nodes - 1;
	}
	*ret = found;
	return 0;
}

static void sum_up(struct call_tree *tree)
{
	for (size_t i = tree->n_nodes; i-- > 1;) {
		struct node *parent = &tree->nodes[tree->nodes[i].parent];

		parent->samples += tree->nodes[i].samples;
		parent->weight += tree->nodes[i].weight;
	}
}

bool call_tree_is_small(const struct call_tree *tree, uint32_t node)
{
	const struct node *root = &tree->nodes[0], *it = &tree->nodes[node];
	double whole = (double)(root->weight > 0 ? root->weight : root->samples);

	return (tree->rest == 0 || node != tree->rest) &&
	       (double)(root->weight > 0 ? it->weight : it->samples) < tree->min_share * whole;
}

/* Add the time of dropped nodes to their callers' self time. The root is no function, so its share gets a node. */
static int leave_out_small(struct call_tree *tree)
{
	struct node rest = { 0 };
	uint32_t label;
	int r;

	for (size_t i = 1; i < tree->n_nodes; i++) {
		const struct node *node = &tree->nodes[i];

		if (node->parent != 0 || !call_tree_is_small(tree, (uint32_t)i))
			continue;
		rest.samples += node->samples;
		rest.weight += node->weight;
	}
	if (rest.samples == 0 && rest.weight == 0)
		return 0;
	r = labels_add_group(&tree->labels, "[rest]", -1, &label);
	if (r >= 0)
		r = call_tree_enter(tree, 0, label, &tree->rest);
	if (r < 0)
		return r;
	tree->nodes[tree->rest].samples = rest.samples;
	tree->nodes[tree->rest].weight = rest.weight;
	return 0;
}

/*
 * Link every node into its parent's list, sorted by text: insert nodes in front, label by label from the last to the
 * first. Until then, next_sibling links the nodes of a label.
 */
static int link_children(struct call_tree *tree)
{
	CLEANUP(freep) uint32_t *order = NULL;
	CLEANUP(freep) uint32_t *of_label = NULL;
	int r;

	r = labels_order(&tree->labels, &order);
	if (r < 0)
		return r;
	of_label = calloc(tree->labels.n_items + 1, sizeof *of_label);
	if (!of_label)
		return -ENOMEM;
	for (size_t i = 1; i < tree->n_nodes; i++) {
		struct node *node = &tree->nodes[i];

		node->next_sibling = 0;
		if (call_tree_is_small(tree, (uint32_t)i))
			continue;
		node->next_sibling = of_label[node->label];
		of_label[node->label] = (uint32_t)i;
	}
	for (size_t i = tree->labels.n_items; i-- > 0;) {
		for (uint32_t at = of_label[order[i]], next; at != 0; at = next) {
			struct node *parent = &tree->nodes[tree->nodes[at].parent];

			next = tree->nodes[at].next_sibling;
			tree->nodes[at].next_sibling = parent->first_child;
			parent->first_child = at;
		}
	}
	return 0;
}

int call_tree_finish(struct call_tree *tree, double min_share)
{
	int r = 0;

	sum_up(tree);
	tree->min_share = min_share;
	if (min_share > 0)
		r = leave_out_small(tree);
	free(TAKE(tree->slots)); /* unused from now on, and large for many stacks */
	tree->n_slots = 0;
	return r < 0 ? r : link_children(tree);
}

static int add_root(struct call_tree *tree, const char *nothing)
{
	uint32_t label;
	int r;

	r = labels_add_group(&tree->labels, "all", -1, &label);
	if (r >= 0)
		r = labels_add_group(&tree->labels, nothing, -1, &tree->no_stack);
	if (r >= 0)
		r = grow(&tree->nodes, 0, &tree->n_allocated, sizeof *tree->nodes);
	if (r < 0)
		return r;
	tree->nodes[0] = (struct node){ .label = label };
	tree->n_nodes = 1;
	return 0;
}

int call_tree_new(const struct profile *profile, const struct label_options *options, struct call_tree **ret)
{
	CLEANUP(call_tree_freep) struct call_tree *tree = NULL;
	int r;

	tree = calloc(1, sizeof *tree);
	if (!tree)
		return -ENOMEM;
	r = labels_init(profile, options, &tree->labels);
	if (r < 0)
		return r;
	r = add_root(tree, profile_nothing(profile));
	if (r < 0)
		return r;
	*ret = TAKE(tree);
	return 0;
}

void call_tree_free(struct call_tree *tree)
{
	if (!tree)
		return;
	labels_done(&tree->labels);
	free(tree->nodes);
	free(tree->slots);
	free(tree);
}

void call_tree_freep(struct call_tree **tree)
{
	call_tree_free(*tree);
}

uint64_t call_tree_self_samples(const struct call_tree *tree, uint32_t node)
{
	uint64_t samples = tree->nodes[node].samples;

	for (uint32_t child = tree->nodes[node].first_child; child != 0; child = tree->nodes[child].next_sibling)
		samples -= tree->nodes[child].samples;
	return samples;
}

uint64_t call_tree_self_weight(const struct call_tree *tree, uint32_t node)
{
	uint64_t weight = tree->nodes[node].weight;

	for (uint32_t child = tree->nodes[node].first_child; child != 0; child = tree->nodes[child].next_sibling)
		weight -= tree->nodes[child].weight;
	return weight;
}

uint32_t call_tree_next(const struct call_tree *tree, uint32_t node, bool enter)
{
	if (enter && tree->nodes[node].first_child != 0)
		return tree->nodes[node].first_child;
	while (node != 0 && tree->nodes[node].next_sibling == 0)
		node = tree->nodes[node].parent;
	return tree->nodes[node].next_sibling;
}
