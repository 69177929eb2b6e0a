/* SPDX-License-Identifier: MIT */
/* labels.c - sums by label: the step, the span or the phase in which a sample was taken. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"
#include "src/report/sums.h"

struct summing {
	const struct profile *profile;
	struct whole whole;
	struct grouping grouping;
	struct report_sum *items; /* by label; 0: none */
	struct id_map pairs;      /* label and leaf's group -> index into selfs */
	struct self {
		uint64_t value;
		size_t label;
		int32_t frame;
	} * selfs;
	size_t n_selfs, allocated;
	int32_t *leaves; /* by stack, the innermost shown frame; -1: none */
};

/* Self time of a function in a label. */
static int add_self(struct summing *summing, size_t label, int32_t frame, uint64_t value)
{
	uint64_t key = ((uint64_t)label << 32 | summing->grouping.of_frame[frame]) + 1;
	struct id_slot *slot = id_map_find(&summing->pairs, key);
	int r;

	if (slot) {
		summing->selfs[slot->id].value += value;
		return 0;
	}
	r = grow(&summing->selfs, summing->n_selfs, &summing->allocated, sizeof *summing->selfs);
	if (r < 0)
		return r;
	summing->selfs[summing->n_selfs] = (struct self){ value, label, frame };
	return id_map_add(&summing->pairs, key, (uint32_t)summing->n_selfs++);
}

static void note_leaf(void *data, const int32_t *path, size_t n_path, const struct profile_total *total)
{
	struct summing *summing = data;

	if (total->stack >= 0 && n_path > 0)
		summing->leaves[total->stack] = path[n_path - 1];
}

static int add_totals(struct summing *summing)
{
	const struct profile *profile = summing->profile;
	int r = 0;

	for (size_t i = 0; i < profile->n_totals && r >= 0; i++) {
		const struct profile_total *total = &profile->totals[i];
		struct report_sum *item = &summing->items[total->label];
		uint64_t value = whole_value(&summing->whole, total);

		item->total += value;
		item->samples += total->samples;
		if (total->stack >= 0 && summing->leaves[total->stack] >= 0)
			r = add_self(summing, (size_t)total->label, summing->leaves[total->stack], value);
	}
	return r;
}

static void choose_most(struct summing *summing)
{
	for (size_t i = 0; i < summing->n_selfs; i++) {
		const struct self *self = &summing->selfs[i];
		struct report_sum *item = &summing->items[self->label];

		if (item->frame && self->value <= item->most)
			continue;
		item->frame = &summing->profile->frames[self->frame];
		item->most = self->value;
	}
}

static int add_up(struct summing *summing, bool show_interpreter)
{
	size_t n = summing->profile->n_stacks;
	int r;

	summing->leaves = malloc((n + 1) * sizeof *summing->leaves);
	if (!summing->leaves)
		return -ENOMEM;
	memset(summing->leaves, 0xff, n * sizeof *summing->leaves);
	r = grouping_make(summing->profile, order_by_function, &summing->grouping);
	if (r >= 0)
		r = paths_each(summing->profile, show_interpreter, note_leaf, summing);
	if (r >= 0)
		r = add_totals(summing);
	if (r >= 0)
		choose_most(summing);
	free(summing->leaves);
	grouping_done(&summing->grouping);
	id_map_done(&summing->pairs);
	free(summing->selfs);
	return r;
}

int report_sums_of_labels(const struct profile *profile, bool show_interpreter, const char *none,
			  struct report_sums *ret)
{
	struct summing summing = { .profile = profile, .whole = whole_of(profile) };
	size_t n = 0;
	int r;

	summing.items = calloc(profile->n_labels + 1, sizeof *summing.items);
	if (!summing.items)
		return -ENOMEM;
	r = add_up(&summing, show_interpreter);
	if (r < 0) {
		free(summing.items);
		return r;
	}
	for (size_t i = 0; i <= profile->n_labels; i++) {
		struct report_sum *item = &summing.items[i];

		item->name = i == 0 ? none : profile->labels[i - 1];
		item->self = item->total;
		if (item->total > 0 || item->samples > 0)
			summing.items[n++] = *item;
	}
	*ret = (struct report_sums){ .items = summing.items, .n_items = n, .whole = summing.whole };
	return 0;
}
