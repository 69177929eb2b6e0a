/* SPDX-License-Identifier: MIT */
/* entries.c - see entries.h. */
#include "src/export/entries.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

static struct entry entry_of_sample(const struct profile *profile, size_t i)
{
	const struct profile_sample *sample = &profile->samples[i];
	const struct profile_thread *thread = &profile->threads[sample->thread];

	return (struct entry){ .pid = thread->pid,
			       .tid = thread->tid,
			       .stack = sample->stack,
			       .verdict = sample->verdict,
			       .state = sample->state,
			       .gil = sample->gil,
			       .gc = sample->gc,
			       .has_words = true,
			       .samples = profile_is_sampled(profile, sample->stack),
			       .weight = sample->weight,
			       .thread = thread };
}

static struct entry entry_of_total(const struct profile *profile, size_t i)
{
	const struct profile_total *total = &profile->totals[i];

	return (struct entry){ .pid = total->pid,
			       .tid = total->tid,
			       .stack = total->stack,
			       .samples = total->samples,
			       .weight = total->weight };
}

static struct entry entry_at(const struct profile *profile, size_t i)
{
	return profile->n_samples > 0 ? entry_of_sample(profile, i) : entry_of_total(profile, i);
}

static int compare_entries(const struct entry *left, const struct entry *right)
{
	int order;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	if (left->tid != right->tid)
		return left->tid < right->tid ? -1 : 1;
	if (left->stack != right->stack)
		return left->stack < right->stack ? -1 : 1;
	order = left->verdict - right->verdict;
	order = order != 0 ? order : left->state - right->state;
	order = order != 0 ? order : left->gil - right->gil;
	return order != 0 ? order : left->gc - right->gc;
}

/* Samples are in the order of time, and equal ones stay so. */
static int compare_rows(const void *a, const void *b, void *data)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	struct entry left = entry_at(data, i), right = entry_at(data, j);
	int order = compare_entries(&left, &right);

	return order != 0 ? order : i < j ? -1 : i > j;
}

/* Add a row to the last entry, or begin another. */
static int add_row(struct entries *entries, const struct profile *profile, size_t at)
{
	struct entry row = entry_at(profile, entries->order[at]);
	struct entry *last = entries->n > 0 ? &entries->items[entries->n - 1] : NULL;
	int r;

	if (last && compare_entries(last, &row) == 0) {
		last->samples += row.samples;
		last->weight += row.weight;
		last->n++;
		return 0;
	}
	if (!row.has_words)
		row.thread = last && last->pid == row.pid && last->tid == row.tid
				     ? last->thread
				     : profile_find_thread(profile, row.pid, row.tid);
	row.first = at;
	row.n = 1;
	r = grow(&entries->items, entries->n, &entries->allocated, sizeof *entries->items);
	if (r == 0)
		entries->items[entries->n++] = row;
	return r;
}

int entries_init(const struct profile *profile, struct entries *ret)
{
	size_t n = profile->n_samples > 0 ? profile->n_samples : profile->n_totals;
	struct entries entries = { .order = calloc(n + 1, sizeof *entries.order) };
	int r = 0;

	if (!entries.order)
		return -ENOMEM;
	if (n > UINT32_MAX)
		r = -EOVERFLOW;
	for (size_t i = 0; r == 0 && i < n; i++)
		entries.order[i] = (uint32_t)i;
	if (r == 0)
		qsort_r(entries.order, n, sizeof *entries.order, compare_rows, (void *)profile);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_row(&entries, profile, i);
	if (r < 0)
		entries_done(&entries);
	else
		*ret = entries;
	return r;
}

void entries_done(struct entries *entries)
{
	free(entries->items);
	free(entries->order);
	*entries = (struct entries){ 0 };
}
