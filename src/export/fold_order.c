/* SPDX-License-Identifier: MIT */
/* fold_order.c - see fold_order.h. */
#include "src/export/fold_order.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

struct ordering {
	const struct profile *profile;
	bool by_process, by_thread;
};

int fold_compare(const struct fold_entry *left, const struct fold_entry *right)
{
	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	if (left->tid != right->tid)
		return left->tid < right->tid ? -1 : 1;
	return left->stack < right->stack ? -1 : left->stack > right->stack;
}

struct fold_entry fold_entry_of(const struct profile_total *total, bool by_process, bool by_thread)
{
	return (struct fold_entry){
		.pid = by_process || by_thread ? total->pid : 0,
		.tid = by_thread ? total->tid : 0,
		.stack = total->stack,
	};
}

static int compare_totals(const void *a, const void *b, void *context)
{
	const struct ordering *ordering = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	struct fold_entry l = fold_entry_of(&ordering->profile->totals[left], ordering->by_process,
					    ordering->by_thread);
	struct fold_entry r = fold_entry_of(&ordering->profile->totals[right], ordering->by_process,
					    ordering->by_thread);
	int order = fold_compare(&l, &r);

	return order != 0 ? order : (left > right) - (left < right);
}

int fold_order(const struct profile *profile, bool by_process, bool by_thread, uint32_t **ret)
{
	struct ordering ordering = { profile, by_process, by_thread };
	size_t n = profile->n_totals;
	uint32_t *order;

	if (n >= UINT32_MAX)
		return -EOVERFLOW;
	order = calloc(n + 1, sizeof *order);
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, n, sizeof *order, compare_totals, &ordering);
	*ret = order;
	return 0;
}

static int compare_threads(const void *a, const void *b)
{
	const struct profile_thread *left = *(void *const *)a, *right = *(void *const *)b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

int fold_sort_threads(const struct profile *profile, const struct profile_thread ***ret)
{
	const struct profile_thread **threads = calloc(profile->n_threads + 1, sizeof(struct profile_thread *));

	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_threads; i++)
		threads[i] = &profile->threads[i];
	qsort(threads, profile->n_threads, sizeof *threads, compare_threads);
	*ret = threads;
	return 0;
}

const struct profile_thread *fold_find_thread(const struct profile_thread *const *threads, size_t n, size_t *at,
					      const struct fold_entry *entry)
{
	struct profile_thread wanted = { .pid = entry->pid, .tid = entry->tid };
	const struct profile_thread *key = &wanted;

	while (*at < n && compare_threads(&threads[*at], &key) < 0)
		++*at;
	return *at < n ? threads[*at] : NULL;
}
