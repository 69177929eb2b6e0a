/* functions.c - adding up self and total time by function.
 *
 * Frames are first put into groups, one per function, by sorting them. Each
 * distinct stack is then walked once; a stamp per group holds the last stack
 * it was met on, so that recursion counts once.
 */
#include "src/report/functions.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

enum { FIRST_PATH = 256 };

struct group {
	uint64_t self, total;
	uint64_t stamp; /* number of the last stack counted; 0: none */
	uint64_t place_value;
	int32_t place; /* frame with the most time; -1: none yet */
};

struct summing {
	const struct profile *profile;
	bool show_interpreter, by_weight;
	uint32_t *group_of;   /* by frame */
	struct group *groups; /* the functions, and one for samples without a stack */
	size_t n_functions;
	uint64_t *frame_values;       /* time on each frame, recursion counted as it comes */
	struct profile_total *totals; /* sorted by stack */
	size_t n_totals;
	int32_t *path;
	size_t path_allocated;
};

static int compare_strings(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* 0 for two places in the same function. */
static int compare_functions(const struct profile_frame *a, const struct profile_frame *b)
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

static int compare_indices(const void *a, const void *b, void *context)
{
	const struct profile_frame *frames = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int order = compare_functions(&frames[left], &frames[right]);

	if (order != 0)
		return order;
	return left < right ? -1 : left > right;
}

static int group_frames(struct summing *summing)
{
	CLEANUP(freep) uint32_t *order = NULL;
	const struct profile *profile = summing->profile;
	size_t n = 0;

	order = calloc(profile->n_frames + 1, sizeof *order);
	summing->group_of = calloc(profile->n_frames + 1, sizeof *summing->group_of);
	summing->frame_values = calloc(profile->n_frames + 1, sizeof *summing->frame_values);
	if (!order || !summing->group_of || !summing->frame_values)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_frames; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, profile->n_frames, sizeof *order, compare_indices, profile->frames);
	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[order[i]];

		if (i > 0 && compare_functions(&profile->frames[order[i - 1]], frame) != 0)
			n++;
		summing->group_of[order[i]] = (uint32_t)n;
	}
	summing->n_functions = profile->n_frames > 0 ? n + 1 : 0;
	summing->groups = calloc(summing->n_functions + 1, sizeof *summing->groups);
	return summing->groups ? 0 : -ENOMEM;
}

static int compare_totals(const void *a, const void *b)
{
	const struct profile_total *left = a, *right = b;

	return left->stack < right->stack ? -1 : left->stack > right->stack;
}

/* One total per stack: threads and processes do not matter here. */
static int merge_totals(struct summing *summing)
{
	const struct profile *profile = summing->profile;
	size_t n = 0;

	summing->totals = calloc(profile->n_totals + 1, sizeof *summing->totals);
	if (!summing->totals)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_totals; i++)
		summing->totals[i] = profile->totals[i];
	qsort(summing->totals, profile->n_totals, sizeof *summing->totals, compare_totals);
	for (size_t i = 0; i < profile->n_totals; i++) {
		struct profile_total *total = &summing->totals[i];

		if (n > 0 && summing->totals[n - 1].stack == total->stack) {
			summing->totals[n - 1].samples += total->samples;
			summing->totals[n - 1].weight_ns += total->weight_ns;
		} else {
			summing->totals[n++] = *total;
		}
	}
	summing->n_totals = n;
	return 0;
}

/* The shown path of a stack, whatever its length, in summing->path. */
static int read_path(struct summing *summing, int32_t stack, size_t *ret)
{
	for (;;) {
		size_t n = 0;
		int r;

		if (summing->path_allocated > 0)
			n = profile_path(summing->profile, stack, summing->show_interpreter,
					 summing->path, summing->path_allocated);
		if (n < summing->path_allocated) {
			*ret = n;
			return 0;
		}
		/* Full: there may be more of it. */
		r = grow(&summing->path, MAX(n, (size_t)FIRST_PATH), &summing->path_allocated,
			 sizeof *summing->path);
		if (r < 0)
			return r;
	}
}

static void add_path(struct summing *summing, size_t n_path, uint64_t stamp, uint64_t value)
{
	for (size_t i = 0; i < n_path; i++) {
		int32_t frame = summing->path[i];
		struct group *group = &summing->groups[summing->group_of[frame]];

		summing->frame_values[frame] += value;
		if (group->stamp == stamp)
			continue;
		group->stamp = stamp;
		group->total += value;
	}
	summing->groups[summing->group_of[summing->path[n_path - 1]]].self += value;
}

static int add_totals(struct summing *summing)
{
	for (size_t i = 0; i < summing->n_totals; i++) {
		const struct profile_total *total = &summing->totals[i];
		uint64_t value = summing->by_weight ? total->weight_ns : total->samples;
		size_t n_path = 0;
		int r;

		if (total->stack >= 0) {
			r = read_path(summing, total->stack, &n_path);
			if (r < 0)
				return r;
		}
		if (n_path > 0) {
			add_path(summing, n_path, i + 1, value);
		} else {
			struct group *group = &summing->groups[summing->n_functions];

			group->stamp = i + 1;
			group->self += value;
			group->total += value;
		}
	}
	return 0;
}

static void find_places(struct summing *summing)
{
	for (size_t i = 0; i < summing->n_functions; i++)
		summing->groups[i].place = -1;
	for (size_t i = 0; i < summing->profile->n_frames; i++) {
		struct group *group = &summing->groups[summing->group_of[i]];

		if (group->place >= 0 && summing->frame_values[i] <= group->place_value)
			continue;
		group->place = (int32_t)i;
		group->place_value = summing->frame_values[i];
	}
}

static int list_items(struct summing *summing, struct function_sums *sums)
{
	const struct profile *profile = summing->profile;

	find_places(summing);
	sums->items = calloc(summing->n_functions + 1, sizeof *sums->items);
	if (!sums->items)
		return -ENOMEM;
	for (size_t i = 0; i <= summing->n_functions; i++) {
		const struct group *group = &summing->groups[i];
		struct function_time *item = &sums->items[sums->n_items];

		if (group->stamp == 0)
			continue;
		item->self = group->self;
		item->total = group->total;
		if (i < summing->n_functions) {
			item->frame = &profile->frames[group->place];
			item->name = item->frame->name;
		} else {
			item->name = profile_nothing(profile);
		}
		sums->n_items++;
	}
	return 0;
}

static void summing_done(struct summing *summing)
{
	free(summing->group_of);
	free(summing->groups);
	free(summing->frame_values);
	free(summing->totals);
	free(summing->path);
}

int functions_sum(const struct profile *profile, bool show_interpreter, struct function_sums *ret)
{
	CLEANUP(summing_done) struct summing summing = {
		.profile = profile,
		.show_interpreter = show_interpreter,
	};
	struct function_sums sums = {};
	int r;

	for (size_t i = 0; i < profile->n_totals; i++) {
		sums.samples += profile->totals[i].samples;
		sums.weight_ns += profile->totals[i].weight_ns;
	}
	sums.unit = profile->unit;
	sums.by_weight = summing.by_weight = sums.weight_ns > 0;
	r = group_frames(&summing);
	if (r >= 0)
		r = merge_totals(&summing);
	if (r >= 0)
		r = add_totals(&summing);
	if (r >= 0)
		r = list_items(&summing, &sums);
	if (r < 0)
		return r;
	*ret = sums;
	return 0;
}

void functions_done(struct function_sums *sums)
{
	free(sums->items);
	sums->items = NULL;
	sums->n_items = 0;
}
