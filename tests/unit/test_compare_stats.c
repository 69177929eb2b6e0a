/* SPDX-License-Identifier: MIT */
/* test_compare_stats.c - estimates, against numbers known from tables and against chance itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four headers above. */
#include <cmocka.h>

#include <errno.h>
#include <math.h>

#include "base/util.h"
#include "src/compare/stats.h"

static uint64_t state = 42;

/* 0 to 1, neither of them; another generator than the one that is tested. */
static double uniform(void)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(state >> 33) + 0.5) / 2147483648.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static void assert_near(double value, double expected, double within)
{
	if (!(fabs(value - expected) <= within))
		fail_msg("%.9g, not %.9g", value, expected);
}

/* Student's distribution, from the tables of Abramowitz and Stegun (26.10). */
static void test_student(void **unused)
{
	(void)unused;
	assert_near(student_t(0.05, 1), 12.706, 0.001);
	assert_near(student_t(0.05, 10), 2.228, 0.001);
	assert_near(student_t(0.01, 4), 4.604, 0.001);
	assert_near(student_t(0.05, INFINITY), 1.960, 0.001);
	assert_near(student_p(2.228, 10), 0.05, 0.0001);
	assert_near(student_p(0, 7), 1, 1e-12);
	assert_near(student_p(-2.228, 10), student_p(2.228, 10), 1e-15);
	assert_near(student_p(INFINITY, 3), 0, 0);
}

static void test_corrections(void **unused)
{
	static const double holm[] = { 0.03, 0.06, 0.06, 0.02 }, bh[] = { 0.02, 0.04, 0.04, 0.02 };
	double p[] = { 0.01, 0.04, 0.03, 0.005 }, q[] = { 0.01, 0.04, 0.03, 0.005 }, high[] = { 0.9, 0.8 };

	(void)unused;
	assert_int_equal(stats_holm(p, 4), 0);
	assert_int_equal(stats_bh(q, 4), 0);
	for (size_t i = 0; i < 4; i++) {
		assert_near(p[i], holm[i], 1e-12);
		assert_near(q[i], bh[i], 1e-12);
	}
	assert_int_equal(stats_holm(high, 2), 0);
	assert_near(high[0], 1, 0);
	assert_near(high[1], 1, 0);
	assert_int_equal(stats_bh(NULL, 0), 0);
}

static struct estimate estimate_of(size_t n_base, size_t n_head, const double *values, const double *counting)
{
	CLEANUP(shuffles_done) struct shuffles shuffles = { 0 };
	struct estimate estimate = { 0 };

	assert_int_equal(shuffles_init(n_base, n_head, &shuffles), 0);
	stats_estimate(&shuffles, values, counting, &estimate);
	return estimate;
}

/* Of all 70 permutations of 4 and 4, only this one and its mirror are as far apart. */
static void test_all_deals(void **unused)
{
	static const double apart[] = { 1, 2, 3, 4, 11, 12, 13, 14 }, mixed[] = { 1, 4, 2, 3, 2, 3, 1, 4 };
	static const double equal[] = { 5, 5, 5, 5, 5, 5, 5, 5 };
	static const double zeros[16], wide[] = { 400, 400, 400, 400, 400, 400, 400, 400 };
	struct estimate estimate = estimate_of(4, 4, apart, zeros), again = estimate_of(4, 4, apart, zeros);

	(void)unused;
	assert_near(estimate_of(4, 4, apart, wide).p, 2.0 / 70, 1e-12); /* counts that vary that much say no more */
	assert_near(estimate.p, student_p(10 / sqrt(2 * 5.0 / 12), 6), 1e-9); /* Welch's own */
	assert_true(estimate.p < 1e-4);
	assert_near(estimate.base, 2.5, 1e-12);
	assert_near(estimate.head, 12.5, 1e-12);
	assert_near(estimate.change, 4, 1e-12);
	assert_true(estimate.low > 1 && estimate.low < 4 && estimate.high > 4);
	assert_memory_equal(&estimate, &again, sizeof estimate);
	assert_near(estimate_of(4, 4, mixed, zeros).p, 1, 1e-12);
	assert_near(estimate_of(4, 4, equal, zeros).p, 1, 1e-12);
	assert_near(estimate_of(4, 4, equal, zeros).change, 0, 0);
	assert_near(estimate_of(4, 4, zeros, zeros).change, 0, 0);
}

static void test_none_before(void **unused)
{
	static const double values[] = { 0, 0, 0, 0, 1, 2, 1, 2 }, zeros[8];
	struct estimate estimate = estimate_of(4, 4, values, zeros);

	(void)unused;
	assert_true(isinf(estimate.change) && isinf(estimate.high));
	assert_true(estimate.p <= 2.0 / 70);
}

/* One run a side: 100 samples and 100 are the same, 400 and 500 are not; 4 and 5 may be. */
static void test_counts_alone(void **unused)
{
	static const double same[] = { 100, 100 }, more[] = { 400, 500 }, few[] = { 4, 5 };
	struct estimate estimate;

	(void)unused;
	assert_near(estimate_of(1, 1, same, same).p, 1, 1e-12);
	estimate = estimate_of(1, 1, more, more);
	assert_near(estimate.p, 0.00086, 0.00002); /* 100 / sqrt(900) = 3.33 deviations */
	assert_true(estimate.low > 0.05 && estimate.high < 0.45);
	assert_true(estimate_of(1, 1, few, few).p > 0.5);
}

/* 400 of 1000 samples and 500 of 1000: 2 of 3 and 1 of 1, a half more. Its logarithm varies by 1/400 + 1/600 + 1/500 + 1/500, the
 * square of 0.09037. */
static void test_odds_of_counts(void **unused)
{
	static const double shares[] = { 0.4, 0.5 }, binomial[] = { 0.4 * 0.6 / 1000, 0.5 * 0.5 / 1000 };
	static const double all[] = { 0.5, 1 }, none[] = { 0, 0.5 };
	CLEANUP(shuffles_done) struct shuffles shuffles = { 0 };
	struct estimate estimate;

	(void)unused;
	assert_int_equal(shuffles_init(1, 1, &shuffles), 0);
	stats_estimate_odds(&shuffles, shares, binomial, &estimate);
	assert_near(estimate.base, 2.0 / 3, 1e-12);
	assert_near(estimate.head, 1, 1e-12);
	assert_near(estimate.change, 0.5, 1e-12);
	assert_near(estimate.low, 1.5 * exp(-0.0903696 * 1.959964) - 1, 1e-6);
	assert_near(estimate.high, 1.5 * exp(0.0903696 * 1.959964) - 1, 1e-6);
	assert_near(estimate.p, student_p(0.1 / sqrt(0.00049), INFINITY), 1e-12);
	stats_estimate_odds(&shuffles, all, binomial, &estimate);
	assert_true(isinf(estimate.head) && isinf(estimate.change));
	stats_estimate_odds(&shuffles, none, binomial, &estimate);
	assert_near(estimate.base, 0, 0);
	assert_true(isinf(estimate.change));
	assert_true(isinf(stats_odds(1)));
}

/*
 * Test how often the interval contains the true change of the odds; runs of 300 samples, whose shares vary by counting.
 */
static void test_intervals_of_odds(void **unused)
{
	CLEANUP(shuffles_done) struct shuffles shuffles = { 0 };
	double shares[16], counting[16];
	unsigned n_covered = 0, n_false = 0, n_trials = 300;

	(void)unused;
	assert_int_equal(shuffles_init(8, 8, &shuffles), 0);
	for (unsigned trial = 0; trial < 2 * n_trials; trial++) {
		struct estimate estimate;
		bool is_same = trial >= n_trials;

		for (size_t i = 0; i < N_ELEMENTS(shares); i++) {
			double mean = i < 8 || is_same ? 0.4 : 0.44 / 1.04; /* odds of 2 to 3, and a tenth more */

			counting[i] = mean * (1 - mean) / 300;
			shares[i] = mean + sqrt(counting[i]) * normal();
		}
		stats_estimate_odds(&shuffles, shares, counting, &estimate);
		n_covered += !is_same && estimate.low <= 0.1 && estimate.high >= 0.1;
		n_false += is_same && estimate.p <= 0.05;
	}
	assert_near((double)n_covered / n_trials, 0.95, 0.035);
	assert_near((double)n_false / n_trials, 0.05, 0.035);
}

/* Two runs a side that differ much by themselves say little, however many samples they have. */
static void test_few_runs_go_by_their_spread(void **unused)
{
	static const double values[] = { 100, 200, 160, 290 }, counting[] = { 1, 1, 1, 1 };
	struct estimate estimate = estimate_of(2, 2, values, counting);

	(void)unused;
	assert_true(estimate.p > 0.2);
	assert_true(estimate.low < 0 && estimate.high > 0.5);
}

/* How often chance alone is called a change; times with a long tail, as run times are. */
static double false_share(size_t n_base, size_t n_head, unsigned n_trials)
{
	CLEANUP(shuffles_done) struct shuffles shuffles = { 0 };
	static const double zeros[64];
	double values[64];
	unsigned n = 0;

	assert_int_equal(shuffles_init(n_base, n_head, &shuffles), 0);
	for (unsigned trial = 0; trial < n_trials; trial++) {
		struct estimate estimate;

		for (size_t i = 0; i < n_base + n_head; i++)
			values[i] = 1 - 0.2 * log(uniform());
		stats_estimate(&shuffles, values, zeros, &estimate);
		n += estimate.p <= 0.05;
	}
	return (double)n / n_trials;
}

static void test_false_alarms(void **unused)
{
	(void)unused;
	assert_near(false_share(5, 5, 2000), 0.045, 0.02);
	assert_near(false_share(10, 10, 500), 0.05, 0.03); /* more deals than are tried */
	assert_near(false_share(4, 12, 1000), 0.05, 0.025);
}

/* How often the interval has the true change in it, and how often a change of 10 % is seen at all, with 3 % of noise. */
static void test_intervals(void **unused)
{
	CLEANUP(shuffles_done) struct shuffles shuffles = { 0 };
	static const double zeros[64];
	double values[64];
	unsigned n_covered = 0, n_seen = 0, n_trials = 300;

	(void)unused;
	assert_int_equal(shuffles_init(10, 10, &shuffles), 0);
	for (unsigned trial = 0; trial < n_trials; trial++) {
		struct estimate estimate;

		for (size_t i = 0; i < 20; i++)
			values[i] = (i < 10 ? 1 : 1.1) * (1 + 0.03 * normal());
		stats_estimate(&shuffles, values, zeros, &estimate);
		n_covered += estimate.low <= 0.1 && estimate.high >= 0.1;
		n_seen += estimate.p <= 0.05;
	}
	assert_near((double)n_covered / n_trials, 0.95, 0.035);
	assert_true(n_seen >= n_trials * 95 / 100);
}

/* A hundred functions at once, five runs a side: hardly one of them is called changed by chance, by Holm, in a comparison. */
static void test_false_alarms_of_many(void **unused)
{
	enum { N = 100, N_TRIALS = 100 };
	CLEANUP(shuffles_done) struct shuffles shuffles = { 0 };
	static const double zeros[10];
	unsigned n_wrong = 0;

	(void)unused;
	assert_int_equal(shuffles_init(5, 5, &shuffles), 0);
	for (unsigned trial = 0; trial < N_TRIALS; trial++) {
		double p[N], least = 1;

		for (unsigned i = 0; i < N; i++) {
			struct estimate estimate;
			double values[10];

			for (size_t j = 0; j < N_ELEMENTS(values); j++)
				values[j] = 1 - 0.2 * log(uniform());
			stats_estimate(&shuffles, values, zeros, &estimate);
			p[i] = estimate.p;
		}
		assert_int_equal(stats_holm(p, N), 0);
		for (unsigned i = 0; i < N; i++)
			least = fmin(least, p[i]);
		n_wrong += least <= 0.05;
	}
	if (n_wrong > 10)
		fail_msg("%u of %d comparisons had a false alarm", n_wrong, N_TRIALS);
}

static void test_too_many_runs(void **unused)
{
	struct shuffles shuffles;

	(void)unused;
	assert_int_equal(shuffles_init(600, 600, &shuffles), -E2BIG);
}

/* ---- Series ---- */

/* Levels of 8 to 200 measurements are found at their places, and said to be sure. */
static void test_changes_are_found(void **unused)
{
	static const size_t lengths[] = { 150, 40, 210 };
	static const double levels[] = { 1, 1.3, 1 };
	struct series_part parts[SERIES_MAX_PARTS];
	struct estimate estimate;
	double values[400];
	size_t n = 0;

	(void)unused;
	for (size_t i = 0; i < N_ELEMENTS(lengths); i++)
		for (size_t k = 0; k < lengths[i]; k++)
			values[n++] = levels[i] * (1 + 0.05 * normal());
	assert_int_equal(series_split(values, n, parts), 3);
	for (size_t i = 0, first = 0; i < N_ELEMENTS(lengths); first += lengths[i++]) {
		assert_near((double)parts[i].first, (double)first, 2);
		assert_near((double)parts[i].n, (double)lengths[i], 4);
		assert_near(parts[i].mean, levels[i], 0.05);
	}
	assert_int_equal(compare_lists(values, 150, values + 150, 40, &estimate), 0);
	assert_near(estimate.change, 0.3, 0.05);
	assert_true(estimate.low > 0.2 && estimate.high < 0.4 && estimate.p < 1e-6);
}

static void test_what_does_not_change_is_one_part(void **unused)
{
	enum { N_TRIALS = 300, N = 300 };
	struct series_part parts[SERIES_MAX_PARTS];
	double values[N];
	unsigned n_wrong = 0;

	(void)unused;
	for (unsigned trial = 0; trial < N_TRIALS; trial++) {
		for (size_t i = 0; i < N; i++) /* now and then one takes ten times as long */
			values[i] = (1 - 0.2 * log(uniform())) * (uniform() < 0.02 ? 10 : 1);
		n_wrong += series_split(values, N, parts) != 1;
	}
	if (n_wrong > N_TRIALS / 100)
		fail_msg("%u of %d series were divided", n_wrong, N_TRIALS);
	for (size_t i = 0; i < N; i++)
		values[i] = 7;
	assert_int_equal(series_split(values, N, parts), 1);
	assert_int_equal(series_split(values, 0, parts), 1);
	assert_int_equal(parts[0].n, 0);
}

/* What the sum of equal numbers lacks is no measurement, and says nothing about neighbours. */
static void test_equal_measurements_are_not_alike(void **unused)
{
	enum { N = 1999 };
	struct series_part parts[SERIES_MAX_PARTS];
	static double values[N];
	double alike;

	(void)unused;
	for (size_t i = 0; i < N; i++)
		values[i] = log(i < N / 2 ? 1.1 : 1.3);
	assert_int_equal(series_split(values, N, parts), 2);
	assert_int_equal(series_join(values, N, parts, 2, 1, &alike), 2);
	assert_near(alike, 1, 0);
	for (size_t i = 0; i < N; i++)
		values[i] += 1e-6 * normal();
	assert_int_equal(series_join(values, N, parts, 2, 1, &alike), 2);
	assert_near(alike, 1, 0.5);
}

/* Of more measurements than are tested one by one, neighbours are one. */
static void test_long_lists(void **unused)
{
	static double base[5000], head[3000];
	struct estimate estimate;

	(void)unused;
	for (size_t i = 0; i < N_ELEMENTS(base); i++)
		base[i] = 1 + 0.3 * uniform();
	for (size_t i = 0; i < N_ELEMENTS(head); i++)
		head[i] = 1.1 * (1 + 0.3 * uniform());
	assert_int_equal(compare_lists(base, N_ELEMENTS(base), head, N_ELEMENTS(head), &estimate), 0);
	assert_near(estimate.change, 0.1, 0.01);
	assert_true(estimate.p < 1e-6);
	assert_int_equal(compare_lists(base, 1, head, 1, &estimate), 0);
	assert_near(estimate.p, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_student),
		cmocka_unit_test(test_corrections),
		cmocka_unit_test(test_all_deals),
		cmocka_unit_test(test_none_before),
		cmocka_unit_test(test_counts_alone),
		cmocka_unit_test(test_few_runs_go_by_their_spread),
		cmocka_unit_test(test_false_alarms),
		cmocka_unit_test(test_false_alarms_of_many),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_too_many_runs),
		cmocka_unit_test(test_odds_of_counts),
		cmocka_unit_test(test_intervals_of_odds),
		cmocka_unit_test(test_changes_are_found),
		cmocka_unit_test(test_what_does_not_change_is_one_part),
		cmocka_unit_test(test_equal_measurements_are_not_alike),
		cmocka_unit_test(test_long_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
