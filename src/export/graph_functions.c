/* SPDX-License-Identifier: MIT */
/*
 * graph_functions.c - groups equal labels into functions.
 *
 * Labels distinguish everything that a picture shows, including lines and modules. Here one of each run of equal ones
 * remains, in the order of names; the root comes before all of them.
 */
#include <errno.h>

#include "base/text.h"
#include "base/util.h"
#include "src/export/graph_private.h"

/* Functions with equal texts are the same function. */
static int compare_strings(const char *a, const char *b)
{
	return text_compare(a ? a : "", b ? b : "");
}

static int compare_functions(const struct graph_function *a, const struct graph_function *b, enum graph_flags flags)
{
	int order = compare_strings(a->name, b->name);

	/* Without a file, compare modules. */
	if (order == 0 && !(flags & GRAPH_MODULES))
		order = compare_strings(a->file ?: a->module, b->file ?: b->module);
	if (order == 0 && (flags & GRAPH_MODULES))
		order = compare_strings(a->file, b->file);
	if (order == 0 && (flags & GRAPH_MODULES))
		order = compare_strings(a->module, b->module);
	return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

struct sorting {
	const struct graph_function *described;
	enum graph_flags flags;
};

static int compare_labels(const void *a, const void *b, void *context)
{
	const struct sorting *sorting = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int order = compare_functions(&sorting->described[left], &sorting->described[right], sorting->flags);

	return order != 0 ? order : (left > right) - (left < right);
}

/* The function of each label; groups have no frame. NULL: out of memory. */
static struct graph_function *describe(const struct profile *profile, const struct labels *labels,
				       enum graph_flags flags)
{
	struct graph_function *described = calloc(labels->n_items + 1, sizeof *described);

	for (size_t i = 0; described && i < labels->n_items; i++)
		described[i] = (struct graph_function){ .kind = labels->items[i].kind, .name = labels->items[i].text };
	for (size_t i = 0; described && i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		struct graph_function *function = &described[labels->of_frame[i]];

		function->name = *frame->name ? frame->name : "[unnamed]";
		function->file = frame->file && *frame->file ? frame->file : NULL;
		function->module = frame->module && *frame->module ? frame->module : NULL;
		function->place = profile_frame_place(frame);
		function->line = flags & GRAPH_LINES ? frame->line : frame->first_line;
	}
	return described;
}

int graph_sort_labels(const struct profile *profile, const struct call_tree *tree, enum graph_flags flags,
		      struct graph_function **functions, size_t *ret_n, uint32_t **of_label)
{
	const uint32_t root = tree->nodes[0].label;
	CLEANUP(freep) struct graph_function *described = describe(profile, &tree->labels, flags);
	CLEANUP(freep) uint32_t *order = NULL;
	struct sorting sorting = { .described = described, .flags = flags };
	size_t n_labels = tree->labels.n_items, n = 0;

	order = calloc(n_labels + 1, sizeof *order);
	*functions = calloc(n_labels + 1, sizeof **functions);
	*of_label = calloc(n_labels + 1, sizeof **of_label);
	if (!described || !order || !*functions || !*of_label)
		return -ENOMEM;
	for (size_t i = 0; i < n_labels; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, n_labels, sizeof *order, compare_labels, &sorting);
	(*functions)[n++] = described[root];
	for (size_t i = 0; i < n_labels; i++) {
		const struct graph_function *function = &described[order[i]];

		if (order[i] == root)
			continue;
		if (n == 1 || compare_functions(&(*functions)[n - 1], function, flags) != 0)
			(*functions)[n++] = *function;
		(*of_label)[order[i]] = (uint32_t)(n - 1);
	}
	*ret_n = n;
	return 0;
}
