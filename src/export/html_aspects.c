/* SPDX-License-Identifier: MIT */
/*
 * html_aspects.c - sums of samples' columns by thread and box; see html_page.h.
 */
#include <errno.h>

#include "base/util.h"
#include "src/export/html_page.h"

/* ---- Aspects ---- */

static int verdict_of(const struct profile_sample *sample)
{
	return sample->verdict;
}

static int gil_of(const struct profile_sample *sample)
{
	return sample->gil == ANSWER_UNKNOWN ? -1 : sample->gil == ANSWER_NO;
}

static int gc_of(const struct profile_sample *sample)
{
	return sample->gc == ANSWER_UNKNOWN ? -1 : sample->gc == ANSWER_NO;
}

static int state_of(const struct profile_sample *sample)
{
	return sample->state == STATE_NONE ? -1 : sample->state - STATE_RUNNING;
}

static const char *name_of_verdict(int value)
{
	return verdict_name((enum verdict)value);
}

static const char *name_of_state(int value)
{
	return thread_state_name((enum thread_state)(STATE_RUNNING + value));
}

static const char *name_of_gil(int value)
{
	return value == 0 ? "held" : "not held";
}

static const char *name_of_gc(int value)
{
	return value == 0 ? "collecting" : "not collecting";
}

static const struct {
	const char *name;
	size_t n_values;
	int (*value_of)(const struct profile_sample *sample); /* -1: unknown */
	const char *(*name_of)(int value);
} kinds[HTML_N_ASPECTS] = {
	{ "verdict", VERDICT_N, verdict_of, name_of_verdict },
	{ "state", STATE_N - STATE_RUNNING, state_of, name_of_state },
	{ "gil", 2, gil_of, name_of_gil },
	{ "gc", 2, gc_of, name_of_gc },
};

_Static_assert((int)VERDICT_N <= HTML_MAX_VALUES && STATE_N - STATE_RUNNING <= (int)HTML_MAX_VALUES,
	       "as struct html_aspect has room");

/* ---- Sums ---- */

static bool is_known(const struct profile *profile, int (*value_of)(const struct profile_sample *sample))
{
	for (size_t i = 0; i < profile->n_samples; i++)
		if (value_of(&profile->samples[i]) >= 0)
			return true;
	return false;
}

static int add_aspect(const struct profile *profile, const struct html_sums *sums, size_t kind,
		      struct html_aspect *aspect)
{
	aspect->name = kinds[kind].name;
	aspect->n_values = kinds[kind].n_values;
	for (size_t i = 0; i < aspect->n_values; i++)
		aspect->values[i] = kinds[kind].name_of((int)i);
	if (!is_known(profile, kinds[kind].value_of))
		return 0;
	aspect->sums = calloc(sums->n_cells * aspect->n_values + 1, sizeof *aspect->sums);
	return aspect->sums ? 0 : -ENOMEM;
}

static void add_sample(struct html_aspects *aspects, const struct profile_sample *sample, size_t cell, uint64_t weight)
{
	for (size_t i = 0; i < HTML_N_ASPECTS; i++) {
		struct html_aspect *aspect = &aspects->items[i];
		int value = kinds[i].value_of(sample);

		if (aspect->sums && value >= 0)
			aspect->sums[cell * aspect->n_values + (size_t)value] += weight;
	}
}

static void add_samples(const struct profile *profile, const struct fold_places *places, const struct html_boxes *boxes,
			const struct html_sums *sums, struct html_aspects *aspects)
{
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct profile_sample *sample = &profile->samples[i];
		const struct profile_thread *thread = &profile->threads[sample->thread];
		uint32_t node = fold_find(places, thread->pid, thread->tid, sample->stack);
		size_t cell = node != 0 ? html_sums_find(sums, (uint32_t)sample->thread, boxes->box_of[node])
					: SIZE_MAX;

		if (cell != SIZE_MAX) /* the box is shown */
			add_sample(aspects, sample, cell, boxes->drawn.by_weight ? sample->weight : 1);
	}
}

int html_aspects_init(const struct profile *profile, const struct fold_places *places, const struct html_boxes *boxes,
		      const struct html_sums *sums, struct html_aspects *ret)
{
	struct html_aspects aspects = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < HTML_N_ASPECTS; i++)
		r = add_aspect(profile, sums, i, &aspects.items[i]);
	if (r < 0) {
		html_aspects_done(&aspects);
		return r;
	}
	add_samples(profile, places, boxes, sums, &aspects);
	*ret = aspects;
	return 0;
}

void html_aspects_done(struct html_aspects *aspects)
{
	for (size_t i = 0; i < HTML_N_ASPECTS; i++)
		free(aspects->items[i].sums);
	*aspects = (struct html_aspects){ 0 };
}
