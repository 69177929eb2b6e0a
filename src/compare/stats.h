/* SPDX-License-Identifier: MIT */
/* stats.h - whether two lists of measurements differ, by how much, and how sure that is.
 *
 * Nothing here depends on the time, the machine or the locale: shuffles come from a generator with a fixed seed, so
 * the same files give the same answer.
 */
#ifndef PROBING_COMPARE_STATS_H
#define PROBING_COMPARE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "src/compare/compare.h"

/* Random assignments of runs to the two sides, made once for all functions. */
struct shuffles {
	size_t n_base, n_head;
	uint16_t *deals;     /* n_deals times n_base runs that are "base" this time */
	size_t n_deals;      /* 0: too few runs for a permutation test */
	int is_complete;     /* all deals there are, each once; otherwise so many at random */
	uint16_t *resamples; /* N_RESAMPLES times n_base + n_head runs, drawn with replacement from their side */
	double base_spread, head_spread; /* factors that correct a mean's bootstrap for few runs */
	double *scratch;                 /* N_RESAMPLES */
};
enum { N_RESAMPLES = 2000, MAX_RUNS = 1000 };

/* shuffles_init - for so many runs. @ret: ended with shuffles_done(). -ENOMEM; -E2BIG more than MAX_RUNS. */
int shuffles_init(size_t n_base, size_t n_head, struct shuffles *ret);
void shuffles_done(struct shuffles *shuffles);

/*
 * stats_estimate - compare the means of two sides.
 * @values:   those of base, then those of head.
 * @counting: per value, its variance as a count of samples.
 * With enough runs p is that of a permutation test on Welch's statistic of ranks. If Welch's own test has a p below the
 * smallest one of a permutation, that counts. The interval is a bootstrap's, widened for few runs. With fewer runs both
 * are those of the normal distribution, or Student's if there are runs to estimate a spread from. The variance is the
 * larger of those by counting and by runs; for one value on a side that is no count p is 1, and low and high are NAN.
 * The caller corrects p for the number of tests.
 */
void stats_estimate(const struct shuffles *shuffles, const double *values, const double *counting,
		    struct estimate *ret);

/*
 * stats_estimate_odds - the same for shares, 0 to 1, as odds: base and head are m / (1 - m) of the shares' mean m,
 * and change, low and high are of those. @counting: variances of the shares. By counts alone the logarithm of the
 * odds of x in T samples varies by 1 / x + 1 / (T - x) if counting is the binomial's. The p is that of the shares:
 * odds have the same order.
 */
void stats_estimate_odds(const struct shuffles *shuffles, const double *values, const double *counting,
			 struct estimate *ret);

/* The odds of a share; INFINITY for 1, within rounding. */
double stats_odds(double share);

/*
 * Corrections for n tests at once, in place; they keep the order.
 * stats_holm: bounds the probability of any false result. stats_bh: bounds the share of false ones among the
 * significant results (Benjamini and Hochberg).
 * Errors: -ENOMEM.
 */
int stats_holm(double *p, size_t n);
int stats_bh(double *p, size_t n);

/* Student's distribution: the chance of a value beyond +-t, and the t beyond which it is p. @freedom: INFINITY is the
 * normal distribution. */
double student_p(double t, double freedom);
double student_t(double p, double freedom);

#endif
