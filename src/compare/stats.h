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

/* The ways in which the runs of two sides are dealt anew, made once for all functions. */
struct shuffles {
	size_t n_base, n_head;
	uint16_t *deals;     /* n_deals times n_base runs that are "base" this time */
	size_t n_deals;      /* 0: too few runs to tell anything from dealing them */
	int is_complete;     /* all deals there are, each once; otherwise so many at random */
	uint16_t *resamples; /* N_RESAMPLES times n_base + n_head runs, drawn with replacement from their side */
	double base_spread, head_spread; /* what a mean's bootstrap is too narrow by, with so few runs */
	double *scratch;                 /* N_RESAMPLES */
};
enum { N_RESAMPLES = 2000, MAX_RUNS = 1000 };

/* shuffles_init - for so many runs. @ret: ended with shuffles_done(). -ENOMEM; -E2BIG more than MAX_RUNS. */
int shuffles_init(size_t n_base, size_t n_head, struct shuffles *ret);
void shuffles_done(struct shuffles *shuffles);

/*
 * stats_estimate - compare the means of two sides.
 * @values:   those of base, then those of head.
 * @counting: by value, the variance that it has for being a count of samples.
 * With enough runs p is that of a permutation test on Welch's statistic of ranks (of Welch's own test where that is below what
 * a permutation can say), and the interval a bootstrap's, widened for few runs. With fewer both are those of the normal (Student's, where there are runs to estimate a spread from) with the
 * larger of the variances that counting and the runs say; of one value on a side that is no count p is 1, and low and high are NAN. p is not yet corrected for how many were asked.
 */
void stats_estimate(const struct shuffles *shuffles, const double *values, const double *counting,
		    struct estimate *ret);

/*
 * stats_estimate_odds - the same of shares, 0 to 1, as odds: base and head are m / (1 - m) of the shares' mean m, and change, low
 * and high are of those. @counting: variances of the shares. By counts alone the logarithm of the odds of x in T samples
 * varies by 1 / x + 1 / (T - x) where counting is the binomial's.
 * p is that of the shares: odds have the same order.
 */
void stats_estimate_odds(const struct shuffles *shuffles, const double *values, const double *counting,
			 struct estimate *ret);

/* Of a share its odds; INFINITY of 1, or what sums of it may come to. */
double stats_odds(double share);

/*
 * Corrections for n questions at once, in place, order kept.
 * stats_holm: the chance of one false answer or more stays below. stats_bh: the share of false ones among those
 * that are said to differ does (Benjamini and Hochberg).
 * Errors: -ENOMEM.
 */
int stats_holm(double *p, size_t n);
int stats_bh(double *p, size_t n);

/* Student's distribution: the chance of a value beyond +-t, and the t beyond which it is p. @freedom: INFINITY is the
 * normal distribution. */
double student_p(double t, double freedom);
double student_t(double p, double freedom);

#endif
