/* SPDX-License-Identifier: MIT */
/*
 * moved.c - functions whose file has another name on the other side.
 *
 * A function that only base has and one that only head has are the same if kind and qualified name are, and no other
 * of either side matches. "<lambda>" and the like match everywhere: they follow a function with a name of its
 * own that moved the same way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/compare/function_table.h"

struct moving {
	struct compare *compare;
	uint32_t *alone; /* functions of one side only, sorted */
	size_t n_alone;
	uint32_t *to; /* by function: itself, or its counterpart */
};

static int compare_alone(const void *a, const void *b, void *context)
{
	const struct compare *compare = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct compare_function *x = &compare->functions[left], *y = &compare->functions[right];
	int order = strcmp(x->name, y->name);

	if (order == 0)
		order = (int)x->kind - (int)y->kind;
	if (order == 0)
		order = (int)x->is_seen[SIDE_HEAD] - (int)y->is_seen[SIDE_HEAD];
	return order != 0 ? order : left < right ? -1 : left > right;
}

static bool is_same_name(const struct compare *compare, uint32_t a, uint32_t b)
{
	const struct compare_function *x = &compare->functions[a], *y = &compare->functions[b];

	return x->kind == y->kind && strcmp(x->name, y->name) == 0;
}

static void list_alone(struct moving *moving)
{
	const struct compare *compare = moving->compare;

	for (size_t i = 0; i < compare->n_functions; i++) {
		const struct compare_function *function = &compare->functions[i];

		if (function->is_seen[SIDE_BASE] != function->is_seen[SIDE_HEAD] && function->place[0] &&
		    strcmp(function->name, "[no name]") != 0)
			moving->alone[moving->n_alone++] = (uint32_t)i;
	}
	qsort_r(moving->alone, moving->n_alone, sizeof *moving->alone, compare_alone, (void *)compare);
}

/* Whether a function with a unique name moved from that file to the other. */
static bool is_known_way(const struct moving *moving, const char *from, const char *to)
{
	const struct compare *compare = moving->compare;

	for (size_t i = 0; i < compare->n_functions; i++)
		if (moving->to[i] != i && strcmp(compare->functions[i].place, from) == 0 &&
		    strcmp(compare->functions[moving->to[i]].place, to) == 0)
			return true;
	return false;
}

/* Match functions [first, end) of the same name; those of base come first. */
static void match_named(struct moving *moving, size_t first, size_t end)
{
	struct compare *compare = moving->compare;
	size_t head = first;

	while (head < end && compare->functions[moving->alone[head]].is_seen[SIDE_BASE])
		head++;
	if (head == first || head == end)
		return;
	if (head - first == 1 && end - head == 1)
		moving->to[moving->alone[first]] = moving->alone[head];
	else
		compare->n_unmatched += end - first;
}

static void match_following(struct moving *moving, size_t first, size_t end)
{
	const struct compare *compare = moving->compare;

	for (size_t i = first; i < end && compare->functions[moving->alone[i]].is_seen[SIDE_BASE]; i++) {
		for (size_t j = i + 1; j < end; j++) {
			const struct compare_function *from = &compare->functions[moving->alone[i]];
			const struct compare_function *to = &compare->functions[moving->alone[j]];

			if (to->is_seen[SIDE_HEAD] && is_known_way(moving, from->place, to->place))
				moving->to[moving->alone[i]] = moving->alone[j];
		}
	}
}

static void match(struct moving *moving, bool following)
{
	const struct compare *compare = moving->compare;

	for (size_t first = 0, end; first < moving->n_alone; first = end) {
		bool fits_everywhere = compare->functions[moving->alone[first]].name[0] == '<';

		for (end = first + 1; end < moving->n_alone; end++)
			if (!is_same_name(compare, moving->alone[first], moving->alone[end]))
				break;
		if (fits_everywhere != following)
			continue;
		if (following)
			match_following(moving, first, end);
		else
			match_named(moving, first, end);
	}
}

static int note_moves(struct moving *moving, bool *ret_any)
{
	struct compare *compare = moving->compare;

	for (size_t i = 0; i < compare->n_functions; i++) {
		struct compare_function *to = &compare->functions[moving->to[i]];

		if (moving->to[i] == i)
			continue;
		*ret_any = true;
		to->is_seen[SIDE_BASE] = true;
		to->is_ambiguous |= compare->functions[i].is_ambiguous;
		compare->functions[i].is_seen[SIDE_BASE] = false;
		free(to->was_place);
		to->was_place = strdup(compare->functions[i].place);
		if (!to->was_place)
			return -ENOMEM;
	}
	return 0;
}

/* Add up weights of merged nodes. @to: old node -> new node. */
static int move_weights(struct compare *compare, const uint32_t *to)
{
	for (size_t i = 0; i < compare->n_runs; i++) {
		struct compare_run *run = &compare->runs[i];
		double *self;

		if (!run->is_recorded)
			continue;
		self = calloc(compare->n_nodes, sizeof *self);
		if (!self)
			return -ENOMEM;
		for (size_t node = 0; node < run->n_nodes; node++)
			self[to[node]] += run->self[node];
		free(run->self);
		run->self = self;
		run->n_nodes = compare->n_nodes;
	}
	return 0;
}

static int rebuild(struct moving *moving)
{
	struct compare *compare = moving->compare;
	CLEANUP(freep) struct compare_node *before = compare->nodes;
	CLEANUP(freep) uint32_t *to = NULL;
	size_t n = compare->n_nodes;
	int r;

	compare->nodes = NULL;
	compare->n_nodes = compare->nodes_allocated = 0;
	r = function_table_forget_nodes(compare);
	to = calloc(n + 1, sizeof *to);
	if (!to)
		return -ENOMEM;
	for (size_t i = 1; i < n && r >= 0; i++)
		r = function_table_enter_node(compare, to[before[i].parent], moving->to[before[i].function], &to[i]);
	return r < 0 ? r : move_weights(compare, to);
}

int function_table_match_moved(struct compare *compare)
{
	struct moving moving = { .compare = compare };
	CLEANUP(freep) uint32_t *alone = calloc(compare->n_functions + 1, sizeof *alone);
	CLEANUP(freep) uint32_t *to = calloc(compare->n_functions + 1, sizeof *to);
	bool any = false;
	int r;

	if (!alone || !to)
		return -ENOMEM;
	moving.alone = alone;
	moving.to = to;
	for (size_t i = 0; i < compare->n_functions; i++)
		to[i] = (uint32_t)i;
	list_alone(&moving);
	match(&moving, false);
	match(&moving, true);
	r = note_moves(&moving, &any);
	return r < 0 || !any ? r : rebuild(&moving);
}
