/* SPDX-License-Identifier: MIT */
/*
 * hot.c - adding up a profile by function, by line, or by call.
 *
 * All frames of one function (or line) have one key: the number of their group in an order of all frames.
 * Each stack with samples is walked once, in keys, from the innermost outwards; a stamp in each sum
 * has the last stack that contains it, so that recursion counts once.
 *
 * The shown frames of a stack are those of the view stack_path: all but evaluations and internal functions; if
 * none remains, its innermost one.
 */
#include "src/sql/hot.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

struct slot { /* of the hash table of calls */
	uint64_t pair;
	size_t sum; /* index + 1; 0: empty */
};

struct summing {
	const struct profile *profile;
	enum hot_by by;
	struct hot sums;
	uint32_t *key_of; /* indexed by frame */
	size_t n_keys;
	size_t *sum_of_key; /* index + 1; 0: none yet */
	int32_t *path;      /* frames, innermost first */
	size_t n_path, path_allocated;
	struct slot *slots;
	size_t n_slots, n_slots_used;
};

/* ---- Keys ---- */

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_places(const struct profile_frame *a, const struct profile_frame *b, bool by_line)
{
	int order;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->function == 0 || by_line) {
		order = compare_texts(a->name, b->name);
		if (order == 0)
			order = compare_texts(a->module, b->module);
		if (order != 0)
			return order;
	}
	return by_line ? (a->line > b->line) - (a->line < b->line) : 0;
}

static int compare_frames(const void *a, const void *b, void *context)
{
	const struct summing *summing = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int order = compare_places(&summing->profile->frames[left], &summing->profile->frames[right],
				   summing->by == HOT_BY_LINE);

	return order != 0 ? order : (left > right) - (left < right);
}

static int make_keys(struct summing *summing)
{
	const struct profile *profile = summing->profile;
	CLEANUP(freep) uint32_t *order = calloc(profile->n_frames + 1, sizeof *order);
	size_t n = 0;

	summing->key_of = calloc(profile->n_frames + 1, sizeof *summing->key_of);
	if (!order || !summing->key_of)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_frames; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, profile->n_frames, sizeof *order, compare_frames, summing);
	for (size_t i = 0; i < profile->n_frames; i++) {
		if (i > 0 && compare_places(&profile->frames[order[i - 1]], &profile->frames[order[i]],
					    summing->by == HOT_BY_LINE) != 0)
			n++;
		summing->key_of[order[i]] = (uint32_t)n;
	}
	summing->n_keys = n + 1;
	summing->sum_of_key = calloc(summing->n_keys, sizeof *summing->sum_of_key);
	return summing->sum_of_key ? 0 : -ENOMEM;
}

/* ---- Sums of a key or of a pair ---- */

static int add_sum(struct summing *summing, int32_t frame, int32_t caller, size_t *ret)
{
	struct hot *sums = &summing->sums;
	int r;

	r = grow(&sums->items, sums->n, &sums->allocated, sizeof *sums->items);
	if (r < 0)
		return r;
	sums->items[sums->n] = (struct hot_sum){ .frame = frame, .caller = caller };
	*ret = sums->n++;
	return 0;
}

static int find_place(struct summing *summing, int32_t frame, size_t *ret)
{
	size_t *sum = &summing->sum_of_key[summing->key_of[frame]];
	int r = 0;

	if (*sum == 0) {
		r = add_sum(summing, frame, -1, ret);
		if (r == 0)
			*sum = *ret + 1;
	}
	*ret = *sum - 1;
	return r;
}

static struct slot *find_slot(struct slot *slots, size_t n_slots, uint64_t pair)
{
	size_t i = mix64(pair) & (n_slots - 1);

	while (slots[i].sum != 0 && slots[i].pair != pair)
		i = (i + 1) & (n_slots - 1);
	return &slots[i];
}

static int widen_slots(struct summing *summing)
{
	size_t n = MAX(summing->n_slots * 2, (size_t)1024);
	struct slot *slots;

	if (summing->n_slots_used * 2 < summing->n_slots)
		return 0;
	slots = calloc(n, sizeof *slots);
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < summing->n_slots; i++)
		if (summing->slots[i].sum != 0)
			*find_slot(slots, n, summing->slots[i].pair) = summing->slots[i];
	free(summing->slots);
	summing->slots = slots;
	summing->n_slots = n;
	return 0;
}

/* @caller -1: the callee is the stack's root. */
static int find_call(struct summing *summing, int32_t callee, int32_t caller, size_t *ret)
{
	uint64_t above = caller < 0 ? UINT32_MAX : summing->key_of[caller];
	uint64_t pair = above << 32 | summing->key_of[callee];
	struct slot *slot;
	int r;

	r = widen_slots(summing);
	if (r < 0)
		return r;
	slot = find_slot(summing->slots, summing->n_slots, pair);
	if (slot->sum == 0) {
		r = add_sum(summing, callee, caller, ret);
		if (r < 0)
			return r;
		*slot = (struct slot){ pair, *ret + 1 };
		summing->n_slots_used++;
	}
	*ret = slot->sum - 1;
	return 0;
}

/* ---- One stack ---- */

static int add_to_path(struct summing *summing, int32_t frame)
{
	int r = grow(&summing->path, summing->n_path, &summing->path_allocated, sizeof *summing->path);

	if (r == 0)
		summing->path[summing->n_path++] = frame;
	return r;
}

static int read_path(struct summing *summing, int32_t innermost)
{
	const struct profile *profile = summing->profile;
	int r = 0;

	summing->n_path = 0;
	for (int32_t stack = innermost; stack >= 0 && r == 0; stack = profile->stacks[stack].parent) {
		int64_t frame = profile->stacks[stack].frame;

		if (profile->frames[frame].is_eval)
			continue;
		for (; frame >= 0 && r == 0; frame = profile->frames[frame].inlined_into)
			if (profile->frames[frame].role != ROLE_INTERNAL)
				r = add_to_path(summing, (int32_t)frame);
	}
	if (r == 0 && summing->n_path == 0)
		r = add_to_path(summing, profile->stacks[innermost].frame);
	return r;
}

static void add(struct hot_sum *sum, const struct profile_total *total, size_t stamp, bool is_self)
{
	if (is_self) {
		sum->self_samples += total->samples;
		sum->self_weight += total->weight;
	}
	if (sum->stamp == stamp)
		return;
	sum->stamp = stamp;
	sum->total_samples += total->samples;
	sum->total_weight += total->weight;
}

/* @stamp: unique number of the total, from 1. */
static int add_total(struct summing *summing, const struct profile_total *total, size_t stamp)
{
	int r;

	r = read_path(summing, total->stack);
	for (size_t i = 0; i < summing->n_path && r == 0; i++) {
		size_t sum = 0;

		if (summing->by == HOT_BY_CALL)
			r = find_call(summing, summing->path[i], i + 1 < summing->n_path ? summing->path[i + 1] : -1,
				      &sum);
		else
			r = find_place(summing, summing->path[i], &sum);
		if (r == 0)
			add(&summing->sums.items[sum], total, stamp, i == 0);
	}
	return r;
}

/* ---- All stacks ---- */

static int add_up(struct summing *summing)
{
	const struct profile *profile = summing->profile;
	struct hot_sum nothing = { .frame = -1, .caller = -1 };
	size_t sum;
	int r = 0;

	for (size_t i = 0; i < profile->n_totals && r == 0; i++) {
		const struct profile_total *total = &profile->totals[i];

		summing->sums.weight += total->weight;
		if (total->stack >= 0) {
			r = add_total(summing, total, i + 1);
			continue;
		}
		nothing.stamp = 0;
		add(&nothing, total, 1, true);
	}
	if (r == 0 && nothing.stamp != 0 && summing->by != HOT_BY_CALL) {
		r = add_sum(summing, -1, -1, &sum);
		if (r == 0)
			summing->sums.items[sum] = nothing;
	}
	return r;
}

static const char *name_of(const struct profile *profile, int32_t frame)
{
	return frame < 0 ? "" : profile->frames[frame].name;
}

/* Order of the views: by weight, then by name. */
static int compare_sums(const void *a, const void *b, void *context)
{
	const struct summing *summing = context;
	const struct hot_sum *left = a, *right = b;
	int order;

	if (summing->by != HOT_BY_CALL && left->self_weight != right->self_weight)
		return left->self_weight > right->self_weight ? -1 : 1;
	if (left->total_weight != right->total_weight)
		return left->total_weight > right->total_weight ? -1 : 1;
	order = strcmp(name_of(summing->profile, left->frame), name_of(summing->profile, right->frame));
	if (order == 0)
		order = strcmp(name_of(summing->profile, left->caller), name_of(summing->profile, right->caller));
	return order != 0 ? order : (left->frame > right->frame) - (left->frame < right->frame);
}

static void summing_done(struct summing *summing)
{
	hot_done(&summing->sums);
	free(summing->key_of);
	free(summing->sum_of_key);
	free(summing->path);
	free(summing->slots);
}

int hot_make(const struct profile *profile, enum hot_by by, struct hot *ret)
{
	CLEANUP(summing_done) struct summing summing = { .profile = profile, .by = by };
	int r;

	r = make_keys(&summing);
	if (r == 0)
		r = add_up(&summing);
	if (r < 0)
		return r;
	if (summing.sums.n > 0)
		qsort_r(summing.sums.items, summing.sums.n, sizeof *summing.sums.items, compare_sums, &summing);
	*ret = summing.sums;
	summing.sums = (struct hot){ 0 };
	return 0;
}

void hot_done(struct hot *sums)
{
	free(sums->items);
	*sums = (struct hot){ 0 };
}
