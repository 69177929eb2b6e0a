/* SPDX-License-Identifier: MIT */
/* code_ranges.c - see code_ranges.h.
 *
 * Sorted lazily: a look-up sorts the new ranges and merges
 * them into the rest. Each range has the largest end so far, so that a search
 * backwards from an address can stop as soon as no earlier range can reach it.
 */
#include "symbolize/code_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void code_ranges_done(struct code_ranges *ranges)
{
	free(ranges->ranges);
	free(ranges->order);
	free(ranges->furthest);
	free(ranges->names);
	*ranges = (struct code_ranges){};
}

/* Offset 0 means no name. */
static int add_name(struct code_ranges *ranges, const char *name, size_t n_name, size_t *ret)
{
	size_t at = MAX(ranges->names_bytes, (size_t)1);
	int r;

	r = grow(&ranges->names, at + n_name, &ranges->names_allocated, 1);
	if (r < 0)
		return r;
	ranges->names[0] = '\0';
	for (size_t i = 0; i < n_name; i++)
		ranges->names[at + i] = (unsigned char)name[i] < ' ' || name[i] == 0x7f ? '?' : name[i];
	ranges->names[at + n_name] = '\0';
	ranges->names_bytes = at + n_name + 1;
	*ret = at;
	return 0;
}

int code_ranges_add(struct code_ranges *ranges, const struct code_range *range, const char *name, size_t n_name)
{
	struct code_range added = *range;
	int r;

	if (range->start >= range->end || ranges->n >= CODE_RANGES_MAX)
		return 0;
	added.name = 0;
	r = grow(&ranges->ranges, ranges->n, &ranges->ranges_allocated, sizeof added);
	if (r >= 0 && name)
		r = add_name(ranges, name, n_name, &added.name);
	if (r < 0)
		return r;
	ranges->ranges[ranges->n++] = added;
	return 0;
}

static int compare(const void *a, const void *b, void *context)
{
	const struct code_range *ranges = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (ranges[left].start != ranges[right].start)
		return ranges[left].start < ranges[right].start ? -1 : 1;
	return left < right ? -1 : left > right;
}

static void merge(struct code_ranges *ranges, const uint32_t *added, size_t n_added, uint32_t *to)
{
	size_t i = 0, k = 0;

	while (i < ranges->n_sorted || k < n_added) {
		bool from_old = k == n_added ||
				(i < ranges->n_sorted && compare(&ranges->order[i], &added[k], ranges->ranges) < 0);

		to[i + k] = from_old ? ranges->order[i] : added[k];
		*(from_old ? &i : &k) += 1;
	}
}

static int sort(struct code_ranges *ranges)
{
	size_t n_added = ranges->n - ranges->n_sorted;
	CLEANUP(freep) uint32_t *added = NULL;
	CLEANUP(freep) uint32_t *order = NULL;
	CLEANUP(freep) uint64_t *furthest = NULL;

	if (n_added == 0)
		return 0;
	added = reallocarray(NULL, n_added, sizeof *added);
	order = reallocarray(NULL, ranges->n, sizeof *order);
	furthest = reallocarray(NULL, ranges->n, sizeof *furthest);
	if (!added || !order || !furthest)
		return -ENOMEM;
	for (size_t i = 0; i < n_added; i++)
		added[i] = (uint32_t)(ranges->n_sorted + i);
	qsort_r(added, n_added, sizeof *added, compare, ranges->ranges);
	merge(ranges, added, n_added, order);
	for (size_t i = 0; i < ranges->n; i++)
		furthest[i] = MAX(ranges->ranges[order[i]].end, i > 0 ? furthest[i - 1] : 0);
	free(ranges->order);
	free(ranges->furthest);
	ranges->order = TAKE(order);
	ranges->furthest = TAKE(furthest);
	ranges->n_sorted = ranges->n;
	return 0;
}

/* Number of ranges that start at or before an address. */
static size_t count_until(const struct code_ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->n_sorted;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->ranges[ranges->order[middle]].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_newer(const struct code_range *a, const struct code_range *b)
{
	return a->since_ns != b->since_ns ? a->since_ns > b->since_ns : a > b;
}

int code_ranges_find(struct code_ranges *ranges, uint64_t address, uint64_t time_ns, const struct code_range **ret)
{
	const struct code_range *newest = NULL, *oldest = NULL;
	int r;

	r = sort(ranges);
	if (r < 0)
		return r;
	for (size_t i = count_until(ranges, address); i-- > 0 && ranges->furthest[i] > address;) {
		const struct code_range *range = &ranges->ranges[ranges->order[i]];

		if (range->end <= address)
			continue;
		if (range->since_ns <= time_ns && (!newest || is_newer(range, newest)))
			newest = range;
		if (!oldest || is_newer(oldest, range))
			oldest = range;
	}
	newest = newest ?: oldest;
	*ret = newest && newest->name ? newest : NULL;
	return 0;
}

const char *code_range_name(const struct code_ranges *ranges, const struct code_range *range)
{
	return ranges->names + range->name;
}
