/* SPDX-License-Identifier: MIT */
/*
 * judge.c - applies rules to a comparison.
 *
 * A rule fails for an increase that is significant, and whose best estimate exceeds the threshold. If
 * the interval is so wide that a change as large as the threshold is possible, the result is inconclusive. All tests of
 * the rules are corrected together: Holm's method among the quantities of a rule, and each rule has its share of the 5
 * %.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "base/glob_list.h"
#include "src/compare/format.h"
#include "src/compare/stats.h"

#define LIMIT 0.05

struct judging {
	const struct compare *compare;
	struct compare_verdict *verdict;
	size_t n_rules;
};

void compare_verdict_done(struct compare_verdict *verdict)
{
	for (size_t i = 0; i < verdict->n_findings; i++) {
		free(verdict->findings[i].subject);
		free(verdict->findings[i].why);
	}
	free(verdict->findings);
	*verdict = (struct compare_verdict){ 0 };
}

/* Takes ownership of subject and why. */
static int add(struct judging *judging, const struct compare_finding *finding, char *subject, char *why)
{
	CLEANUP(freep) char *owned_subject = subject, *owned_why = why;
	struct compare_verdict *verdict = judging->verdict;
	int r;

	if (!subject)
		return -ENOMEM;
	r = grow(&verdict->findings, verdict->n_findings, &verdict->allocated, sizeof *verdict->findings);
	if (r < 0)
		return r;
	verdict->findings[verdict->n_findings] = *finding;
	verdict->findings[verdict->n_findings].subject = TAKE(owned_subject);
	verdict->findings[verdict->n_findings++].why = TAKE(owned_why);
	return 0;
}

/* ---- Comparability ---- */

static int check_fields(struct judging *judging, compare_allows *allows, const void *data)
{
	const struct compare_finding finding = { .outcome = OUTCOME_CANNOT_TELL };
	int r = 0;

	for (size_t field = 0; field < N_ABOUT && r >= 0; field++) {
		const char *base, *head;
		char *why;

		if (!about_fields[field].matters || allows(data, about_fields[field].column) ||
		    !compare_differs(judging->compare, field, &base, &head))
			continue;
		if (asprintf(&why, "differs: %s, %s (--allow=%s ignores that)", base, head,
			     about_fields[field].column) < 0)
			return -ENOMEM;
		r = add(judging, &finding, strdup(about_fields[field].name), why);
	}
	return r;
}

static int check_runs(struct judging *judging, compare_allows *allows, const void *data)
{
	const struct compare_finding finding = { .outcome = OUTCOME_CANNOT_TELL };
	char *why;

	if (!judging->compare->by_count || allows(data, "runs"))
		return 0;
	if (asprintf(&why,
		     "%zu and %zu are too few to know the variation between runs; use 10 a side, or at least 4 "
		     "(--allow=runs uses counts of samples instead)",
		     judging->compare->n_side[SIDE_BASE], judging->compare->n_side[SIDE_HEAD]) < 0)
		return -ENOMEM;
	return add(judging, &finding, strdup("runs"), why);
}

/* ---- Rules on estimates ---- */

static enum outcome outcome_of(const struct estimate *estimate, double threshold)
{
	if (estimate->is_known && estimate->change > threshold)
		return OUTCOME_REGRESSED;
	if (threshold > 0 && isfinite(estimate->change) && estimate->high - estimate->change > threshold)
		return OUTCOME_CANNOT_TELL;
	return OUTCOME_PASSED;
}

static int add_estimate(struct judging *judging, const struct compare_rule *rule, const struct estimate *estimate,
			char *subject)
{
	struct compare_finding finding = { .rule = rule,
					   .has_estimate = true,
					   .is_wall = rule->kind == RULE_WALL,
					   .estimate = *estimate,
					   .outcome = outcome_of(estimate, rule->threshold) };
	char *why = NULL;

	if (finding.outcome == OUTCOME_CANNOT_TELL) {
		why = strdup(
			"the interval is wider than the threshold: use more runs, longer runs, or a higher frequency");
		if (!why) {
			free(subject);
			return -ENOMEM;
		}
	}
	return add(judging, &finding, subject, why);
}

static void set_adjusted(const struct judging *judging, struct estimate *estimate, double p)
{
	estimate->adjusted = MIN(1, p * (double)judging->n_rules);
	estimate->is_known = estimate->adjusted <= LIMIT;
}

static int judge_one(struct judging *judging, const struct compare_rule *rule, const struct estimate *whole,
		     const char *subject)
{
	struct estimate estimate = *whole;

	set_adjusted(judging, &estimate, estimate.p);
	return add_estimate(judging, rule, &estimate, strdup(subject));
}

static int cannot_tell(struct judging *judging, const struct compare_rule *rule, const char *subject, const char *why)
{
	const struct compare_finding finding = { .rule = rule, .outcome = OUTCOME_CANNOT_TELL };
	char *copy = strdup(why);

	return copy ? add(judging, &finding, strdup(subject), copy) : -ENOMEM;
}

static bool is_meant(const struct compare_rule *rule, const struct compare_function *function)
{
	struct glob_list names = { .words = (char **)&rule->function, .n = 1 },
			 files = { .words = (char **)&rule->file, .n = 1 };

	if (rule->function && !glob_list_match_function(&names, function->name))
		return false;
	return !rule->file || glob_list_match(&files, function->place);
}

static const struct estimate *estimate_of(const struct compare_rule *rule, const struct compare_row *row)
{
	return rule->kind == RULE_TOTAL ? &row->total : &row->self;
}

/* Whether a rule applies to a row; a rule for any function skips rows without self time on both sides. */
static bool is_asked(const struct compare *compare, const struct compare_rule *rule, const struct compare_row *row)
{
	const struct estimate *estimate = estimate_of(rule, row);

	return is_meant(rule, &compare->functions[row->function]) &&
	       (rule->kind != RULE_ANY || estimate->base + estimate->head > 0);
}

/* Corrected p values of the rows to which a rule applies. @ret_n: their number. */
static int correct_rows(const struct compare *compare, const struct compare_rule *rule, double *p, size_t *ret_n)
{
	size_t n = 0;
	int r;

	for (size_t i = 0; i < compare->n_rows; i++)
		if (is_asked(compare, rule, &compare->rows[i]))
			p[n++] = estimate_of(rule, &compare->rows[i])->p;
	r = stats_holm(p, n);
	*ret_n = n;
	return r;
}

static bool is_told(const struct compare_rule *rule, const struct estimate *estimate)
{
	return rule->kind != RULE_ANY || estimate->has_no_rest ||
	       outcome_of(estimate, rule->threshold) == OUTCOME_REGRESSED;
}

static int judge_function(struct judging *judging, const struct compare_rule *rule, const struct estimate *estimate,
			  const struct compare_function *function)
{
	CLEANUP(freep) char *title = compare_title(function);

	if (!title)
		return -ENOMEM;
	if (estimate->has_no_rest)
		return cannot_tell(judging, rule, title, "nothing else ran to normalise against (use --normalize run)");
	return add_estimate(judging, rule, estimate, TAKE(title));
}

/* Share of head's total. */
static double share_of(const struct compare *compare, double value)
{
	if (compare->options.per == PER_REST)
		return isinf(value) ? 1 : value / (1 + value);
	return value / compare->whole.head;
}

/* Functions that the runs show slower than the threshold, but that vary too much to be certain. */
struct doubts {
	size_t n;
	const struct compare_row *largest; /* by the time that it may have gained */
};

static double gain_of(const struct estimate *estimate)
{
	return estimate->head - estimate->base;
}

static void doubt(const struct compare *compare, const struct compare_rule *rule, const struct compare_row *row,
		  const struct estimate *estimate, struct doubts *doubts)
{
	const double least_share = 0.01; /* of the whole: single samples are no reason to doubt */

	if (estimate->is_known || !isfinite(estimate->change) || estimate->change <= rule->threshold ||
	    share_of(compare, estimate->head) - share_of(compare, estimate->base) < least_share)
		return;
	doubts->n++;
	if (!doubts->largest || gain_of(estimate) > gain_of(estimate_of(rule, doubts->largest)))
		doubts->largest = row;
}

/* A rule for any function has found no regression. */
static int pass_all(struct judging *judging, const struct compare_rule *rule, const struct doubts *doubts)
{
	const struct compare_finding finding = { .rule = rule, .outcome = OUTCOME_PASSED };
	CLEANUP(freep) char *title = NULL;
	char interval[64], *why;
	const struct estimate *estimate;

	if (doubts->n == 0)
		return add(judging, &finding, strdup("every function"), NULL);
	estimate = estimate_of(rule, doubts->largest);
	title = compare_title(&judging->compare->functions[doubts->largest->function]);
	if (!title)
		return -ENOMEM;
	format_interval(estimate, interval, sizeof interval);
	if (asprintf(&why,
		     "not certain of %zu function%s, for the runs vary too much: above all %s, %+.1f %%%s%s; "
		     "use more runs, or longer runs",
		     doubts->n, doubts->n == 1 ? "" : "s", title, 100 * estimate->change, interval[0] ? " " : "",
		     interval) < 0)
		return -ENOMEM;
	return add(judging, &finding, strdup("every function"), why);
}

/* Report each named function; for "any", only regressions and functions without a rest. */
static int judge_functions(struct judging *judging, const struct compare_rule *rule)
{
	const struct compare *compare = judging->compare;
	CLEANUP(freep) double *p = calloc(compare->n_rows + 1, sizeof *p);
	struct doubts doubts = { 0 };
	size_t n = 0, at = 0, n_told = 0;
	int r = p ? correct_rows(compare, rule, p, &n) : -ENOMEM;

	for (size_t i = 0; i < compare->n_rows && r >= 0; i++) {
		const struct compare_function *function = &compare->functions[compare->rows[i].function];
		struct estimate estimate = *estimate_of(rule, &compare->rows[i]);

		if (!is_asked(compare, rule, &compare->rows[i]))
			continue;
		set_adjusted(judging, &estimate, p[at++]);
		if (!is_told(rule, &estimate)) {
			doubt(compare, rule, &compare->rows[i], &estimate, &doubts);
			continue;
		}
		n_told++;
		r = judge_function(judging, rule, &estimate, function);
	}
	if (r < 0 || n_told > 0)
		return r;
	if (rule->kind != RULE_ANY)
		return cannot_tell(judging, rule, rule->function,
				   "no function of that name has enough samples on either side");
	if (n == 0)
		return cannot_tell(
			judging, rule, "every function",
			"no function has enough samples on either side: use more runs, longer runs, or a higher frequency");
	return pass_all(judging, rule, &doubts);
}

/* ---- Rules on shares ---- */

static int judge_new(struct judging *judging, const struct compare_rule *rule)
{
	const struct compare *compare = judging->compare;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < compare->n_rows && r >= 0; i++) {
		const struct compare_row *row = &compare->rows[i];
		const struct compare_finding finding = {
			.rule = rule, .outcome = OUTCOME_REGRESSED, .has_estimate = true, .estimate = row->self
		};

		if (row->self.base > 0 || !row->self.is_known || share_of(compare, row->self.head) < rule->threshold)
			continue;
		n++;
		r = add(judging, &finding, compare_title(&compare->functions[row->function]), NULL);
	}
	if (r < 0 || n > 0)
		return r;
	return add(judging, &(struct compare_finding){ .rule = rule, .outcome = OUTCOME_PASSED },
		   strdup("new functions"), NULL);
}

static int judge_lost(struct judging *judging, const struct compare_rule *rule)
{
	const struct compare *compare = judging->compare;
	struct compare_finding finding = { .rule = rule, .outcome = OUTCOME_PASSED };
	double lost = 0, all = 0;
	char *why;

	for (size_t i = 0; i < compare->n_runs; i++) {
		if (compare->runs[i].side != SIDE_HEAD)
			continue;
		lost += (double)compare->runs[i].lost;
		all += (double)(compare->runs[i].lost + compare->runs[i].samples);
	}
	if (asprintf(&why, "%.0f of %.0f", lost, all) < 0)
		return -ENOMEM;
	if (all > 0 && lost / all > rule->threshold)
		finding.outcome = OUTCOME_REGRESSED;
	return add(judging, &finding, strdup("lost samples"), why);
}

static int judge_rule(struct judging *judging, const struct compare_rule *rule)
{
	const struct compare *compare = judging->compare;

	switch (rule->kind) {
	case RULE_NEW_HOT:
		return judge_new(judging, rule);
	case RULE_LOST:
		return judge_lost(judging, rule);
	case RULE_WALL:
		if (compare->n_timed[SIDE_BASE] == 0 || compare->n_timed[SIDE_HEAD] == 0)
			return cannot_tell(judging, rule, "wall time",
					   "there are no runs without a recorder; probing bench makes them");
		if (compare->n_timed[SIDE_BASE] < 2 || compare->n_timed[SIDE_HEAD] < 2) /* and no sample counts help */
			return cannot_tell(judging, rule, "wall time",
					   "one timed run a side does not show the variation between runs");
		return judge_one(judging, rule, &compare->wall, "wall time without a recorder");
	case RULE_TOTAL:
		if (!rule->function && !compare_has_whole(compare))
			return cannot_tell(judging, rule, "all of it", "shares always add up to the same total");
		if (!rule->function)
			return judge_one(judging, rule, &compare->whole, "all of it");
		return judge_functions(judging, rule);
	default:
		return judge_functions(judging, rule);
	}
}

/* Reasons against the comparison decide first: a number of another machine proves nothing. */
static enum outcome outcome_of_all(const struct compare_verdict *verdict)
{
	enum outcome outcome = OUTCOME_PASSED;

	for (size_t i = 0; i < verdict->n_findings; i++) {
		if (!verdict->findings[i].rule)
			return OUTCOME_CANNOT_TELL;
		outcome = MAX(outcome, verdict->findings[i].outcome);
	}
	return outcome;
}

int compare_judge(const struct compare *compare, const struct compare_rule *rules, size_t n_rules,
		  compare_allows *allows, const void *data, struct compare_verdict *ret)
{
	CLEANUP(compare_verdict_done) struct compare_verdict verdict = { 0 };
	struct judging judging = { .compare = compare, .verdict = &verdict, .n_rules = n_rules };
	int r;

	r = check_fields(&judging, allows, data);
	if (r >= 0)
		r = check_runs(&judging, allows, data);
	for (size_t i = 0; i < n_rules && r >= 0; i++)
		r = judge_rule(&judging, &rules[i]);
	if (r < 0)
		return r;
	verdict.outcome = outcome_of_all(&verdict);
	*ret = verdict;
	verdict = (struct compare_verdict){ 0 };
	return 0;
}
