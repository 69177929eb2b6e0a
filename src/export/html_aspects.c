/*
 * html_aspects.c - what samples know, summed up by box; see html_page.h.
 *
 * Samples go to the box of their stack first, then boxes into those of their callers, which stand before them.
 */
#include <errno.h>

#include "base/util.h"
#include "src/export/html_page.h"

/* ---- What there is to know ---- */

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
	int (*value_of)(const struct profile_sample *sample); /* -1: not known */
	const char *(*name_of)(int value);
} kinds[HTML_N_ASPECTS] = {
	{ "verdict", VERDICT_N, verdict_of, name_of_verdict },
	{ "state", STATE_N - STATE_RUNNING, state_of, name_of_state },
	{ "gil", 2, gil_of, name_of_gil },
	{ "gc", 2, gc_of, name_of_gc },
};

/* ---- Sums ---- */

static bool is_known(const struct profile *profile, int (*value_of)(const struct profile_sample *sample))
{
	for (size_t i = 0; i < profile->n_samples; i++)
		if (value_of(&profile->samples[i]) >= 0)
			return true;
	return false;
}

static int add_aspect(const struct profile *profile, const struct html_boxes *boxes, size_t kind, struct html_aspect *aspect)
{
	aspect->name = kinds[kind].name;
	aspect->n_values = kinds[kind].n_values;
	for (size_t i = 0; i < aspect->n_values; i++)
		aspect->values[i] = kinds[kind].name_of((int)i);
	if (!is_known(profile, kinds[kind].value_of))
		return 0;
	aspect->sums = calloc(boxes->n * aspect->n_values, sizeof *aspect->sums);
	return aspect->sums ? 0 : -ENOMEM;
}

static void add_sample(struct html_aspects *aspects, const struct profile_sample *sample, uint32_t box, uint64_t weight)
{
	for (size_t i = 0; i < HTML_N_ASPECTS; i++) {
		struct html_aspect *aspect = &aspects->items[i];
		int value = kinds[i].value_of(sample);

		if (aspect->sums && value >= 0)
			aspect->sums[box * aspect->n_values + (size_t)value] += weight;
	}
}

static void add_samples(const struct profile *profile, const struct fold_places *places, const struct html_boxes *boxes,
			struct html_aspects *aspects)
{
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct profile_sample *sample = &profile->samples[i];
		const struct profile_thread *thread = &profile->threads[sample->thread];
		uint32_t node = fold_find(places, thread->pid, thread->tid, sample->stack);

		if (node != 0) /* it is of what is shown */
			add_sample(aspects, sample, boxes->box_of[node], boxes->drawn.by_weight ? sample->weight_ns : 1);
	}
}

static void add_to_callers(const struct html_boxes *boxes, struct html_aspect *aspect)
{
	for (uint32_t box = (uint32_t)boxes->n; aspect->sums && box-- > 1;) {
		uint64_t *to = &aspect->sums[html_box_caller(boxes, box) * aspect->n_values];

		for (size_t i = 0; i < aspect->n_values; i++)
			to[i] += aspect->sums[box * aspect->n_values + i];
	}
}

int html_aspects_init(const struct profile *profile, const struct fold_places *places, const struct html_boxes *boxes,
		      struct html_aspects *ret)
{
	struct html_aspects aspects = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < HTML_N_ASPECTS; i++)
		r = add_aspect(profile, boxes, i, &aspects.items[i]);
	if (r < 0) {
		html_aspects_done(&aspects);
		return r;
	}
	add_samples(profile, places, boxes, &aspects);
	for (size_t i = 0; i < HTML_N_ASPECTS; i++)
		add_to_callers(boxes, &aspects.items[i]);
	*ret = aspects;
	return 0;
}

void html_aspects_done(struct html_aspects *aspects)
{
	for (size_t i = 0; i < HTML_N_ASPECTS; i++)
		free(aspects->items[i].sums);
	*aspects = (struct html_aspects){ 0 };
}
