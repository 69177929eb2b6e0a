/* SPDX-License-Identifier: MIT */
/* sums.c - see sums.h.
 *
 * Each cell's stack is walked once. A stamp per group has the last path that
 * contains it, so that it counts once in it.
 */
#include "src/top/sums.h"

#include <errno.h>
#include <string.h>

enum { FIRST_PATH = 512 };

void sums_reset(struct sums *sums, const struct sums_options *options)
{
	sums->options = *options;
	if (sums->n_groups > 0)
		memset(sums->groups, 0, sums->n_groups * sizeof *sums->groups);
	if (sums->n_threads > 0)
		memset(sums->threads, 0, sums->n_threads * sizeof *sums->threads);
	sums->n_nodes = 0;
	id_map_clear(&sums->node_index);
	sums->samples = sums->weight = sums->stamp = 0;
}

void sums_done(struct sums *sums)
{
	free(sums->groups);
	free(sums->threads);
	free(sums->nodes);
	id_map_done(&sums->node_index);
	free(sums->path);
	memset(sums, 0, sizeof *sums);
}

/* Grow to n elements; new ones are zero. */
static int widen(void *array, size_t *n, size_t wanted, size_t size)
{
	void **place = array;
	char *moved;

	if (wanted <= *n)
		return 0;
	wanted = MAX(wanted, *n + *n / 2);
	moved = reallocarray(*place, wanted, size);
	if (!moved)
		return -ENOMEM;
	memset(moved + *n * size, 0, (wanted - *n) * size);
	*place = moved;
	*n = wanted;
	return 0;
}

static bool is_shown(const struct sums_options *options, const struct profile_frame *frame)
{
	switch (frame->kind) {
	case FRAME_NATIVE:
		return options->show_native;
	case FRAME_KERNEL:
		return options->show_kernel && options->show_native;
	default:
		return true;
	}
}

/* Put the groups of a stack as shown, outermost first, into sums->path. */
static int read_path(struct sums *sums, const struct profile *profile, const struct groups *groups, uint32_t stack,
		     size_t *ret)
{
	const struct sums_options *options = &sums->options;
	size_t n = 0, n_shown = 0;

	for (;;) {
		if (sums->path_allocated > 0)
			n = profile_path(profile, (int32_t)stack - 1, options->show_interpreter, sums->path,
					 sums->path_allocated);
		if (n < sums->path_allocated)
			break;
		if (grow(&sums->path, MAX(n, (size_t)FIRST_PATH), &sums->path_allocated, sizeof *sums->path) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		int32_t frame = sums->path[i];

		if (is_shown(options, &profile->frames[frame]))
			sums->path[n_shown++] = (int32_t)groups->of_frame[frame];
	}
	if (n_shown == 0)
		sums->path[n_shown++] = n > 0 ? GROUP_NO_PYTHON : GROUP_NO_STACK;
	*ret = n_shown;
	return 0;
}

/* Add the callers and callees of the focus on one path. */
static void add_neighbours(struct sums *sums, size_t n_path, uint64_t weight)
{
	for (size_t i = 0; i < n_path; i++) {
		struct sum *caller, *callee;

		if ((uint32_t)sums->path[i] != sums->options.focus)
			continue;
		caller = i > 0 ? &sums->groups[sums->path[i - 1]] : NULL;
		callee = i + 1 < n_path ? &sums->groups[sums->path[i + 1]] : NULL;
		if (caller && caller->caller_stamp != sums->stamp) {
			caller->caller_stamp = sums->stamp;
			caller->as_caller += weight;
		}
		if (callee && callee->callee_stamp != sums->stamp) {
			callee->callee_stamp = sums->stamp;
			callee->as_callee += weight;
		}
	}
}

static void add_groups(struct sums *sums, size_t n_path, uint64_t weight)
{
	for (size_t i = 0; i < n_path; i++) {
		struct sum *sum = &sums->groups[sums->path[i]];

		if (sum->total_stamp == sums->stamp)
			continue;
		sum->total_stamp = sums->stamp;
		sum->total += weight;
	}
	sums->groups[sums->path[n_path - 1]].self += weight;
	if (sums->options.focus != SUMS_NO_FOCUS)
		add_neighbours(sums, n_path, weight);
}

static int find_node(struct sums *sums, int32_t parent, uint32_t group, int32_t *ret)
{
	uint64_t key = ((uint64_t)(uint32_t)(parent + 1) << 32 | group) + 1;
	const struct id_slot *slot = id_map_find(&sums->node_index, key);

	if (slot) {
		*ret = (int32_t)slot->id;
		return 0;
	}
	if (grow(&sums->nodes, sums->n_nodes, &sums->nodes_allocated, sizeof *sums->nodes) < 0 ||
	    id_map_add(&sums->node_index, key, (uint32_t)sums->n_nodes) < 0)
		return -ENOMEM;
	*ret = (int32_t)sums->n_nodes;
	sums->nodes[sums->n_nodes++] = (struct tree_node){ .parent = parent,
							   .group = group,
							   .depth = parent < 0 ? 0 : sums->nodes[parent].depth + 1 };
	if (parent >= 0)
		sums->nodes[parent].has_children = true;
	return 0;
}

static int add_tree(struct sums *sums, size_t n_path, uint64_t weight)
{
	int32_t node = -1;

	for (size_t i = 0; i < n_path; i++) {
		if (find_node(sums, node, (uint32_t)sums->path[i], &node) < 0)
			return -ENOMEM;
		sums->nodes[node].total += weight;
	}
	sums->nodes[node].self += weight;
	return 0;
}

static int add_cell(struct sums *sums, const struct cell *cell, const struct profile *profile,
		    const struct groups *groups)
{
	size_t n_path;
	int r;

	r = widen(&sums->threads, &sums->n_threads, (size_t)cell->thread + 1, sizeof *sums->threads);
	if (r < 0)
		return r;
	sums->threads[cell->thread] += cell->weight;
	if (sums->options.thread != SUMS_ALL_THREADS && sums->options.thread != cell->thread)
		return 0;
	sums->samples += cell->samples;
	sums->weight += cell->weight;
	sums->stamp++;
	r = read_path(sums, profile, groups, cell->stack, &n_path);
	if (r < 0)
		return r;
	add_groups(sums, n_path, cell->weight);
	return sums->options.tree ? add_tree(sums, n_path, cell->weight) : 0;
}

int sums_add(struct sums *sums, const struct cells *cells, const struct profile *profile, const struct groups *groups)
{
	int r;

	r = widen(&sums->groups, &sums->n_groups, groups->n, sizeof *sums->groups);
	for (size_t i = 0; i < cells->n && r >= 0; i++)
		r = add_cell(sums, &cells->items[i], profile, groups);
	return r;
}
