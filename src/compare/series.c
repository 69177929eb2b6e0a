/* SPDX-License-Identifier: MIT */
/* series.c - measurements in the order of time: where their level changes, and whether two stretches differ. See compare.h. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/compare/stats.h"

enum {
	MAX_BLOCKS = 200,
	FEW = 20,      /* one measurement in so many may be of any size */
	MAX_LAG = 256, /* correlations of measurements that are farther apart are not measured */
	N_ROUNDS = 4,  /* until the correction of correlations is stable */
};
#define CANDIDATE 0.01  /* p, corrected for the number of places, below which a place is divided */
#define MIN_CHANGE 0.03 /* of the mean; smaller changes are of no interest, and only take time */

/* ---- Two lists ---- */

/* Means of neighbours, in at most MAX_BLOCKS blocks of nearly equal length. Returns how many. */
static size_t put_blocks(const double *values, size_t n, double *to)
{
	size_t n_blocks = MIN(n, (size_t)MAX_BLOCKS);

	for (size_t block = 0; block < n_blocks; block++) {
		size_t first = n * block / n_blocks, end = n * (block + 1) / n_blocks;

		to[block] = 0;
		for (size_t i = first; i < end; i++)
			to[block] += values[i] / (double)(end - first);
	}
	return n_blocks;
}

int compare_lists(const double *base, size_t n_base, const double *head, size_t n_head, struct estimate *ret)
{
	double values[2 * MAX_BLOCKS], counting[2 * MAX_BLOCKS] = { 0 }; /* times are no counts */
	CLEANUP(shuffles_done) struct shuffles shuffles = { 0 };
	size_t n_base_blocks = put_blocks(base, n_base, values);
	size_t n_head_blocks = put_blocks(head, n_head, values + n_base_blocks);
	int r = shuffles_init(n_base_blocks, n_head_blocks, &shuffles);

	if (r < 0)
		return r;
	stats_estimate(&shuffles, values, counting, ret);
	return 0;
}

/* ---- Changes ---- */

struct ranked_value {
	double value, rank;
	size_t at;
};

static int compare_values(const void *a, const void *b)
{
	const struct ranked_value *left = a, *right = b;

	return (left->value > right->value) - (left->value < right->value);
}

static int compare_places(const void *a, const void *b)
{
	const struct ranked_value *left = a, *right = b;

	return (left->at > right->at) - (left->at < right->at);
}

/* Ranks from 1 on, the middle one for equal values, in the order of the series. Returns the sum of t^3 - t of ties. */
static double rank_all(const double *values, size_t n, struct ranked_value *ranked)
{
	double ties = 0;
	size_t end;

	for (size_t i = 0; i < n; i++)
		ranked[i] = (struct ranked_value){ .value = values[i], .at = i };
	qsort(ranked, n, sizeof *ranked, compare_values);
	for (size_t i = 0; i < n; i = end) {
		double length;

		for (end = i + 1; end < n && ranked[end].value <= ranked[i].value;)
			end++;
		length = (double)(end - i);
		ties += length * length * length - length;
		for (size_t k = i; k < end; k++)
			ranked[k].rank = (double)i + (length + 1) / 2;
	}
	qsort(ranked, n, sizeof *ranked, compare_places);
	return ties;
}

/* A stretch of a part: from first to before end. */
struct stretch {
	size_t first, end;
};

/* Ranks of a part, as sums from its start on. */
struct rank_sums {
	double *sums; /* n + 1 */
	size_t n;
	double ties;
};

/* Wilcoxon's statistic of a stretch against the rest, in deviations. 0: one of them is too short, or all values are equal. */
static double statistic(const struct rank_sums *ranks, struct stretch stretch)
{
	double n = (double)ranks->n, k = (double)(stretch.end - stretch.first), variance;

	if (k < SERIES_MIN_PART || n - k < SERIES_MIN_PART)
		return 0;
	variance = k * (n - k) / 12 * (n + 1 - ranks->ties / (n * (n - 1)));
	if (variance <= 0)
		return 0;
	return fabs(ranks->sums[stretch.end] - ranks->sums[stretch.first] - k * (n + 1) / 2) / sqrt(variance);
}

double series_places(size_t n, bool is_at_end)
{
	double blocks = (double)MIN(n, (size_t)MAX_BLOCKS);

	return is_at_end ? (double)n : MAX((double)n, blocks * blocks / 2);
}

/* Whether what is left beside a stretch is long enough to be a part. */
static bool leaves_parts(const struct rank_sums *ranks, struct stretch stretch)
{
	return (stretch.first == 0 || stretch.first >= SERIES_MIN_PART) &&
	       (stretch.end == ranks->n || ranks->n - stretch.end >= SERIES_MIN_PART);
}

static double p_of(const struct rank_sums *ranks, struct stretch stretch)
{
	bool is_at_end = stretch.first == 0 || stretch.end == ranks->n;
	double p = student_p(statistic(ranks, stretch), INFINITY);

	return leaves_parts(ranks, stretch) ? p * series_places(ranks->n, is_at_end) : INFINITY;
}

/* The most improbable stretch of blocks. Returns its p, corrected. */
static double find_blocks(const struct rank_sums *ranks, struct stretch *best)
{
	size_t n_blocks = MIN(ranks->n, (size_t)MAX_BLOCKS);
	double least = INFINITY;

	for (size_t first = 0; first < n_blocks; first++)
		for (size_t end = first + 1; end <= n_blocks; end++) {
			struct stretch stretch = { ranks->n * first / n_blocks, ranks->n * end / n_blocks };
			double p = statistic(ranks, stretch) > 2 ? p_of(ranks, stretch) : INFINITY;

			if (p < least || (p <= least && statistic(ranks, stretch) > statistic(ranks, *best))) {
				least = p;
				*best = stretch;
			}
		}
	return least;
}

/* Move an end of the stretch by less than two blocks, to where it is the most improbable. */
static void refine(const struct rank_sums *ranks, size_t *end, struct stretch *stretch)
{
	size_t length = 2 * (ranks->n / MIN(ranks->n, (size_t)MAX_BLOCKS) + 1), from = *end, best = from;
	double most = statistic(ranks, *stretch);

	if (from == 0 || from == ranks->n)
		return;
	for (size_t at = from > length ? from - length : 1; at < MIN(from + length, ranks->n); at++) {
		*end = at;
		if (stretch->first < stretch->end && leaves_parts(ranks, *stretch) &&
		    statistic(ranks, *stretch) > most) {
			most = statistic(ranks, *stretch);
			best = at;
		}
	}
	*end = best;
}

static double mean_of_stretch(const double *values, size_t first, size_t end)
{
	double sum = 0;

	for (size_t i = first; i < end; i++)
		sum += values[i];
	return sum / (double)(end - first);
}

/* The stretch of a part whose level is another one. false: there is none. @scratch: n and n + 1. */
static bool find_stretch(const double *values, size_t n, struct ranked_value *ranked, double *sums, struct stretch *ret)
{
	struct rank_sums ranks = { .sums = sums, .n = n };
	double inside, outside;

	if (n < 2 * SERIES_MIN_PART)
		return false;
	ranks.ties = rank_all(values, n, ranked);
	sums[0] = 0;
	for (size_t i = 0; i < n; i++)
		sums[i + 1] = sums[i] + ranked[i].rank;
	*ret = (struct stretch){ 0, n };
	if (find_blocks(&ranks, ret) > CANDIDATE)
		return false;
	refine(&ranks, &ret->first, ret);
	refine(&ranks, &ret->end, ret);
	inside = mean_of_stretch(values, ret->first, ret->end);
	outside = (mean_of_stretch(values, 0, n) * (double)n - inside * (double)(ret->end - ret->first)) /
		  (double)(n - (ret->end - ret->first));
	return fabs(inside - outside) >= MIN_CHANGE * fabs(outside);
}

/* Put a part behind ret[at], which begins at @first of the series. */
static void cut(struct series_part *parts, size_t *n_parts, size_t at, size_t first)
{
	for (size_t i = *n_parts; i > at + 1; i--)
		parts[i] = parts[i - 1];
	parts[at + 1] = (struct series_part){ .first = first, .n = parts[at].first + parts[at].n - first };
	parts[at].n = first - parts[at].first;
	++*n_parts;
}

int series_split(const double *values, size_t n, struct series_part *ret)
{
	CLEANUP(freep) struct ranked_value *ranked = calloc(n + 1, sizeof *ranked);
	CLEANUP(freep) double *sums = calloc(n + 1, sizeof *sums);
	size_t n_parts = 1, at = 0;

	if (!ranked || !sums)
		return -ENOMEM;
	ret[0] = (struct series_part){ .n = n };
	while (at < n_parts) {
		struct series_part *part = &ret[at];
		size_t first = part->first, length = part->n;
		struct stretch stretch;

		if (n_parts + 2 > SERIES_MAX_PARTS || !find_stretch(values + first, length, ranked, sums, &stretch)) {
			part->mean = length > 0 ? mean_of_stretch(values, first, first + length) : 0;
			at++;
			continue;
		}
		if (stretch.end < length)
			cut(ret, &n_parts, at, first + stretch.end);
		if (stretch.first > 0)
			cut(ret, &n_parts, at, first + stretch.first);
	}
	return (int)n_parts;
}

/* ---- Measurements that are alike ---- */

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double series_level(const double *values, size_t n, double *clipped)
{
	double low, high, sum = 0;

	if (n == 0)
		return 0;
	memcpy(clipped, values, n * sizeof *values);
	qsort(clipped, n, sizeof *clipped, compare_doubles);
	low = clipped[n / FEW];
	high = clipped[n - 1 - n / FEW];
	for (size_t i = 0; i < n; i++) {
		clipped[i] = MIN(MAX(values[i], low), high);
		sum += clipped[i];
	}
	return sum / (double)n;
}

/* Values without the levels of their parts. */
struct residuals {
	double *values; /* n */
	size_t n, n_parts;
	double squares;
	double correlations[MAX_LAG + 1]; /* from 1 to n_known measurements apart */
	size_t n_known;
};

static void take_residuals(const double *values, struct series_part *parts, struct residuals *residuals)
{
	residuals->squares = 0;
	residuals->n_known = 0;
	for (size_t k = 0; k < residuals->n_parts; k++) {
		double *to = residuals->values + parts[k].first, rounding;

		parts[k].mean = series_level(values + parts[k].first, parts[k].n, to);
		rounding = fabs(parts[k].mean) * (double)parts[k].n * DBL_EPSILON;
		for (size_t i = 0; i < parts[k].n; i++) {
			to[i] -= parts[k].mean;
			if (fabs(to[i]) <= rounding) /* equal values, whose sum is not exact, would seem all alike */
				to[i] = 0;
			residuals->squares += to[i] * to[i];
		}
	}
}

static double correlation(struct residuals *residuals, size_t lag)
{
	while (residuals->n_known < lag) {
		size_t apart = ++residuals->n_known;
		double sum = 0;

		for (size_t i = apart; i < residuals->n; i++)
			sum += residuals->values[i] * residuals->values[i - apart];
		residuals->correlations[apart] = sum / residuals->squares;
	}
	return residuals->correlations[lag];
}

/*
 * How many neighbours are alike. @ret_missing: the share of the variance that the residuals lack, because the levels were
 * taken from them: every correlation is too small by it.
 */
static double count_alike(struct residuals *residuals, double *ret_missing)
{
	size_t most = MIN(residuals->n / 4, (size_t)MAX_LAG);
	double n_alike = 1, missing = 0;

	for (unsigned round = 0; round < N_ROUNDS && residuals->squares > 0; round++) {
		double sum = 0;

		missing = MIN(n_alike * (double)residuals->n_parts / (double)residuals->n, 0.5);
		for (size_t lag = 1; lag + 1 <= most; lag += 2) {
			double both = 2 * missing +
				      (1 - missing) * (correlation(residuals, lag) + correlation(residuals, lag + 1));

			if (both <= 0)
				break;
			sum += both;
		}
		n_alike = 1 + 2 * sum;
	}
	*ret_missing = missing;
	return n_alike;
}

/* p, corrected for the number of places, of the difference between a part and the next one. */
static double p_of_neighbours(const struct residuals *residuals, const struct series_part *part, double n_alike,
			      double missing)
{
	double n = (double)residuals->n, variance = residuals->squares / n / (1 - missing);
	double error = variance * (MIN(n_alike / (double)part[0].n, 1) + MIN(n_alike / (double)part[1].n, 1));
	double freedom = MAX(n / n_alike - (double)residuals->n_parts, 1);

	if (error <= 0)
		return 0;
	return student_p((part[1].mean - part[0].mean) / sqrt(error), freedom) * series_places(residuals->n, true);
}

/* Index of the part that differs the least surely from the next one. */
static size_t most_doubtful(const struct residuals *residuals, const struct series_part *parts, double n_alike,
			    double missing, double *ret_p)
{
	size_t at = 0;

	*ret_p = -1;
	for (size_t i = 0; i + 1 < residuals->n_parts; i++) {
		double p = p_of_neighbours(residuals, &parts[i], n_alike, missing);

		if (p > *ret_p) {
			*ret_p = p;
			at = i;
		}
	}
	return at;
}

int series_join(const double *values, size_t n, struct series_part *parts, size_t n_parts, double least_alike,
		double *ret_alike)
{
	CLEANUP(freep) double *scratch = calloc(n + 1, sizeof *scratch);
	struct residuals residuals = { .values = scratch, .n = n, .n_parts = n_parts };
	double missing, p;

	if (!scratch)
		return -ENOMEM;
	for (;;) {
		size_t at;

		take_residuals(values, parts, &residuals);
		*ret_alike = MAX(count_alike(&residuals, &missing), least_alike);
		at = most_doubtful(&residuals, parts, *ret_alike, missing, &p);
		if (p <= CANDIDATE)
			return (int)residuals.n_parts;
		parts[at].n += parts[at + 1].n;
		residuals.n_parts--;
		for (size_t i = at + 1; i < residuals.n_parts; i++)
			parts[i] = parts[i + 1];
	}
}
