/* SPDX-License-Identifier: MIT */
/*
 * stats.c - permutation, bootstrap, counts, and corrections; see stats.h.
 *
 * A permutation test counts how often runs that are assigned to the two sides at random differ as much as these do, by
 * their ranks. It assumes nothing about the distribution of run times, and an outlier is one run among others. Its
 * smallest p is one in the number of assignments, 2 of 252 for five runs a side, too large for a hundred functions at
 * once. So if no assignment is as far apart as the observed one, Student's tail extrapolates. Below FEWEST_DEALS runs
 * the variances of sample counts are used.
 */
#include "src/compare/stats.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/util.h"

enum { MAX_DEALS = 20000, FEWEST_DEALS = 40 };
#define SEED UINT64_C(0x70726f62696e6721)
#define SAME 1e-9 /* relative difference below which statistics are equal */

/* ---- Shuffles ---- */

static uint64_t next_random(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return mix64(*state);
}

/* 0 to n - 1; n is far below 2^32, so the bias is negligible. */
static size_t random_below(uint64_t *state, size_t n)
{
	return (size_t)((next_random(state) >> 32) * n >> 32);
}

/* n over k, or MAX_DEALS + 1 if larger. */
static size_t count_deals(size_t n, size_t k)
{
	double count = 1;

	for (size_t i = 1; i <= MIN(k, n - k); i++)
		count = count * (double)(n + 1 - i) / (double)i;
	return count > MAX_DEALS ? MAX_DEALS + 1 : (size_t)(count + 0.5);
}

/* Store all choices of n_base runs in lexical order. */
static void deal_all(struct shuffles *shuffles)
{
	size_t k = shuffles->n_base, n = k + shuffles->n_head;

	for (size_t i = 0; i < k; i++)
		shuffles->deals[i] = (uint16_t)i;
	for (size_t deal = 1; deal < shuffles->n_deals; deal++) {
		uint16_t *last = &shuffles->deals[(deal - 1) * k], *next = last + k;
		size_t at = k - 1;

		while (last[at] == n - k + at)
			at--;
		for (size_t i = 0; i < k; i++)
			next[i] = (uint16_t)(i < at ? last[i] : last[at] + 1u + i - at);
	}
}

static int deal_some(struct shuffles *shuffles, uint64_t *state)
{
	size_t k = shuffles->n_base, n = k + shuffles->n_head;
	CLEANUP(freep) uint16_t *runs = calloc(n, sizeof *runs);

	if (!runs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		runs[i] = (uint16_t)i;
	for (size_t deal = 0; deal < shuffles->n_deals; deal++) {
		for (size_t i = 0; i < k; i++) {
			size_t other = i + random_below(state, n - i);
			uint16_t run = runs[other];

			runs[other] = runs[i];
			runs[i] = run;
			shuffles->deals[deal * k + i] = run;
		}
	}
	return 0;
}

/* Widen the bootstrap's deviations: they are too small by sqrt((n - 1) / n), and normal instead of Student's t. */
static double spread_of(size_t n)
{
	double freedom = (double)n - 1;

	return sqrt((double)n / freedom) * student_t(0.05, freedom) / student_t(0.05, INFINITY);
}

static int draw_resamples(struct shuffles *shuffles, uint64_t *state)
{
	size_t n_base = shuffles->n_base, n = n_base + shuffles->n_head;

	shuffles->resamples = calloc(N_RESAMPLES * n, sizeof *shuffles->resamples);
	shuffles->scratch = calloc(N_RESAMPLES, sizeof *shuffles->scratch);
	if (!shuffles->resamples || !shuffles->scratch)
		return -ENOMEM;
	for (size_t i = 0; i < N_RESAMPLES * n; i++)
		shuffles->resamples[i] = (uint16_t)(i % n < n_base ? random_below(state, n_base)
								   : n_base + random_below(state, shuffles->n_head));
	shuffles->base_spread = spread_of(n_base);
	shuffles->head_spread = spread_of(shuffles->n_head);
	return 0;
}

int shuffles_init(size_t n_base, size_t n_head, struct shuffles *ret)
{
	CLEANUP(shuffles_done) struct shuffles shuffles = { .n_base = n_base, .n_head = n_head };
	uint64_t state = SEED;
	size_t n_deals;
	int r;

	if (n_base + n_head > MAX_RUNS)
		return -E2BIG;
	n_deals = count_deals(n_base + n_head, n_base);
	if (n_base >= 2 && n_head >= 2 && n_deals >= FEWEST_DEALS) {
		shuffles.is_complete = n_deals <= MAX_DEALS;
		shuffles.n_deals = MIN(n_deals, (size_t)MAX_DEALS);
		shuffles.deals = calloc(shuffles.n_deals * n_base, sizeof *shuffles.deals);
		if (!shuffles.deals)
			return -ENOMEM;
		if (shuffles.is_complete)
			deal_all(&shuffles);
		r = shuffles.is_complete ? 0 : deal_some(&shuffles, &state);
		if (r >= 0)
			r = draw_resamples(&shuffles, &state);
		if (r < 0)
			return r;
	}
	*ret = shuffles;
	shuffles = (struct shuffles){ 0 };
	return 0;
}

void shuffles_done(struct shuffles *shuffles)
{
	free(shuffles->deals);
	free(shuffles->resamples);
	free(shuffles->scratch);
	*shuffles = (struct shuffles){ 0 };
}

/* ---- Permutation ---- */

struct sums {
	double n, sum, squares;
};

static double variance_of_mean(const struct sums *sums)
{
	double variance = (sums->squares - sums->sum * sums->sum / sums->n) / (sums->n - 1);

	/* A difference of equal numbers is rounding error. */
	return variance <= SAME * SAME * sums->squares ? 0 : variance / sums->n;
}

/* Absolute value of Welch's statistic. */
static double welch(const struct sums *base, const struct sums *head)
{
	double difference = fabs(head->sum / head->n - base->sum / base->n);
	double variance = variance_of_mean(base) + variance_of_mean(head);

	if (difference <= SAME * (fabs(base->sum / base->n) + fabs(head->sum / head->n)))
		return 0;
	return variance > 0 ? difference / sqrt(variance) : INFINITY;
}

static struct sums sums_of(const double *values, size_t n)
{
	struct sums sums = { .n = (double)n };

	for (size_t i = 0; i < n; i++) {
		sums.sum += values[i];
		sums.squares += values[i] * values[i];
	}
	return sums;
}

/* @ret_is_least: no other assignment is more extreme than the observed one. */
static double permutation_p(const struct shuffles *shuffles, const double *values, bool *ret_is_least)
{
	struct sums base = sums_of(values, shuffles->n_base);
	struct sums head = sums_of(values + shuffles->n_base, shuffles->n_head);
	struct sums all = { base.n + head.n, base.sum + head.sum, base.squares + head.squares };
	double seen = welch(&base, &head);
	size_t n = 0, n_mirrors = shuffles->n_base == shuffles->n_head ? 2 : 1;

	for (size_t deal = 0; deal < shuffles->n_deals; deal++) {
		const uint16_t *runs = &shuffles->deals[deal * shuffles->n_base];
		struct sums one = { .n = base.n }, other = { .n = head.n };

		for (size_t i = 0; i < shuffles->n_base; i++) {
			double value = values[runs[i]];

			one.sum += value;
			one.squares += value * value;
		}
		other.sum = all.sum - one.sum;
		other.squares = all.squares - one.squares;
		n += welch(&one, &other) >= seen * (1 - SAME);
	}
	*ret_is_least = n <= (shuffles->is_complete ? n_mirrors : 0);
	if (shuffles->is_complete)
		return (double)n / (double)shuffles->n_deals;
	return (double)(n + 1) / (double)(shuffles->n_deals + 1);
}

/* Ranks by size, with the middle rank for equal values. So one slow outlier only counts as the largest value. */
static void rank_values(const double *values, size_t n, double *ranks)
{
	for (size_t i = 0; i < n; i++) {
		ranks[i] = 0;
		for (size_t j = 0; j < n; j++) {
			double near = SAME * (fabs(values[i]) + fabs(values[j]));

			ranks[i] += values[j] < values[i] - near ? 1 : values[j] <= values[i] + near ? 0.5 : 0;
		}
	}
}

/* ---- Intervals ---- */

double stats_odds(double share)
{
	return share < 1 - SAME ? share / (1 - share) : INFINITY;
}

/* The reported number of a mean, and the relative variance of that number. */
struct scale {
	double (*number)(double mean), (*relative_variance)(double mean, double variance);
};

static double itself(double mean)
{
	return mean;
}

static double squared(double mean, double variance)
{
	return variance / mean / mean;
}

/* d log(odds) / dm = 1 / (m (1 - m)). */
static double of_log_odds(double mean, double variance)
{
	return squared(mean * (1 - mean), variance);
}

static const struct scale plain = { itself, squared }, odds = { stats_odds, of_log_odds };

static double relative(double base, double head)
{
	if (isinf(base))
		return isinf(head) ? 0 : -1;
	if (base > 0)
		return head / base - 1;
	return head > 0 ? INFINITY : 0;
}

static double mean_of(const double *values, const uint16_t *runs, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[runs[i]];
	return sum / (double)n;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static void bootstrap(const struct shuffles *shuffles, const double *values, const struct scale *scale,
		      struct estimate *estimate)
{
	size_t n_base = shuffles->n_base, n = n_base + shuffles->n_head;

	for (size_t i = 0; i < N_RESAMPLES; i++) {
		const uint16_t *runs = &shuffles->resamples[i * n];
		double base = mean_of(values, runs, n_base), head = mean_of(values, runs + n_base, shuffles->n_head);

		/* Widen each side's deviation for its number of runs. */
		base = estimate->base + (base - estimate->base) * shuffles->base_spread;
		head = estimate->head + (head - estimate->head) * shuffles->head_spread;
		shuffles->scratch[i] = relative(scale->number(MAX(base, 0)), scale->number(MAX(head, 0)));
	}
	qsort(shuffles->scratch, N_RESAMPLES, sizeof *shuffles->scratch, compare_doubles);
	estimate->low = shuffles->scratch[N_RESAMPLES / 40];
	estimate->high = shuffles->scratch[N_RESAMPLES - 1 - N_RESAMPLES / 40];
}

/* ---- Counts ---- */

/* Variance of a mean: the larger of the count's variance and the observed one. */
static double variance_by_count(const double *values, const double *counting, size_t n)
{
	struct sums sums = sums_of(values, n);
	double counted = 0, seen = n >= 2 ? variance_of_mean(&sums) : 0;

	for (size_t i = 0; i < n; i++)
		counted += counting[i];
	counted /= (double)n * (double)n;
	return MAX(counted, seen);
}

/* p of Welch's statistic, with Welch-Satterthwaite degrees of freedom. */
static double welch_p(const struct shuffles *shuffles, const double *values, const double *counting,
		      const struct estimate *estimate)
{
	size_t n_base = shuffles->n_base, n_head = shuffles->n_head;
	double base = variance_by_count(values, counting, n_base);
	double head = variance_by_count(values + n_base, counting + n_base, n_head);
	double parts = base * base / (double)(n_base - 1) + head * head / (double)(n_head - 1);

	if (base + head <= 0)
		return 1; /* equal values and no counts: the permutation test decides */
	return student_p((estimate->head - estimate->base) / sqrt(base + head), (base + head) * (base + head) / parts);
}

static void estimate_by_deals(const struct shuffles *shuffles, const double *values, const double *counting,
			      const struct scale *scale, struct estimate *estimate)
{
	bool is_least = false;

	rank_values(values, shuffles->n_base + shuffles->n_head, shuffles->scratch);
	estimate->p = permutation_p(shuffles, shuffles->scratch, &is_least);
	if (is_least)
		estimate->p = MIN(estimate->p, welch_p(shuffles, values, counting, estimate));
	bootstrap(shuffles, values, scale, estimate);
}

/* A single value that is no count shows no variation. */
static bool is_spread_known(const double *counting, size_t n)
{
	return n >= 2 || counting[0] > 0;
}

static void estimate_by_count(const struct shuffles *shuffles, const double *values, const double *counting,
			      const struct scale *scale, struct estimate *estimate)
{
	size_t n_base = shuffles->n_base, n_head = shuffles->n_head;
	double freedom = n_base + n_head > 2 ? (double)(n_base + n_head - 2) : INFINITY;
	double base = variance_by_count(values, counting, n_base);
	double head = variance_by_count(values + n_base, counting + n_base, n_head);
	double difference = fabs(estimate->head - estimate->base), error;

	if (!is_spread_known(counting, n_base) || !is_spread_known(counting + n_base, n_head)) {
		estimate->p = 1;
		estimate->low = estimate->high = NAN;
		return;
	}
	estimate->p = difference > 0 ? student_p(difference / sqrt(base + head), freedom) : 1;
	estimate->low = estimate->high = estimate->change;
	if (estimate->base <= 0 || estimate->head <= 0 || !isfinite(estimate->change))
		return;
	/* Use the log of the ratio, so that the interval stays above -100 %. */
	error = sqrt(scale->relative_variance(estimate->base, base) + scale->relative_variance(estimate->head, head)) *
		student_t(0.05, freedom);
	estimate->low = (1 + estimate->change) * exp(-error) - 1;
	estimate->high = (1 + estimate->change) * exp(error) - 1;
}

static void estimate_as(const struct shuffles *shuffles, const double *values, const double *counting,
			const struct scale *scale, struct estimate *ret)
{
	struct sums base = sums_of(values, shuffles->n_base);
	struct sums head = sums_of(values + shuffles->n_base, shuffles->n_head);
	struct estimate estimate = { .base = base.sum / base.n, .head = head.sum / head.n };

	estimate.change = relative(scale->number(estimate.base), scale->number(estimate.head));
	if (shuffles->n_deals > 0)
		estimate_by_deals(shuffles, values, counting, scale, &estimate);
	else
		estimate_by_count(shuffles, values, counting, scale, &estimate);
	estimate.adjusted = estimate.p;
	estimate.base = scale->number(estimate.base);
	estimate.head = scale->number(estimate.head);
	*ret = estimate;
}

void stats_estimate(const struct shuffles *shuffles, const double *values, const double *counting, struct estimate *ret)
{
	estimate_as(shuffles, values, counting, &plain, ret);
}

void stats_estimate_odds(const struct shuffles *shuffles, const double *values, const double *counting,
			 struct estimate *ret)
{
	estimate_as(shuffles, values, counting, &odds, ret);
}

/* ---- Multiple tests ---- */

struct ranked {
	double p;
	size_t at;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	if (left->p != right->p)
		return left->p < right->p ? -1 : 1;
	return left->at < right->at ? -1 : left->at > right->at;
}

static struct ranked *rank(const double *p, size_t n)
{
	struct ranked *ranked = calloc(n + 1, sizeof *ranked);

	for (size_t i = 0; ranked && i < n; i++)
		ranked[i] = (struct ranked){ p[i], i };
	if (ranked)
		qsort(ranked, n, sizeof *ranked, compare_ranked);
	return ranked;
}

int stats_holm(double *p, size_t n)
{
	CLEANUP(freep) struct ranked *ranked = rank(p, n);
	double least = 0;

	if (!ranked)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		least = MAX(least, MIN(1, ranked[i].p * (double)(n - i)));
		p[ranked[i].at] = least;
	}
	return 0;
}

int stats_bh(double *p, size_t n)
{
	CLEANUP(freep) struct ranked *ranked = rank(p, n);
	double most = 1;

	if (!ranked)
		return -ENOMEM;
	for (size_t i = n; i-- > 0;) {
		most = MIN(most, ranked[i].p * (double)n / (double)(i + 1));
		p[ranked[i].at] = most;
	}
	return 0;
}
