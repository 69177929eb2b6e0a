/* SPDX-License-Identifier: MIT */
/*
 * graph.c - a call tree as a call graph; see graph.h.
 *
 * The tree is walked once; each node adds to its function, to one of its lines and to the incoming call.
 * Recursion: a function's sum takes the outermost of its nodes on a path, a call's sum that of its own. The self
 * value of a node is its total minus its children's; self sums wrap around meanwhile.
 */
#include <errno.h>

#include "base/id_map.h"
#include "base/util.h"
#include "src/export/fold.h"
#include "src/export/graph_private.h"

/* A pair of functions, and the number of their calls on the current path. */
struct pair {
	uint32_t n_active;
};

/* A node of the current path, and what it adds to. */
struct step {
	uint32_t plain, function; /* function distinguishes nested calls */
	uint32_t cost;
	uint32_t call, pair; /* the root has none */
	int line;
};

struct walk {
	struct call_graph *graph;
	const struct call_tree *tree;
	enum graph_flags flags;
	uint32_t *of_label;  /* label -> function */
	uint32_t *nested_as; /* by function: its nested version; 0: not created yet */
	uint32_t *n_on_path; /* by function */
	struct pair *pairs;
	struct step *path; /* by depth */
	struct id_map cost_ids, pair_ids, call_ids;
	size_t n_pairs, n_path, functions_room, costs_room, calls_room, pairs_room, path_room;
};

static void walk_done(struct walk *walk)
{
	free(walk->of_label);
	free(walk->nested_as);
	free(walk->n_on_path);
	free(walk->pairs);
	free(walk->path);
	id_map_done(&walk->cost_ids);
	id_map_done(&walk->pair_ids);
	id_map_done(&walk->call_ids);
}

/* ---- Find or create ---- */

/* The nested version of a function, for a node below another node of the same function. */
static int nested_function(struct walk *walk, uint32_t plain, uint32_t *ret)
{
	struct call_graph *graph = walk->graph;
	int r;

	if (walk->nested_as[plain] == 0) {
		r = grow(&graph->functions, graph->n_functions, &walk->functions_room, sizeof *graph->functions);
		if (r < 0)
			return r;
		graph->functions[graph->n_functions] = (struct graph_function){
			.kind = graph->functions[plain].kind,
			.name = graph->functions[plain].name,
			.file = graph->functions[plain].file,
			.module = graph->functions[plain].module,
			.place = graph->functions[plain].place,
			.line = graph->functions[plain].line,
			.nested = true,
		};
		walk->nested_as[plain] = (uint32_t)graph->n_functions++;
	}
	*ret = walk->nested_as[plain];
	return 0;
}

/* Number a pair; new pairs get the next number. The first value is never 2^32 - 1, so no key is 0. */
static int number(struct id_map *map, uint32_t a, uint32_t b, size_t next, bool *ret_is_new, uint32_t *ret)
{
	uint64_t key = ((uint64_t)a + 1) << 32 | b;
	const struct id_slot *slot = id_map_find(map, key);
	int r;

	*ret_is_new = !slot;
	if (slot) {
		*ret = slot->id;
		return 0;
	}
	if (next >= UINT32_MAX)
		return -EOVERFLOW;
	r = id_map_add(map, key, (uint32_t)next);
	if (r < 0)
		return r;
	*ret = (uint32_t)next;
	return 0;
}

static int find_cost(struct walk *walk, struct step *step)
{
	struct call_graph *graph = walk->graph;
	bool is_new;
	int r;

	r = grow(&graph->costs, graph->n_costs, &walk->costs_room, sizeof *graph->costs);
	if (r >= 0)
		r = number(&walk->cost_ids, step->function, (uint32_t)step->line, graph->n_costs, &is_new, &step->cost);
	if (r >= 0 && is_new)
		graph->costs[graph->n_costs++] = (struct graph_cost){ .function = step->function, .line = step->line };
	return r;
}

static int find_pair(struct walk *walk, const struct step *caller, struct step *step)
{
	bool is_new;
	int r;

	r = grow(&walk->pairs, walk->n_pairs, &walk->pairs_room, sizeof *walk->pairs);
	if (r >= 0)
		r = number(&walk->pair_ids, caller->function, step->function, walk->n_pairs, &is_new, &step->pair);
	if (r >= 0 && is_new)
		walk->pairs[walk->n_pairs++] = (struct pair){ 0 };
	return r;
}

static int find_call(struct walk *walk, const struct step *caller, struct step *step)
{
	struct call_graph *graph = walk->graph;
	bool is_new;
	int r;

	r = find_pair(walk, caller, step);
	if (r >= 0)
		r = grow(&graph->calls, graph->n_calls, &walk->calls_room, sizeof *graph->calls);
	if (r >= 0)
		r = number(&walk->call_ids, step->pair, (uint32_t)caller->line, graph->n_calls, &is_new, &step->call);
	if (r >= 0 && is_new)
		graph->calls[graph->n_calls++] = (struct graph_call){
			.caller = caller->function,
			.callee = step->function,
			.line = caller->line,
		};
	return r;
}

/* ---- Traverse ---- */

static void leave(struct walk *walk, size_t depth)
{
	while (walk->n_path > depth) {
		const struct step *step = &walk->path[--walk->n_path];

		walk->n_on_path[step->plain]--;
		if (walk->n_path > 0)
			walk->pairs[step->pair].n_active--;
	}
}

static void add_own(struct walk *walk, const struct step *step, bool is_root, uint64_t weight, uint64_t samples)
{
	struct call_graph *graph = walk->graph;

	graph->functions[step->function].self_samples += samples;
	graph->functions[step->function].self_weight_ns += weight;
	graph->costs[step->cost].samples += samples;
	graph->costs[step->cost].weight += weight;
	if (is_root)
		return;
	graph->calls[step->call].self_samples += samples;
	graph->calls[step->call].self_weight_ns += weight;
}

static void add(struct walk *walk, const struct node *node, const struct step *step, unsigned n_outside)
{
	struct graph_function *function = &walk->graph->functions[step->function];
	bool is_root = walk->n_path == 0;

	if (n_outside == 0 || (function->nested && n_outside == 1)) {
		function->samples += node->samples;
		function->weight += node->weight;
	}
	add_own(walk, step, is_root, node->weight, node->samples);
	if (is_root)
		return;
	/* Subtract from the caller's self what its child used. */
	add_own(walk, &walk->path[walk->n_path - 1], walk->n_path == 1, -node->weight, -node->samples);
	if (walk->pairs[step->pair].n_active++ == 0) {
		walk->graph->calls[step->call].samples += node->samples;
		walk->graph->calls[step->call].weight += node->weight;
	}
}

/* The line of a node, if all of it is on one line. */
static int line_of(const struct call_tree *tree, uint32_t node)
{
	const struct label *label = call_tree_label(tree, node);

	return label->first_line == label->last_line ? label->first_line : 0;
}

static int enter(struct walk *walk, uint32_t at)
{
	const struct node *node = &walk->tree->nodes[at];
	struct step step = { .plain = walk->of_label[node->label], .line = line_of(walk->tree, at) };
	unsigned n_outside;
	int r;

	leave(walk, node->depth);
	step.function = step.plain;
	n_outside = walk->n_on_path[step.plain];
	r = n_outside > 0 && (walk->flags & GRAPH_NESTED) ? nested_function(walk, step.plain, &step.function) : 0;
	if (r >= 0)
		r = find_cost(walk, &step);
	if (r >= 0 && at != 0)
		r = find_call(walk, &walk->path[node->depth - 1], &step);
	if (r >= 0)
		r = grow(&walk->path, node->depth, &walk->path_room, sizeof *walk->path);
	if (r < 0)
		return r;
	add(walk, node, &step, n_outside);
	walk->n_on_path[step.plain]++;
	walk->path[walk->n_path++] = step;
	return 0;
}

static int walk_tree(struct walk *walk)
{
	uint32_t at = 0;
	int r;

	do {
		r = enter(walk, at);
		at = call_tree_next(walk->tree, at, true);
	} while (r >= 0 && at != 0);
	return r;
}

/* ---- Order ---- */

static int compare_costs(const void *a, const void *b)
{
	const struct graph_cost *left = a, *right = b;

	if (left->function != right->function)
		return left->function < right->function ? -1 : 1;
	return (left->line > right->line) - (left->line < right->line);
}

static int compare_calls(const void *a, const void *b)
{
	const struct graph_call *left = a, *right = b;

	if (left->caller != right->caller)
		return left->caller < right->caller ? -1 : 1;
	if (left->line != right->line)
		return left->line < right->line ? -1 : 1;
	return (left->callee > right->callee) - (left->callee < right->callee);
}

static int make(struct walk *walk, const struct profile *profile)
{
	struct call_graph *graph = walk->graph;
	int r;

	r = graph_sort_labels(profile, walk->tree, walk->flags, &graph->functions, &graph->n_functions,
			      &walk->of_label);
	if (r < 0)
		return r;
	walk->functions_room = graph->n_functions;
	walk->nested_as = calloc(graph->n_functions, sizeof *walk->nested_as);
	walk->n_on_path = calloc(graph->n_functions, sizeof *walk->n_on_path);
	if (!walk->nested_as || !walk->n_on_path)
		return -ENOMEM;
	r = walk_tree(walk);
	if (r < 0)
		return r;
	qsort(graph->costs, graph->n_costs, sizeof *graph->costs, compare_costs);
	if (graph->n_calls > 0)
		qsort(graph->calls, graph->n_calls, sizeof *graph->calls, compare_calls);
	return 0;
}

int call_graph_new(const struct profile *profile, const struct export_options *options, enum graph_flags flags,
		   struct call_graph **ret)
{
	CLEANUP(call_graph_freep) struct call_graph *graph = calloc(1, sizeof *graph);
	CLEANUP(walk_done) struct walk walk = { .graph = graph, .flags = flags };
	struct export_options callers_first = *options;
	int r;

	if (!graph)
		return -ENOMEM;
	callers_first.inverted = false; /* the calls are the same in both directions */
	r = fold_profile(profile, &callers_first, false, &graph->tree);
	if (r < 0)
		return r;
	walk.tree = graph->tree;
	r = make(&walk, profile);
	if (r < 0)
		return r;
	*ret = TAKE(graph);
	return 0;
}

void call_graph_free(struct call_graph *graph)
{
	if (!graph)
		return;
	call_tree_free(graph->tree);
	free(graph->functions);
	free(graph->costs);
	free(graph->calls);
	free(graph);
}

void call_graph_freep(struct call_graph **graph)
{
	call_graph_free(*graph);
}
