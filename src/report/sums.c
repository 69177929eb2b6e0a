/* SPDX-License-Identifier: MIT */
/* sums.c - adding up self and total time.
 *
 * Each distinct stack is walked once; a stamp per group has the last stack
 * that contains it, so that recursion counts once.
 */
#include "src/report/sums.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

struct group {
	uint64_t self, total, samples;
	uint64_t stamp; /* number of the last counted stack; 0: none */
	uint64_t place_value;
	int32_t place; /* frame with the most time; -1: none yet */
};

struct summing {
	const struct profile *profile;
	struct whole whole;
	struct grouping grouping;
	struct group *groups;   /* one more for samples without a stack */
	uint64_t *frame_values; /* time on each frame, counting each recursive occurrence */
	uint64_t stamp;
};

static void summing_done(struct summing *summing)
{
	grouping_done(&summing->grouping);
	free(summing->groups);
	free(summing->frame_values);
}

static void add_to(struct summing *summing, size_t number, const struct profile_total *total)
{
	struct group *group = &summing->groups[number];

	if (group->stamp == summing->stamp)
		return;
	group->stamp = summing->stamp;
	group->total += whole_value(&summing->whole, total);
	group->samples += total->samples;
}

static void add_path(void *data, const int32_t *path, size_t n_path, const struct profile_total *total)
{
	struct summing *summing = data;
	uint64_t value = whole_value(&summing->whole, total);
	size_t leaf = summing->grouping.n;

	summing->stamp++;
	for (size_t i = 0; i < n_path; i++) {
		leaf = summing->grouping.of_frame[path[i]];
		summing->frame_values[path[i]] += value;
		add_to(summing, leaf, total);
	}
	if (n_path == 0)
		add_to(summing, leaf, total);
	summing->groups[leaf].self += value;
}

static void find_places(struct summing *summing)
{
	for (size_t i = 0; i <= summing->grouping.n; i++)
		summing->groups[i].place = -1;
	for (size_t i = 0; i < summing->profile->n_frames; i++) {
		struct group *group = &summing->groups[summing->grouping.of_frame[i]];

		if (group->place >= 0 && summing->frame_values[i] <= group->place_value)
			continue;
		group->place = (int32_t)i;
		group->place_value = summing->frame_values[i];
	}
}

static int list_items(struct summing *summing, struct report_sums *sums)
{
	const struct profile *profile = summing->profile;

	find_places(summing);
	sums->items = calloc(summing->grouping.n + 1, sizeof *sums->items);
	if (!sums->items)
		return -ENOMEM;
	for (size_t i = 0; i <= summing->grouping.n; i++) {
		const struct group *group = &summing->groups[i];
		const struct profile_frame *frame = group->place >= 0 ? &profile->frames[group->place] : NULL;

		if (group->stamp == 0)
			continue;
		sums->items[sums->n_items++] = (struct report_sum){
			.frame = frame,
			.name = frame ? frame->name : profile_nothing(profile),
			.self = group->self,
			.total = group->total,
			.samples = group->samples,
		};
	}
	return 0;
}

int report_sums_of_frames(const struct profile *profile, bool show_interpreter, frame_order *order,
			  struct report_sums *ret)
{
	CLEANUP(summing_done) struct summing summing = { .profile = profile, .whole = whole_of(profile) };
	struct report_sums sums = { .whole = summing.whole };
	int r;

	r = grouping_make(profile, order, &summing.grouping);
	if (r < 0)
		return r;
	summing.groups = calloc(summing.grouping.n + 1, sizeof *summing.groups);
	summing.frame_values = calloc(profile->n_frames + 1, sizeof *summing.frame_values);
	if (!summing.groups || !summing.frame_values)
		return -ENOMEM;
	r = paths_each(profile, show_interpreter, add_path, &summing);
	if (r >= 0)
		r = list_items(&summing, &sums);
	if (r >= 0)
		*ret = sums;
	return r;
}

void report_sums_done(struct report_sums *sums)
{
	free(sums->items);
	sums->items = NULL;
	sums->n_items = 0;
}

/* ---- Order ---- */

static int compare_values(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int compare_sums(const void *a, const void *b, void *context)
{
	const struct report_sum *left = a, *right = b;
	const bool *by_total = context;
	int self = compare_values(left->self, right->self);
	int total = compare_values(left->total, right->total);
	int order = *by_total ? total : self;

	if (order == 0)
		order = *by_total ? self : total;
	if (order == 0)
		order = strcmp(left->name, right->name);
	if (order == 0 && left->frame && right->frame)
		order = order_by_source(left->frame, right->frame);
	if (order == 0)
		order = left->pid < right->pid ? -1 : left->pid > right->pid;
	return order != 0 ? order : left->tid < right->tid ? -1 : left->tid > right->tid;
}

void report_sums_sort(struct report_sums *sums, bool by_total)
{
	qsort_r(sums->items, sums->n_items, sizeof *sums->items, compare_sums, &by_total);
}
