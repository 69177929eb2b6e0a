/* SPDX-License-Identifier: MIT */
/* paths.c - see paths.h. */
#include "src/report/paths.h"

#include <errno.h>

#include "base/util.h"

enum { FIRST_PATH = 256 };

struct whole whole_of(const struct profile *profile)
{
	struct whole whole = { .unit = profile->unit };

	for (size_t i = 0; i < profile->n_totals; i++) {
		whole.samples += profile->totals[i].samples;
		whole.weight += profile->totals[i].weight;
	}
	whole.by_weight = whole.weight > 0;
	return whole;
}

uint64_t whole_value(const struct whole *whole, const struct profile_total *total)
{
	return whole->by_weight ? total->weight : total->samples;
}

uint64_t whole_all(const struct whole *whole)
{
	return whole->by_weight ? whole->weight : whole->samples;
}

double whole_share(const struct whole *whole, uint64_t value)
{
	uint64_t all = whole_all(whole);

	return all ? 100.0 * (double)value / (double)all : 0.0;
}

static int compare_totals(const void *a, const void *b)
{
	const struct profile_total *left = a, *right = b;

	return left->stack < right->stack ? -1 : left->stack > right->stack;
}

/* Merge the totals of a stack over all threads and processes. */
static int merge_totals(const struct profile *profile, struct profile_total **ret, size_t *ret_n)
{
	struct profile_total *totals = calloc(profile->n_totals + 1, sizeof *totals);
	size_t n = 0;

	if (!totals)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_totals; i++)
		totals[i] = profile->totals[i];
	qsort(totals, profile->n_totals, sizeof *totals, compare_totals);
	for (size_t i = 0; i < profile->n_totals; i++) {
		struct profile_total *total = &totals[i];

		if (n > 0 && totals[n - 1].stack == total->stack) {
			totals[n - 1].samples += total->samples;
			totals[n - 1].weight += total->weight;
		} else {
			totals[n++] = *total;
		}
	}
	*ret = totals;
	*ret_n = n;
	return 0;
}

struct path {
	int32_t *frames;
	size_t n, allocated;
};

static void path_done(struct path *path)
{
	free(path->frames);
}

/* Read the shown path of a stack of any length. */
static int read_path(const struct profile *profile, bool show_interpreter, int32_t stack, struct path *path)
{
	for (;;) {
		size_t n = 0;
		int r;

		if (path->allocated > 0)
			n = profile_path(profile, stack, show_interpreter, path->frames, path->allocated);
		if (n < path->allocated) {
			path->n = n;
			return 0;
		}
		/* The path fills the array, so it may be longer. */
		r = grow(&path->frames, MAX(n, (size_t)FIRST_PATH), &path->allocated, sizeof *path->frames);
		if (r < 0)
			return r;
	}
}

int paths_each(const struct profile *profile, bool show_interpreter,
	       void (*take)(void *data, const int32_t *path, size_t n_path, const struct profile_total *total),
	       void *data)
{
	CLEANUP(freep) struct profile_total *totals = NULL;
	CLEANUP(path_done) struct path path = {};
	size_t n = 0;
	int r;

	r = merge_totals(profile, &totals, &n);
	for (size_t i = 0; i < n && r >= 0; i++) {
		path.n = 0;
		if (totals[i].stack >= 0)
			r = read_path(profile, show_interpreter, totals[i].stack, &path);
		if (r >= 0)
			take(data, path.frames, path.n, &totals[i]);
	}
	return r;
}
