/* SPDX-License-Identifier: MIT */
/*
 * compute.c - the matrix of functions and runs, and the test of each of its rows.
 *
 * A run's value is its weight divided by the comparison's divisor (struct scale); by the rest it is a share, and the
 * estimate has its odds. The total of a node is
 * the sum of the nodes below; a function's total is that of those of its nodes that are not below another of its own,
 * so that recursion counts once.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "src/compare/function_table.h"
#include "src/compare/stats.h"

#define LIMIT 0.05            /* probability of a false "has changed" */
enum { FEWEST_SAMPLES = 10 }; /* per side over all runs: with fewer samples no change is significant */

/* Per run: the factor from weight to value, and the value of one sample. */
struct scale {
	double factor, one_sample;
};

struct matrix { /* n_recorded values per row */
	size_t n_runs;
	double *self, *total;
};

struct computation {
	struct compare *compare;
	size_t n_runs; /* recorded runs */
	struct scale *scales;
	struct shuffles shuffles;
	bool *is_outermost; /* by node: no caller is the same function */
	struct matrix functions, stacks;
	double *counting;      /* variances of one row */
	double whole[N_SIDES]; /* mean of everything, the reference of shares */
};

static void computation_done(struct computation *computation)
{
	shuffles_done(&computation->shuffles);
	free(computation->scales);
	free(computation->is_outermost);
	free(computation->functions.self);
	free(computation->functions.total);
	free(computation->stacks.self);
	free(computation->stacks.total);
	free(computation->counting);
}

/* ---- Runs ---- */

static int group_of(const struct compare_run *run)
{
	return (run->is_recorded ? 0 : N_SIDES) + (int)run->side;
}

/* Order: base, head, then timed runs; each in order of arrival. */
static int order_runs(struct compare *compare)
{
	struct compare_run *ordered = calloc(compare->n_runs + 1, sizeof *ordered);
	size_t n = 0;

	if (!ordered)
		return -ENOMEM;
	for (int group = 0; group < 2 * N_SIDES; group++)
		for (size_t i = 0; i < compare->n_runs; i++)
			if (group_of(&compare->runs[i]) == group)
				ordered[n++] = compare->runs[i];
	for (size_t i = 0; i < n; i++) {
		size_t *count = ordered[i].is_recorded ? compare->n_side : compare->n_timed;

		count[ordered[i].side]++;
	}
	free(compare->runs);
	compare->runs = ordered;
	compare->runs_allocated = compare->n_runs + 1;
	return compare->n_side[SIDE_BASE] > 0 && compare->n_side[SIDE_HEAD] > 0 ? 0 : -ENODATA;
}

/* Divisor of a run's weights; NAN: unknown. */
static double divisor(const struct compare *compare, const struct compare_run *run)
{
	double one = compare->unit ? 1 : 1e9;

	switch (compare->options.per) {
	case PER_WALL:
		return one * run->wall_s;
	case PER_SAMPLES:
	case PER_REST: /* shares here; estimates turn them into odds */
		return run->weight > 0 ? (double)run->weight : 1;
	case PER_COUNTER:
		return one * run->counter;
	case PER_RUN:
		break;
	}
	return run->n_steps > 0 ? one * run->n_steps : one;
}

static int scale_runs(struct computation *computation)
{
	const struct compare *compare = computation->compare;

	computation->n_runs = compare->n_side[SIDE_BASE] + compare->n_side[SIDE_HEAD];
	computation->scales = calloc(computation->n_runs, sizeof *computation->scales);
	computation->counting = calloc(computation->n_runs, sizeof *computation->counting);
	if (!computation->scales || !computation->counting)
		return -ENOMEM;
	for (size_t i = 0; i < computation->n_runs; i++) {
		const struct compare_run *run = &compare->runs[i];
		double by = divisor(compare, run);

		if (!(by > 0))
			return -EDOM;
		computation->scales[i].factor = 1 / by;
		computation->scales[i].one_sample = run->samples ? (double)run->weight / (double)run->samples / by : 0;
	}
	return shuffles_init(compare->n_side[SIDE_BASE], compare->n_side[SIDE_HEAD], &computation->shuffles);
}

/* ---- The matrix ---- */

static int matrix_init(struct matrix *matrix, size_t n_rows, size_t n_runs)
{
	matrix->n_runs = n_runs;
	matrix->self = calloc(n_rows * n_runs + 1, sizeof *matrix->self);
	matrix->total = calloc(n_rows * n_runs + 1, sizeof *matrix->total);
	return matrix->self && matrix->total ? 0 : -ENOMEM;
}

static int find_outermost(struct computation *computation)
{
	const struct compare *compare = computation->compare;

	computation->is_outermost = calloc(compare->n_nodes, sizeof *computation->is_outermost);
	if (!computation->is_outermost)
		return -ENOMEM;
	for (size_t node = 1; node < compare->n_nodes; node++) {
		uint32_t above = compare->nodes[node].parent;

		while (above != 0 && compare->nodes[above].function != compare->nodes[node].function)
			above = compare->nodes[above].parent;
		computation->is_outermost[node] = above == 0;
	}
	return 0;
}

/* Fill one run's column. @totals: one element per node. */
static void fill_column(struct computation *computation, size_t run, double *totals)
{
	const struct compare *compare = computation->compare;
	const struct compare_run *it = &compare->runs[run];
	double *means = compare->means[it->side];

	for (size_t node = 0; node < compare->n_nodes; node++)
		totals[node] = node < it->n_nodes ? it->self[node] * computation->scales[run].factor : 0;
	for (size_t node = 1; node < compare->n_nodes; node++) {
		computation->functions.self[compare->nodes[node].function * computation->n_runs + run] += totals[node];
		if (compare->options.stacks)
			computation->stacks.self[node * computation->n_runs + run] = totals[node];
	}
	for (size_t node = compare->n_nodes; node-- > 1;)
		totals[compare->nodes[node].parent] += totals[node];
	for (size_t node = 0; node < compare->n_nodes; node++)
		means[node] += totals[node] / (double)compare->n_side[it->side];
	for (size_t node = 1; node < compare->n_nodes; node++) {
		if (computation->is_outermost[node])
			computation->functions.total[compare->nodes[node].function * computation->n_runs + run] +=
				totals[node];
		if (compare->options.stacks)
			computation->stacks.total[node * computation->n_runs + run] = totals[node];
	}
}

static int fill_matrices(struct computation *computation)
{
	struct compare *compare = computation->compare;
	CLEANUP(freep) double *totals = calloc(compare->n_nodes, sizeof *totals);
	int r;

	for (int side = 0; side < N_SIDES; side++)
		compare->means[side] = calloc(compare->n_nodes, sizeof *compare->means[side]);
	if (!totals || !compare->means[SIDE_BASE] || !compare->means[SIDE_HEAD])
		return -ENOMEM;
	r = find_outermost(computation);
	if (r >= 0)
		r = matrix_init(&computation->functions, compare->n_functions, computation->n_runs);
	if (r >= 0 && compare->options.stacks)
		r = matrix_init(&computation->stacks, compare->n_nodes, computation->n_runs);
	for (size_t run = 0; run < computation->n_runs && r >= 0; run++)
		fill_column(computation, run, totals);
	return r;
}

/* ---- Estimates ---- */

/*
 * Variance of a value as a count of samples. Add one sample, because a count of zero has variance, too. Shares are
 * binomial: unseen samples belong to all, and a share of all has variance, too. For odds, the rest is a count as well.
 */
static double variance_of_count(enum compare_per per, double value, double one)
{
	double variance = (value + one) * one, rest = 1 - MIN(value, 1);

	return per == PER_REST ? variance * (rest + one) : per == PER_SAMPLES ? variance * MAX(rest, one) : variance;
}

/* Number of other functions' samples, on the side that has fewer. */
static double samples_of_rest(const struct computation *computation, const double *shares)
{
	double samples[N_SIDES] = { 0 };

	for (size_t i = 0; i < computation->n_runs; i++)
		if (computation->scales[i].one_sample > 0)
			samples[computation->compare->runs[i].side] += (1 - shares[i]) /
								       computation->scales[i].one_sample;
	return MIN(samples[SIDE_BASE], samples[SIDE_HEAD]);
}

static void estimate(struct computation *computation, const double *values, struct estimate *ret)
{
	enum compare_per per = computation->compare->options.per;

	for (size_t i = 0; i < computation->n_runs; i++)
		computation->counting[i] = variance_of_count(per, values[i], computation->scales[i].one_sample);
	if (per != PER_REST)
		stats_estimate(&computation->shuffles, values, computation->counting, ret);
	else if (samples_of_rest(computation, values) < FEWEST_SAMPLES - 0.5)
		*ret = (struct estimate){ .base = INFINITY,
					  .head = INFINITY,
					  .change = NAN,
					  .low = NAN,
					  .high = NAN,
					  .p = 1,
					  .adjusted = 1,
					  .has_no_rest = true };
	else
		stats_estimate_odds(&computation->shuffles, values, computation->counting, ret);
}

static double mean(const double *values, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return n ? sum / (double)n : 0;
}

/* Whether to test a row: each test weakens the others through the correction. */
static bool is_asked(const struct computation *computation, const double *totals)
{
	const struct compare *compare = computation->compare;
	size_t n_base = compare->n_side[SIDE_BASE];
	double base = mean(totals, n_base), head = mean(totals + n_base, computation->n_runs - n_base);
	double samples[N_SIDES] = { 0 };

	for (size_t i = 0; i < computation->n_runs; i++)
		if (computation->scales[i].one_sample > 0)
			samples[i < n_base ? SIDE_BASE : SIDE_HEAD] += totals[i] / computation->scales[i].one_sample;
	if (MAX(samples[SIDE_BASE], samples[SIDE_HEAD]) < FEWEST_SAMPLES - 0.5)
		return false;
	return base + head > 0 && (base >= compare->options.min_share * computation->whole[SIDE_BASE] ||
				   head >= compare->options.min_share * computation->whole[SIDE_HEAD]);
}

static void add_row(struct computation *computation, const struct matrix *matrix, size_t at, struct compare_row *row)
{
	const double *self = &matrix->self[at * computation->n_runs], *total = &matrix->total[at * computation->n_runs];

	estimate(computation, self, &row->self);
	estimate(computation, total, &row->total);
}

/* Skip values that are zero on both sides, or have no rest. */
static struct estimate *question(struct compare_row *rows, size_t at)
{
	struct estimate *estimate = at % 2 == 0 ? &rows[at / 2].self : &rows[at / 2].total;

	return estimate->base + estimate->head > 0 && !estimate->has_no_rest ? estimate : NULL;
}

/* Correct all tests of one table together. */
static int correct(const struct compare *compare, struct compare_row *rows, size_t n)
{
	CLEANUP(freep) double *p = calloc(2 * n + 1, sizeof *p);
	size_t n_asked = 0, at = 0;
	int r;

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < 2 * n; i++)
		if (question(rows, i))
			p[n_asked++] = question(rows, i)->p;
	r = compare->options.holm ? stats_holm(p, n_asked) : stats_bh(p, n_asked);
	for (size_t i = 0; i < 2 * n && r >= 0; i++) {
		struct estimate *estimate = question(rows, i);

		if (!estimate)
			continue;
		estimate->adjusted = p[at++];
		estimate->is_known = estimate->adjusted <= LIMIT;
	}
	return r;
}

static int rank_of(const struct compare_row *row)
{
	return row->self.is_known ? 0 : row->total.is_known ? 1 : 2;
}

static double size_of(const struct compare_row *row)
{
	switch (rank_of(row)) {
	case 0:
		return fabs(row->self.head - row->self.base);
	case 1:
		return fabs(row->total.head - row->total.base);
	default:
		return MAX(row->self.head, row->self.base);
	}
}

/* Significant changes first, largest first; then by size. */
static int compare_rows(const void *a, const void *b)
{
	const struct compare_row *left = a, *right = b;
	double left_size = size_of(left), right_size = size_of(right);

	if (rank_of(left) != rank_of(right))
		return rank_of(left) - rank_of(right);
	if (left_size != right_size)
		return left_size > right_size ? -1 : 1;
	if (left->function != right->function)
		return left->function < right->function ? -1 : 1;
	return left->node < right->node ? -1 : left->node > right->node;
}

/* Test the rows of a matrix: nodes from 1 on, functions from 0. */
static int ask_all(struct computation *computation, const struct matrix *matrix, bool by_node, struct compare_row **ret,
		   size_t *ret_n)
{
	struct compare *compare = computation->compare;
	size_t n_all = by_node ? compare->n_nodes : compare->n_functions, n = 0;
	CLEANUP(freep) struct compare_row *rows = calloc(n_all + 1, sizeof *rows);
	int r;

	if (!rows)
		return -ENOMEM;
	for (size_t i = by_node; i < n_all; i++) {
		if (!is_asked(computation, &matrix->total[i * computation->n_runs]))
			continue;
		rows[n].function = by_node ? compare->nodes[i].function : (uint32_t)i;
		rows[n].node = by_node ? (uint32_t)i : 0;
		add_row(computation, matrix, i, &rows[n++]);
	}
	r = correct(compare, rows, n);
	if (r < 0)
		return r;
	qsort(rows, n, sizeof *rows, compare_rows);
	*ret = TAKE(rows);
	*ret_n = n;
	return 0;
}

/* A single run on each side shows what it took, but not the variation of others. */
static void judge_alone(struct estimate *estimate, const struct shuffles *shuffles)
{
	estimate->is_known = estimate->p <= LIMIT && shuffles->n_base + shuffles->n_head > 2;
}

static int ask_whole(struct computation *computation)
{
	struct compare *compare = computation->compare;
	CLEANUP(freep) double *values = calloc(computation->n_runs, sizeof *values);

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < computation->n_runs; i++)
		values[i] = (double)compare->runs[i].weight * computation->scales[i].factor;
	computation->whole[SIDE_BASE] = mean(values, compare->n_side[SIDE_BASE]);
	computation->whole[SIDE_HEAD] = mean(values + compare->n_side[SIDE_BASE], compare->n_side[SIDE_HEAD]);
	estimate(computation, values, &compare->whole);
	judge_alone(&compare->whole, &computation->shuffles);
	compare->by_count = computation->shuffles.n_deals == 0;
	return 0;
}

static int ask_wall(struct computation *computation)
{
	struct compare *compare = computation->compare;
	size_t n_base = compare->n_timed[SIDE_BASE], n_head = compare->n_timed[SIDE_HEAD], n = n_base + n_head;
	CLEANUP(shuffles_done) struct shuffles shuffles = { 0 };
	CLEANUP(freep) double *values = calloc(2 * n + 1, sizeof *values);
	int r;

	if (!values)
		return -ENOMEM;
	if (n_base == 0 || n_head == 0)
		return 0;
	for (size_t i = 0; i < n; i++) /* the second half stays 0: times are not counts */
		values[i] = compare->runs[computation->n_runs + i].wall_s;
	r = shuffles_init(n_base, n_head, &shuffles);
	if (r < 0)
		return r;
	stats_estimate(&shuffles, values, values + n, &compare->wall);
	judge_alone(&compare->wall, &shuffles);
	return 0;
}

int compare_compute(struct compare *compare)
{
	CLEANUP(computation_done) struct computation computation = { .compare = compare };
	int r;

	r = order_runs(compare);
	if (r >= 0)
		r = function_table_match_moved(compare);
	if (r >= 0)
		r = scale_runs(&computation);
	if (r >= 0)
		r = fill_matrices(&computation);
	if (r >= 0)
		r = ask_whole(&computation);
	if (r >= 0)
		r = ask_all(&computation, &computation.functions, false, &compare->rows, &compare->n_rows);
	if (r >= 0 && compare->options.stacks)
		r = ask_all(&computation, &computation.stacks, true, &compare->stacks, &compare->n_stacks);
	if (r >= 0)
		r = ask_wall(&computation);
	if (r >= 0)
		compare->self_values = TAKE(computation.functions.self);
	return r;
}
