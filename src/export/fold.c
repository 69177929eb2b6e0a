/* SPDX-License-Identifier: MIT */
/* fold.c - merging a profile's stacks into a call tree.
 *
 * Totals are sorted by group and stack, so that each stack is walked once and
 * adjacent ones share most of their callers: a path only looks up its difference
 * from the path before it.
 */
#include "src/export/fold.h"

#include <errno.h>

#include "base/util.h"
#include "src/export/fold_order.h"
#include "src/export/path.h"

/* The state of folding. */
struct folding {
	struct call_tree *tree;
	const struct profile *profile;
	const struct profile_thread **threads; /* sorted by PID and TID */
	const struct export_options *options;
	bool by_process, by_thread;
	uint32_t *order;   /* indices of the profile's totals, in order */
	uint32_t *node_of; /* by index in order: the node; NULL: not requested */
	struct path path;  /* path of the current entry */
	/* Nodes of the last path, outermost first, without groups. */
	uint32_t *nodes;
	size_t n_nodes, nodes_allocated;
	uint32_t group; /* parent of the current group's stacks */
	size_t next_thread;
	uint32_t *node_of_stack; /* by index + 1; NULL: not requested */
};

static int enter_group(struct folding *folding, uint32_t parent, const char *name, int32_t id, uint32_t *ret)
{
	uint32_t label;
	int r;

	r = labels_add_group(&folding->tree->labels, name, id, &label);
	return r < 0 ? r : call_tree_enter(folding->tree, parent, label, ret);
}

/* Set folding->group to the node of the entry's process and thread. */
static int change_group(struct folding *folding, const struct fold_entry *last, const struct fold_entry *entry)
{
	const struct profile_thread *thread = fold_find_thread(folding->threads, folding->profile->n_threads,
							       &folding->next_thread, entry);
	uint32_t group = 0;
	int r;

	if (thread && thread->pid != entry->pid)
		thread = NULL;
	if (folding->by_process && last && last->pid == entry->pid) {
		group = folding->tree->nodes[folding->group].parent;
	} else if (folding->by_process) {
		r = enter_group(folding, 0, thread && thread->process ? thread->process : "process", entry->pid,
				&group);
		if (r < 0)
			return r;
	}
	if (thread && thread->tid != entry->tid)
		thread = NULL;
	if (folding->by_thread) {
		r = enter_group(folding, group, thread && thread->name ? thread->name : "thread", entry->tid, &group);
		if (r < 0)
			return r;
	}
	folding->group = group;
	folding->n_nodes = 0;
	return 0;
}

static int append_node(struct folding *folding, uint32_t node)
{
	int r;

	r = grow(&folding->nodes, folding->n_nodes, &folding->nodes_allocated, sizeof *folding->nodes);
	if (r < 0)
		return r;
	folding->nodes[folding->n_nodes++] = node;
	return 0;
}

/* Find or create the nodes for a path by its frames' labels; *ret is the innermost. */
static int fold_path(struct folding *folding, uint32_t *ret)
{
	struct call_tree *tree = folding->tree;
	size_t n_path = folding->path.n;
	uint32_t node = folding->group;
	size_t shared = 0;
	int r;

	while (shared < n_path && shared < folding->n_nodes &&
	       tree->nodes[folding->nodes[shared]].label == tree->labels.of_frame[folding->path.frames[shared]])
		node = folding->nodes[shared++];
	folding->n_nodes = shared;
	for (size_t i = shared; i < n_path; i++) {
		r = call_tree_enter(tree, node, tree->labels.of_frame[folding->path.frames[i]], &node);
		if (r < 0)
			return r;
		r = append_node(folding, node);
		if (r < 0)
			return r;
	}
	*ret = node;
	return 0;
}

static int find_node(struct folding *folding, int32_t stack, uint32_t *ret)
{
	int r;

	r = path_read(&folding->path, folding->profile, folding->options, stack);
	if (r < 0)
		return r;
	if (folding->path.n > 0)
		return fold_path(folding, ret);
	return call_tree_enter(folding->tree, folding->group, folding->tree->no_stack, ret);
}

static int fold_total(struct folding *folding, const struct profile_total *total, uint32_t *ret)
{
	struct node *node;
	int r;

	r = find_node(folding, total->stack, ret);
	if (r < 0)
		return r;
	if (folding->node_of_stack)
		folding->node_of_stack[total->stack + 1] = *ret;
	node = &folding->tree->nodes[*ret];
	node->samples += total->samples;
	node->weight += total->weight;
	return 0;
}

static int fold_totals(struct folding *folding)
{
	struct fold_entry last, entry;
	bool has_last = false;
	uint32_t node;
	int r;

	for (size_t i = 0; i < folding->profile->n_totals; i++) {
		const struct profile_total *total = &folding->profile->totals[folding->order[i]];

		if (total->samples == 0 && total->weight == 0)
			continue;
		entry = fold_entry_of(total, folding->by_process, folding->by_thread);
		if (!has_last || last.pid != entry.pid || last.tid != entry.tid) {
			r = change_group(folding, has_last ? &last : NULL, &entry);
			if (r < 0)
				return r;
		}
		r = fold_total(folding, total, &node);
		if (r < 0)
			return r;
		if (folding->node_of)
			folding->node_of[i] = node;
		last = entry;
		has_last = true;
	}
	return 0;
}

static bool is_by_process(const struct profile *profile, const struct export_options *options)
{
	if (options->merge_processes)
		return false;
	for (size_t i = 1; i < profile->n_totals; i++) {
		if (profile->totals[i].pid != profile->totals[0].pid)
			return true;
	}
	return false;
}

static int fold(struct folding *folding)
{
	int r;

	r = fold_sort_threads(folding->profile, &folding->threads);
	if (r >= 0)
		r = fold_order(folding->profile, folding->by_process, folding->by_thread, &folding->order);
	if (r >= 0)
		r = fold_totals(folding);
	return r < 0 ? r : call_tree_finish(folding->tree, folding->options->min_share);
}

/* Map a node that was dropped to the node that received its time. */
static void move_small(const struct call_tree *tree, uint32_t *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t node = nodes[i];

		if (node == 0)
			continue;
		while (node != 0 && call_tree_is_small(tree, node))
			node = tree->nodes[node].parent;
		nodes[i] = node != 0 ? node : tree->rest;
	}
}

static void folding_done(struct folding *folding)
{
	free(folding->threads);
	free(folding->order);
	free(folding->node_of);
	path_done(&folding->path);
	free(folding->nodes);
}

static int make_tree(struct folding *folding, bool one_line, struct call_tree **ret)
{
	CLEANUP(call_tree_freep) struct call_tree *tree = NULL;
	struct label_options label_options = { .lines = folding->options->lines, .one_line = one_line };
	int r;

	r = call_tree_new(folding->profile, &label_options, &tree);
	if (r < 0)
		return r;
	folding->tree = tree;
	r = fold(folding);
	if (r < 0)
		return r;
	*ret = TAKE(tree);
	return 0;
}

int fold_profile_places(const struct profile *profile, const struct export_options *options, bool one_line,
			struct fold_places *places, struct call_tree **ret)
{
	CLEANUP(folding_done)
	struct folding folding = {
		.profile = profile,
		.options = options,
		.by_process = is_by_process(profile, options),
		.by_thread = options->by_thread,
	};
	int r;

	folding.node_of = calloc(profile->n_totals + 1, sizeof *folding.node_of);
	if (!folding.node_of)
		return -ENOMEM;
	r = make_tree(&folding, one_line, ret);
	if (r < 0)
		return r;
	*places = (struct fold_places){
		.profile = profile,
		.order = TAKE(folding.order),
		.node_of = TAKE(folding.node_of),
		.by_process = folding.by_process,
		.by_thread = folding.by_thread,
	};
	return 0;
}

void fold_places_done(struct fold_places *places)
{
	free(places->order);
	free(places->node_of);
	*places = (struct fold_places){ 0 };
}

uint32_t fold_find(const struct fold_places *places, int32_t pid, int32_t tid, int32_t stack)
{
	struct profile_total sought = { .pid = pid, .tid = tid, .stack = stack };
	struct fold_entry wanted = fold_entry_of(&sought, places->by_process, places->by_thread);
	size_t low = 0, high = places->profile->n_totals;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct fold_entry entry = fold_entry_of(&places->profile->totals[places->order[middle]],
							places->by_process, places->by_thread);
		int order = fold_compare(&entry, &wanted);

		if (order == 0)
			return places->node_of[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

int fold_profile(const struct profile *profile, const struct export_options *options, bool one_line,
		 struct call_tree **ret)
{
	CLEANUP(folding_done)
	struct folding folding = {
		.profile = profile,
		.options = options,
		.by_process = is_by_process(profile, options),
		.by_thread = options->by_thread,
	};

	return make_tree(&folding, one_line, ret);
}

int fold_stacks(const struct profile *profile, const struct export_options *options, struct call_tree **ret,
		uint32_t **ret_nodes)
{
	CLEANUP(folding_done) struct folding folding = { .profile = profile, .options = options };
	CLEANUP(freep) uint32_t *nodes = calloc(profile->n_stacks + 1, sizeof *nodes);
	int r;

	if (!nodes)
		return -ENOMEM;
	folding.node_of_stack = nodes;
	r = make_tree(&folding, false, ret);
	if (r < 0)
		return r;
	move_small(*ret, nodes, profile->n_stacks + 1);
	*ret_nodes = TAKE(nodes);
	return 0;
}
