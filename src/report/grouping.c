/* SPDX-License-Identifier: MIT */
/* grouping.c - see grouping.h. Frames are put into groups by sorting them. */
#include "src/report/grouping.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

static int compare_strings(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

int order_by_function(const struct profile_frame *a, const struct profile_frame *b)
{
	int order;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->function != 0)
		return 0;
	order = compare_strings(a->name, b->name);
	if (order == 0)
		order = compare_strings(a->module, b->module);
	return order != 0 ? order : compare_strings(a->file, b->file);
}

static int compare_lines(const struct profile_frame *a, const struct profile_frame *b)
{
	return a->line < b->line ? -1 : a->line > b->line;
}

int order_by_line(const struct profile_frame *a, const struct profile_frame *b)
{
	int order = order_by_function(a, b);

	return order != 0 ? order : compare_lines(a, b);
}

int order_by_module(const struct profile_frame *a, const struct profile_frame *b)
{
	return strcmp(profile_frame_module(a), profile_frame_module(b));
}

/* Compare by source line, whatever the functions. */
int order_by_source(const struct profile_frame *a, const struct profile_frame *b)
{
	int order = compare_strings(a->file, b->file);

	return order != 0 ? order : compare_lines(a, b);
}

struct sorting {
	const struct profile_frame *frames;
	frame_order *order;
};

static int compare_indices(const void *a, const void *b, void *context)
{
	const struct sorting *sorting = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int order = sorting->order(&sorting->frames[left], &sorting->frames[right]);

	if (order != 0)
		return order;
	return left < right ? -1 : left > right;
}

int grouping_make(const struct profile *profile, frame_order *order, struct grouping *ret)
{
	CLEANUP(freep) uint32_t *sorted = calloc(profile->n_frames + 1, sizeof *sorted);
	CLEANUP(grouping_done)
	struct grouping grouping = {
		.of_frame = calloc(profile->n_frames + 1, sizeof *grouping.of_frame),
	};
	struct sorting sorting = { profile->frames, order };

	if (!sorted || !grouping.of_frame)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_frames; i++)
		sorted[i] = (uint32_t)i;
	qsort_r(sorted, profile->n_frames, sizeof *sorted, compare_indices, &sorting);
	for (size_t i = 0; i < profile->n_frames; i++) {
		if (i == 0 || order(&profile->frames[sorted[i - 1]], &profile->frames[sorted[i]]) != 0)
			grouping.n++;
		grouping.of_frame[sorted[i]] = (uint32_t)(grouping.n - 1);
	}
	ret->of_frame = TAKE(grouping.of_frame);
	ret->n = grouping.n;
	return 0;
}

void grouping_done(struct grouping *grouping)
{
	free(grouping->of_frame);
	grouping->of_frame = NULL;
}
