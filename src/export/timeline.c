/* SPDX-License-Identifier: MIT */
/*
 * timeline.c - see timeline.h.
 *
 * Samples come in the order of time; a counting sort orders them by thread, and keeps that. A recording
 * that has only sums gets a sample for each of them.
 */
#include "src/export/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

static int compare_threads(const void *a, const void *b, void *data)
{
	const struct profile_thread *threads = data;
	const struct profile_thread *left = &threads[*(const uint32_t *)a], *right = &threads[*(const uint32_t *)b];

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

/* Sort threads with samples by PID and TID, and note their positions. @counts: by thread. */
static int place_threads(struct timeline *timeline, const struct profile_thread *threads, size_t n, size_t *counts)
{
	CLEANUP(freep) uint32_t *sorted = calloc(n + 1, sizeof *sorted);
	size_t first = 0;

	timeline->threads = calloc(n + 1, sizeof *timeline->threads);
	if (!sorted || !timeline->threads)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = (uint32_t)i;
	qsort_r(sorted, n, sizeof *sorted, compare_threads, (void *)threads);
	for (size_t i = 0; i < n; i++) {
		size_t count = counts[sorted[i]];

		counts[sorted[i]] = first;
		if (count > 0)
			timeline->threads[timeline->n_threads++] = (struct timeline_thread){ &threads[sorted[i]], first,
											     count };
		first += count;
	}
	return 0;
}

static int sort_samples(struct timeline *timeline, const struct profile_thread *threads, size_t n_threads,
			size_t n_samples)
{
	CLEANUP(freep) size_t *counts = calloc(n_threads + 1, sizeof *counts);
	int r;

	if (n_samples > UINT32_MAX)
		return -EOVERFLOW;
	timeline->order = calloc(n_samples + 1, sizeof *timeline->order);
	if (!counts || !timeline->order)
		return -ENOMEM;
	for (size_t i = 0; i < n_samples; i++)
		counts[timeline->samples[i].thread]++;
	r = place_threads(timeline, threads, n_threads, counts);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_samples; i++)
		timeline->order[counts[timeline->samples[i].thread]++] = (uint32_t)i;
	return 0;
}

/* ---- From totals ---- */

/* Totals of a thread are adjacent. */
static int make_samples(struct timeline *timeline, const struct profile *profile, size_t *ret_threads)
{
	size_t n = 0, allocated = 0;

	timeline->made = calloc(profile->n_totals + 1, sizeof *timeline->made);
	if (!timeline->made)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_totals; i++) {
		const struct profile_total *total = &profile->totals[i];
		struct profile_thread *last = n > 0 ? &timeline->made_threads[n - 1] : NULL;

		if (!last || last->pid != total->pid || last->tid != total->tid) {
			const struct profile_thread *known = profile_find_thread(profile, total->pid, total->tid);

			if (grow(&timeline->made_threads, n, &allocated, sizeof *timeline->made_threads) < 0)
				return -ENOMEM;
			timeline->made_threads[n++] = known ? *known
							    : (struct profile_thread){ total->pid, total->tid, "", "" };
		}
		timeline->made[i] = (struct profile_sample){ .thread = (int32_t)n - 1,
							     .stack = total->stack,
							     .weight = timeline->has_weights ? total->weight
											     : total->samples };
	}
	*ret_threads = n;
	return 0;
}

static int fill(struct timeline *timeline, const struct profile *profile)
{
	size_t n_threads;
	int r;

	timeline->has_weights = profile_has_weights(profile);
	timeline->has_times = profile->n_samples > 0;
	timeline->samples = profile->samples;
	if (timeline->has_times)
		return sort_samples(timeline, profile->threads, profile->n_threads, profile->n_samples);
	r = make_samples(timeline, profile, &n_threads);
	if (r < 0)
		return r;
	timeline->samples = timeline->made;
	return sort_samples(timeline, timeline->made_threads, n_threads, profile->n_totals);
}

int timeline_new(const struct profile *profile, const struct export_options *options, struct timeline **ret)
{
	CLEANUP(timeline_freep) struct timeline *timeline = calloc(1, sizeof *timeline);
	int r;

	if (!timeline)
		return -ENOMEM;
	r = fold_stacks(profile, options, &timeline->tree, &timeline->nodes);
	if (r >= 0)
		r = fill(timeline, profile);
	if (r < 0)
		return r;
	*ret = TAKE(timeline);
	return 0;
}

void timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return;
	call_tree_free(timeline->tree);
	free(timeline->nodes);
	free(timeline->order);
	free(timeline->threads);
	free(timeline->made);
	free(timeline->made_threads);
	free(timeline);
}

void timeline_freep(struct timeline **timeline)
{
	timeline_free(*timeline);
}

uint64_t timeline_origin(const struct profile *profile)
{
	uint64_t started = profile->run.started_ns, first = profile->samples[0].time_ns;

	return started > 0 && started < first ? started : first;
}

void timeline_path(const struct timeline *timeline, uint32_t node, uint32_t *to)
{
	const struct node *nodes = timeline->tree->nodes;

	for (; node != 0; node = nodes[node].parent)
		to[nodes[node].depth - 1] = nodes[node].label;
}

uint32_t timeline_depth(const struct timeline *timeline)
{
	uint32_t depth = 0;

	for (size_t i = 0; i < timeline->tree->n_nodes; i++)
		depth = MAX(depth, timeline->tree->nodes[i].depth);
	return depth;
}
