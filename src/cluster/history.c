/* SPDX-License-Identifier: MIT */
/* history.c - since which step a rank is slow.
 *
 * Each step of a rank is divided by the median of the same step of the other ranks: what slows all of them, slows none here.
 * The series of these ratios is divided where its level changes (series_split()), by more than steps that are as alike differ
 * anyway (series_join()). A part is slow if its level is at least MIN_SLOW above 1: its mean, in which the few largest and
 * smallest ratios count as the next ones. So a step that stops for a checkpoint neither makes a rank slow, nor hides that it
 * is. Neighbours that are slow are one stretch; the last one counts. If a rank is slow from its first step on, there is
 * nothing before to compare with: then its ratios are compared with 1, and its level must be far from those of the other
 * ranks, since ranks differ a little for ever.
 * How sure that is follows from the statistics of `probing diff`, corrected for the number of places where the change could
 * be, and for the number of ranks. Of steps that are alike, it compares the means of as many neighbours as say as much as one
 * independent step: a rank whose speed wanders for hundreds of steps has few of them, and no step is named. How alike steps
 * are, the other ranks show, too: those of a rank that is divided by chance seem less alike than they are.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cluster/report.h"
#include "src/compare/compare.h"

#define MIN_SLOW 0.05

enum {
	MIN_STEPS = 20,
	MAX_MOMENTS = 1 << 22, /* of all ranks: of more, the newest steps are compared */
	MAX_TESTED = 64,       /* ranks; those with the largest change */
	MIN_WANDERING = 5,     /* steps that are as alike as one: fewer are no reason to say so */
};

/* A step of a rank. */
struct moment {
	int64_t step;
	double ms;
	uint32_t rank; /* of the job */
};

/* The ratios of a rank, oldest first. */
struct series {
	int64_t *steps;
	double *ratios, *logs;
	size_t n;
	struct series_part parts[SERIES_MAX_PARTS];
	size_t n_parts; /* 0: there are too few steps */
	size_t alike;   /* so many steps that follow each other say as much as one that is independent */
};

struct histories {
	struct job *job;
	struct series *series; /* by rank of the job */
	int64_t *steps;
	double *ratios, *logs;
	double *ones, *zeros;
	double *means;
	struct series_part *parts; /* scratch, SERIES_MAX_PARTS */
	double *clipped;           /* scratch, two lists of CLUSTER_MAX_STEPS */
};

/* ---- Ratios ---- */

static int compare_moments(const void *a, const void *b)
{
	const struct moment *left = a, *right = b;

	if (left->step != right->step)
		return left->step < right->step ? -1 : 1;
	return (left->ms > right->ms) - (left->ms < right->ms);
}

/* The median of n sorted values without the one at @at. n >= 2. */
static double median_of_others(const struct moment *sorted, size_t n, size_t at)
{
	size_t low = (n - 2) / 2, high = (n - 1) / 2;

	low += low >= at;
	high += high >= at;
	return (sorted[low].ms + sorted[high].ms) / 2;
}

/* The kind that most ranks have; ranks of another kind are not compared. */
static enum history_kind find_kind(struct job *job)
{
	size_t counts[N_HISTORY_KINDS] = { 0 };
	enum history_kind best = HISTORY_STEP;

	for (size_t i = 0; i < job->n; i++)
		counts[job_rank(job, i)->history.kind] += job_rank(job, i)->history.n > 0;
	for (enum history_kind kind = HISTORY_STEP; kind < N_HISTORY_KINDS; kind++)
		if (counts[kind] > counts[best])
			best = kind;
	job->n_histories = counts[best];
	return best;
}

static const struct rank_history *history_of(const struct job *job, size_t i)
{
	const struct rank_history *history = &job_rank(job, i)->history;

	return history->kind == job->history_kind && history->n > 0 ? history : NULL;
}

static size_t collect(const struct job *job, size_t max, struct moment *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < job->n; i++) {
		const struct rank_history *history = history_of(job, i);

		for (size_t k = history && history->n > max ? history->n - max : 0; history && k < history->n; k++)
			if (history->ms[k] > 0)
				ret[n++] = (struct moment){ history->steps[k], history->ms[k], (uint32_t)i };
	}
	qsort(ret, n, sizeof *ret, compare_moments);
	return n;
}

/* Steps that at least half of the ranks have. */
static void divide(struct histories *histories, const struct moment *moments, size_t n)
{
	struct job *job = histories->job;
	size_t end;

	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && moments[end].step == moments[i].step;)
			end++;
		if (end - i < MAX((size_t)2, job->n_histories / 2))
			continue;
		for (size_t k = i; k < end; k++) {
			struct series *series = &histories->series[moments[k].rank];

			series->steps[series->n] = moments[k].step;
			series->ratios[series->n] = moments[k].ms / median_of_others(moments + i, end - i, k - i);
			series->logs[series->n] = log(series->ratios[series->n]);
			series->n++;
		}
		job->first_step = MIN(job->first_step, moments[i].step);
		job->last_step = MAX(job->last_step, moments[i].step);
	}
}

static int make_series(struct histories *histories)
{
	struct job *job = histories->job;
	size_t max = MAX((size_t)MAX_MOMENTS / job->n_histories, (size_t)MIN_STEPS), n = 0;
	CLEANUP(freep) struct moment *moments = NULL;

	for (size_t i = 0; i < job->n; i++)
		n += history_of(job, i) ? MIN(history_of(job, i)->n, max) : 0;
	moments = calloc(n + 1, sizeof *moments);
	histories->steps = calloc(n + 1, sizeof *histories->steps);
	histories->ratios = calloc(n + 1, sizeof *histories->ratios);
	histories->logs = calloc(n + 1, sizeof *histories->logs);
	if (!moments || !histories->steps || !histories->ratios || !histories->logs)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < job->n; i++) {
		histories->series[i] = (struct series){ .steps = histories->steps + n,
							.ratios = histories->ratios + n,
							.logs = histories->logs + n };
		n += history_of(job, i) ? MIN(history_of(job, i)->n, max) : 0;
	}
	n = collect(job, max, moments);
	divide(histories, moments, n);
	return 0;
}

/* ---- One rank ---- */

static bool is_slow(const struct series_part *part)
{
	return part->mean >= 1 + MIN_SLOW;
}

/*
 * The last stretch of slow parts: from ret_first to before ret_end. false: none is slow. Parts at its ends that are less than
 * half as slow as its slowest one do not belong to it: a rank that was always a little slow, and is now very slow, is so now.
 */
static bool find_stretch(const struct series_part *parts, size_t n, size_t *ret_first, size_t *ret_end)
{
	size_t end = n, first;
	double top = 0;

	while (end > 0 && !is_slow(&parts[end - 1]))
		end--;
	for (first = end; first > 0 && is_slow(&parts[first - 1]); first--)
		top = MAX(top, parts[first - 1].mean - 1);
	while (first < end && parts[first].mean - 1 < top / 2)
		first++;
	while (end > first && parts[end - 1].mean - 1 < top / 2)
		end--;
	*ret_first = first;
	*ret_end = end;
	return end > 0;
}

/* Means of so many neighbours, in place. Returns how many, at least 1. */
static size_t join_alike(double *values, size_t n, size_t alike)
{
	size_t n_blocks = MAX(n / alike, (size_t)1);

	for (size_t block = 0; block < n_blocks; block++) {
		size_t first = n * block / n_blocks, end = n * (block + 1) / n_blocks;
		double sum = 0;

		for (size_t i = first; i < end; i++)
			sum += values[i];
		values[block] = sum / (double)(end - first);
	}
	return n_blocks;
}

/*
 * Of a stretch of a series' values, against what is around it; of the whole series, against @usual, as often as it takes.
 * @values: of each step of the series.
 */
static int compare_stretch(const struct histories *histories, const struct series *series, const double *values,
			   const double *usual, struct series_part stretch, struct estimate *ret)
{
	CLEANUP(freep) double *rest = calloc(series->n + 1, sizeof *rest);
	double *base = histories->clipped, *head = base + CLUSTER_MAX_STEPS;
	size_t n_rest = 0, n_head;

	if (!rest)
		return -ENOMEM;
	for (size_t i = 0; i < series->n; i++)
		if (i < stretch.first || i >= stretch.first + stretch.n)
			rest[n_rest++] = values[i];
	series_level(rest, n_rest, base);
	series_level(values + stretch.first, stretch.n, head);
	n_head = join_alike(head, stretch.n, series->alike);
	if (n_rest > 0)
		n_rest = join_alike(base, n_rest, series->alike);
	return n_rest > 0 ? compare_lists(base, n_rest, head, n_head, ret)
			  : compare_lists(usual, n_head, head, n_head, ret);
}

/* How sure it is follows from the logarithms, because steps vary in proportion to their length; the size from the ratios. */
static int estimate_stretch(const struct histories *histories, const struct series *series, struct series_part stretch,
			    struct estimate *ret)
{
	struct estimate estimate;
	int r = compare_stretch(histories, series, series->logs, histories->zeros, stretch, &estimate);
	double p = r < 0 ? 1 : estimate.p;

	if (r == 0)
		r = compare_stretch(histories, series, series->ratios, histories->ones, stretch, &estimate);
	if (r < 0)
		return r;
	estimate.p = p;
	*ret = estimate;
	return 0;
}

/* How alike the steps of each rank are, without what makes it slow. @ret: the median of the ranks. */
static int measure_alike(const struct histories *histories, double *ret)
{
	size_t n = 0;

	*ret = 1;
	for (size_t i = 0; i < histories->job->n; i++) {
		struct series *series = &histories->series[i];
		int r = series->n >= MIN_STEPS ? series_split(series->ratios, series->n, series->parts) : 0;

		if (r <= 0 && series->n >= MIN_STEPS)
			return r;
		series->n_parts = (size_t)r;
		if (r == 0)
			continue;
		memcpy(histories->parts, series->parts, sizeof series->parts);
		r = series_join(series->logs, series->n, histories->parts, series->n_parts, 1, &histories->means[n++]);
		if (r < 0)
			return r;
	}
	if (n == 0)
		return 0;
	report_sort(histories->means, n);
	*ret = histories->means[n / 2];
	return 0;
}

/* @alike: how alike the steps of ranks are; those of one whose parts are divided by chance seem less so. */
static int find_slow(const struct histories *histories, size_t i, double alike, struct rank_findings *findings)
{
	struct series *series = &histories->series[i];
	struct slow_steps *ret = &findings->slow;
	struct series_part *parts = series->parts;
	size_t first, end;
	int n = 0;

	if (series->n_parts > 0) {
		findings->wanders = series->n_parts > 1 && find_stretch(parts, series->n_parts, &first, &end);
		n = series_join(series->logs, series->n, parts, series->n_parts, alike, &alike);
		for (int part = 0; part < n; part++)
			parts[part].mean = series_level(series->ratios + parts[part].first, parts[part].n,
							histories->clipped);
		series->alike = findings->n_alike = (size_t)lround(alike);
		findings->wanders &= series->alike >= MIN_WANDERING;
	}
	if (n <= 0 || !find_stretch(parts, (size_t)n, &first, &end))
		return MIN(n, 0);
	*ret = (struct slow_steps){ .is_slow = true,
				    .is_over = end < (size_t)n,
				    .is_whole = first == 0 && end == (size_t)n };
	first = parts[first].first;
	end = parts[end - 1].first + parts[end - 1].n;
	ret->first = series->steps[first];
	ret->last = series->steps[end - 1];
	ret->change = series_level(series->ratios + first, end - first, histories->clipped) - 1;
	return 0;
}

/* ---- How sure that is ---- */

/* Index of a step in a series, which has it. */
static size_t index_of(const struct series *series, int64_t step)
{
	size_t low = 0, high = series->n;

	while (low + 1 < high) {
		size_t middle = (low + high) / 2;

		if (series->steps[middle] <= step)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* @n_ranks: that are compared. */
static int judge(const struct histories *histories, size_t i, size_t n_ranks)
{
	struct slow_steps *slow = &histories->job->findings[i].slow;
	const struct series *series = &histories->series[i];
	size_t first = index_of(series, slow->first), end = index_of(series, slow->last) + 1;
	size_t n_apart = MIN(2 * series->n / series->alike,
			     series->n); /* places that differ: two for each independent step */
	double n_places = slow->is_whole ? 1 : series_places(n_apart, first == 0 || end == series->n);
	struct estimate estimate;
	int r = estimate_stretch(histories, series, (struct series_part){ .first = first, .n = end - first },
				 &estimate);

	if (r < 0)
		return r;
	slow->p = MIN(estimate.p * n_places * (double)n_ranks, 1);
	slow->low = estimate.low;
	slow->high = estimate.high;
	slow->is_slow = slow->p <= REPORT_SURE;
	return 0;
}

/* The least level that is far from those of the ranks. INFINITY: too few ranks to know. */
static double far_limit(const struct histories *histories)
{
	double *means = histories->means;
	struct spread spread;
	size_t n = 0;

	for (size_t i = 0; i < histories->job->n; i++)
		if (histories->series[i].n >= MIN_STEPS)
			means[n++] = series_level(histories->series[i].ratios, histories->series[i].n,
						  histories->clipped);
	if (n < REPORT_MIN_RANKS)
		return INFINITY;
	spread = report_spread(means, n, 0);
	return spread.median + MAX(REPORT_TOO_FAR * spread.deviation, MIN_SLOW);
}

/* The change that as many as MAX_TESTED ranks have: with fewer tests each is surer, and it takes less time. */
static double least_tested(const struct histories *histories)
{
	const struct job *job = histories->job;
	size_t n = 0;

	for (size_t i = 0; i < job->n; i++)
		if (job->findings[i].slow.is_slow)
			histories->means[n++] = job->findings[i].slow.change;
	if (n <= MAX_TESTED)
		return 0;
	report_sort(histories->means, n);
	return histories->means[n - MAX_TESTED];
}

static int judge_all(const struct histories *histories)
{
	struct job *job = histories->job;
	double far = far_limit(histories), least, alike;
	size_t n_ranks = 0;
	int r = measure_alike(histories, &alike);

	for (size_t i = 0; r >= 0 && i < job->n; i++) {
		struct slow_steps *slow = &job->findings[i].slow;

		n_ranks += histories->series[i].n >= MIN_STEPS;
		r = find_slow(histories, i, alike, &job->findings[i]);
		if (slow->is_whole && 1 + slow->change < far)
			slow->is_slow = false;
	}
	least = least_tested(histories);
	for (size_t i = 0; r >= 0 && i < job->n; i++) {
		struct slow_steps *slow = &job->findings[i].slow;

		if (slow->is_slow && slow->change < least)
			slow->is_slow = false;
		if (slow->is_slow)
			r = judge(histories, i, n_ranks);
		job->findings[i].is_odd |= slow->is_slow;
		job->findings[i].wanders &= !slow->is_slow;
	}
	return r;
}

int report_history(struct job *job)
{
	CLEANUP(freep) struct series *series = calloc(job->n + 1, sizeof *series);
	CLEANUP(freep) double *means = calloc(job->n + 1, sizeof *means);
	CLEANUP(freep) double *ones = calloc(CLUSTER_MAX_STEPS, sizeof *ones);
	CLEANUP(freep) double *zeros = calloc(CLUSTER_MAX_STEPS, sizeof *zeros);
	CLEANUP(freep) double *clipped = calloc(2 * (size_t)CLUSTER_MAX_STEPS, sizeof *clipped);
	struct series_part parts[SERIES_MAX_PARTS];
	struct histories histories = { .job = job,
				       .series = series,
				       .means = means,
				       .ones = ones,
				       .zeros = zeros,
				       .parts = parts,
				       .clipped = clipped };
	int r;

	if (!series || !means || !ones || !zeros || !clipped)
		return -ENOMEM;
	job->history_kind = find_kind(job);
	job->first_step = INT64_MAX;
	job->last_step = -1;
	if (job->n_histories < 2) {
		job->n_histories = 0;
		return 0;
	}
	for (size_t i = 0; i < CLUSTER_MAX_STEPS; i++)
		ones[i] = 1;
	r = make_series(&histories);
	if (r >= 0)
		r = judge_all(&histories);
	free(histories.steps);
	free(histories.ratios);
	free(histories.logs);
	if (job->last_step < 0)
		job->n_histories = 0;
	return r;
}
