/* SPDX-License-Identifier: MIT */
/* merge.c - all stacks as one tree, and as classes of equal ones.
 *
 * Invariants: a node's parent has a smaller index; node 0 is the root, so 0 also means "none". No function is recursive.
 * When the tree is complete, the stacks of each node stand side by side in `order`, so that the ranks of a branch cost
 * as much as there are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cluster/private.h"

/* A stack that goes into the tree. */
struct path {
	const struct cluster_frame *frames; /* of the cluster */
	const uint32_t *numbers;
	size_t n;
	bool is_folded; /* runs of equal frames count as one */
	bool no_native;
};

/* ---- What of a stack is shown ---- */

/* Without the start of the program: what is before its first frame that is neither native nor of runpy's. */
static struct path path_of(const struct cluster *cluster, const struct cluster_thread *thread,
			   const struct tree_options *options)
{
	struct path path = { .frames = cluster->frames,
			     .numbers = thread->frames,
			     .n = thread->n_frames,
			     .is_folded = !options->whole,
			     .no_native = options->no_native };
	size_t skipped = 0;

	while (!options->whole && skipped < path.n && frame_is_start(&path.frames[path.numbers[skipped]]))
		skipped++;
	if (skipped == path.n)
		return path; /* of native code alone, or at the start itself */
	path.numbers += skipped;
	path.n -= skipped;
	return path;
}

static bool is_shown(const struct path *path, size_t i)
{
	const struct cluster_frame *frame = &path->frames[path->numbers[i]];

	return !path->no_native || frame->kind == FRAME_PYTHON || frame->is_builtin;
}

/* ---- Nodes ---- */

static int add_node(struct cluster_tree *tree, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	int r = grow(&tree->nodes, tree->n_nodes, &tree->nodes_allocated, sizeof *tree->nodes);

	if (r < 0)
		return r;
	tree->nodes[tree->n_nodes] = (struct tree_node){ .parent = parent, .frame = frame };
	*ret = (uint32_t)tree->n_nodes++;
	return 0;
}

static int enter(struct cluster_tree *tree, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	uint64_t key = (uint64_t)parent << 32 | (frame + 1);
	const struct id_slot *slot = id_map_find(&tree->by_place, key);
	int r;

	if (slot) {
		*ret = slot->id;
		return 0;
	}
	r = add_node(tree, parent, frame, ret);
	return r < 0 ? r : id_map_add(&tree->by_place, key, *ret);
}

static void end_run(struct tree_node *node, uint32_t length)
{
	node->least = node->least == 0 ? length : MIN(node->least, length);
	node->most = MAX(node->most, length);
}

static int add_path(struct cluster_tree *tree, const struct path *path, uint32_t *ret)
{
	uint32_t at = 0, length = 0;
	int r;

	for (size_t i = 0; i < path->n; i++) {
		if (!is_shown(path, i))
			continue;
		if (path->is_folded && at != 0 && tree->nodes[at].frame == path->numbers[i]) {
			length++;
			continue;
		}
		if (at != 0)
			end_run(&tree->nodes[at], length);
		r = enter(tree, at, path->numbers[i], &at);
		if (r < 0)
			return r;
		length = 1;
	}
	if (at != 0)
		end_run(&tree->nodes[at], length);
	*ret = at;
	return 0;
}

/* ---- Classes ---- */

static bool tells_classes(const struct path *path, size_t i, bool has_python)
{
	const struct cluster_frame *frame = &path->frames[path->numbers[i]];

	return !has_python || frame->kind == FRAME_PYTHON || frame->is_builtin;
}

static int add_to_class(struct cluster_tree *tree, const struct path *path, char state, uint32_t stack, uint32_t *ret)
{
	CLEANUP(freep) uint32_t *key = calloc(path->n + 1, sizeof *key);
	bool has_python = false;
	size_t n = 0;
	int r;

	if (!key)
		return -ENOMEM;
	for (size_t i = 0; i < path->n; i++)
		has_python |= path->frames[path->numbers[i]].kind == FRAME_PYTHON;
	key[n++] = state == 'T';
	for (size_t i = 0; i < path->n; i++)
		if (tells_classes(path, i, has_python) &&
		    (!path->is_folded || n == 1 || key[n - 1] != path->numbers[i]))
			key[n++] = path->numbers[i];
	r = grow(&tree->classes, tree->n_classes, &tree->classes_allocated, sizeof *tree->classes);
	if (r >= 0)
		r = interner_add(&tree->class_keys, key, n * sizeof *key, ret);
	if (r < 0)
		return r;
	if (r > 0)
		tree->classes[tree->n_classes++] = (struct tree_class){ .first = stack };
	tree->classes[*ret].n_stacks++;
	return 0;
}

static int compare(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int compare_classes(const void *a, const void *b, void *data)
{
	const uint32_t *left = a, *right = b;
	const struct cluster_tree *tree = data;
	int order = compare(tree->classes[*left].n_stacks, tree->classes[*right].n_stacks);

	return order != 0 ? order : compare(tree->classes[*left].first, tree->classes[*right].first);
}

static int sort_classes(struct cluster_tree *tree)
{
	size_t n = tree->n_classes;
	CLEANUP(freep) uint32_t *order = calloc(n + 1, sizeof *order), *place = calloc(n + 1, sizeof *place);
	struct tree_class *sorted = calloc(n + 1, sizeof *sorted);

	if (!order || !place || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof *order, compare_classes, tree);
	for (uint32_t i = 0; i < n; i++) {
		sorted[i] = tree->classes[order[i]];
		place[order[i]] = i;
	}
	for (size_t i = 0; i < tree->n_stacks; i++)
		tree->stacks[i].class = place[tree->stacks[i].class];
	free(tree->classes);
	tree->classes = sorted;
	tree->classes_allocated = n + 1;
	return 0;
}

static int arrange_classes(struct cluster_tree *tree)
{
	CLEANUP(freep) uint32_t *filled = calloc(tree->n_classes + 1, sizeof *filled);
	uint32_t next = 0;

	tree->by_class = calloc(tree->n_stacks + 1, sizeof *tree->by_class);
	if (!filled || !tree->by_class)
		return -ENOMEM;
	for (size_t i = 0; i < tree->n_classes; i++) {
		tree->classes[i].start = next;
		next += tree->classes[i].n_stacks;
	}
	for (uint32_t i = 0; i < tree->n_stacks; i++) {
		uint32_t class = tree->stacks[i].class;

		tree->by_class[tree->classes[class].start + filled[class]++] = i;
	}
	return 0;
}

/* ---- Completion ---- */

/* Count stacks; in @lowest the first of each node. */
static void count(struct cluster_tree *tree, uint32_t *lowest)
{
	for (size_t i = 0; i < tree->n_nodes; i++)
		lowest[i] = UINT32_MAX;
	for (uint32_t i = 0; i < tree->n_stacks; i++) {
		uint32_t leaf = tree->stacks[i].leaf;

		tree->nodes[leaf].n_stacks++;
		lowest[leaf] = MIN(lowest[leaf], i);
	}
	for (size_t i = tree->n_nodes; i-- > 1;) {
		uint32_t parent = tree->nodes[i].parent;

		tree->nodes[parent].n_stacks += tree->nodes[i].n_stacks;
		lowest[parent] = MIN(lowest[parent], lowest[i]);
	}
}

struct by_size {
	const struct cluster_tree *tree;
	const uint32_t *lowest;
};

static int compare_nodes(const void *a, const void *b, void *data)
{
	const struct by_size *by = data;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int order = compare(by->tree->nodes[left].n_stacks, by->tree->nodes[right].n_stacks);

	return order != 0 ? order : compare(by->lowest[left], by->lowest[right]);
}

/* Chain children, fewest stacks first. */
static int chain(struct cluster_tree *tree, const uint32_t *lowest)
{
	CLEANUP(freep) uint32_t *order = calloc(tree->n_nodes, sizeof *order);
	struct by_size by = { tree, lowest };

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->n_nodes; i++)
		order[i] = i;
	qsort_r(order, tree->n_nodes, sizeof *order, compare_nodes, &by);
	for (size_t i = tree->n_nodes; i-- > 0;) {
		struct tree_node *node = &tree->nodes[order[i]];

		if (order[i] == 0)
			continue;
		node->sibling = tree->nodes[node->parent].child;
		tree->nodes[node->parent].child = order[i];
	}
	return 0;
}

/* Give each node its part of the order: first the stacks that end there, then those of its children. */
static int arrange(struct cluster_tree *tree)
{
	CLEANUP(freep) uint32_t *filled = calloc(tree->n_nodes, sizeof *filled);
	CLEANUP(freep) uint32_t *own = calloc(tree->n_nodes, sizeof *own);

	tree->order = calloc(tree->n_stacks + 1, sizeof *tree->order);
	if (!filled || !own || !tree->order)
		return -ENOMEM;
	for (size_t i = 0; i < tree->n_stacks; i++)
		own[tree->stacks[i].leaf]++;
	for (size_t i = 0; i < tree->n_nodes; i++) {
		uint32_t next = tree->nodes[i].first + own[i];

		for (uint32_t child = tree->nodes[i].child; child != 0; child = tree->nodes[child].sibling) {
			tree->nodes[child].first = next;
			next += tree->nodes[child].n_stacks;
		}
	}
	for (uint32_t i = 0; i < tree->n_stacks; i++) {
		uint32_t leaf = tree->stacks[i].leaf;

		tree->order[tree->nodes[leaf].first + filled[leaf]++] = i;
	}
	return 0;
}

static int complete(struct cluster_tree *tree)
{
	CLEANUP(freep) uint32_t *lowest = calloc(tree->n_nodes, sizeof *lowest);
	int r;

	if (!lowest)
		return -ENOMEM;
	count(tree, lowest);
	r = chain(tree, lowest);
	if (r >= 0)
		r = arrange(tree);
	if (r >= 0)
		r = sort_classes(tree);
	return r < 0 ? r : arrange_classes(tree);
}

static int add_stack(struct cluster_tree *tree, uint32_t rank, uint32_t thread, const struct tree_options *options)
{
	const struct cluster_thread *of = &tree->cluster->ranks[rank].threads[thread];
	struct path path = path_of(tree->cluster, of, options);
	struct tree_stack *stack;
	int r = grow(&tree->stacks, tree->n_stacks, &tree->stacks_allocated, sizeof *tree->stacks);

	if (r < 0)
		return r;
	stack = &tree->stacks[tree->n_stacks];
	*stack = (struct tree_stack){ .rank = rank, .thread = thread };
	r = add_path(tree, &path, &stack->leaf);
	if (r >= 0)
		r = add_to_class(tree, &path, of->state, (uint32_t)tree->n_stacks, &stack->class);
	if (r >= 0)
		tree->n_stacks++;
	return r;
}

int cluster_merge(const struct cluster *cluster, const struct tree_options *options, struct cluster_tree *ret)
{
	struct cluster_tree tree = { .cluster = cluster };
	uint32_t root;
	int r = add_node(&tree, 0, 0, &root);

	for (uint32_t i = 0; r >= 0 && i < cluster->n_ranks; i++) {
		const struct cluster_rank *rank = &cluster->ranks[i];
		size_t n = options->all_threads ? rank->n_threads : MIN(rank->n_threads, 1);

		if (rank->status != RANK_READ || (options->job && strcmp(options->job, rank->identity.job) != 0))
			continue;
		for (uint32_t k = 0; r >= 0 && k < n; k++)
			r = add_stack(&tree, i, k, options);
	}
	if (r >= 0)
		r = complete(&tree);
	if (r < 0)
		cluster_tree_done(&tree);
	else
		*ret = tree;
	return r;
}

void cluster_tree_done(struct cluster_tree *tree)
{
	free(tree->nodes);
	free(tree->stacks);
	free(tree->order);
	free(tree->by_class);
	free(tree->classes);
	id_map_done(&tree->by_place);
	interner_done(&tree->class_keys);
	*tree = (struct cluster_tree){ 0 };
}

/* ---- The place of a stack ---- */

void frames_place(const struct cluster *cluster, const uint32_t *frames, size_t n_frames, struct stack_place *ret)
{
	*ret = (struct stack_place){ 0 };
	for (size_t i = 0; i < n_frames; i++) {
		const struct cluster_frame *frame = &cluster->frames[frames[i]];

		ret->innermost = frame;
		if (frame->is_builtin && !ret->builtin)
			ret->builtin = frame;
		if (frame->kind != FRAME_PYTHON)
			continue;
		ret->python = frame;
		ret->builtin = NULL;
		if (!frame_is_library(frame)) {
			ret->own = frame;
			ret->collective = NULL;
		} else if (!ret->collective && frame_is_collective(frame)) {
			ret->collective = frame;
		}
	}
}

void tree_place(const struct cluster_tree *tree, const struct tree_stack *stack, struct stack_place *ret)
{
	const struct cluster_thread *thread = &tree->cluster->ranks[stack->rank].threads[stack->thread];

	frames_place(tree->cluster, thread->frames, thread->n_frames, ret);
}
