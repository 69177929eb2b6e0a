/* SPDX-License-Identifier: MIT */
/* compare.h - comparison of recordings of one program with recordings of a changed version.
 *
 * Two sides, base and head, of one run each or several. Functions are the same if kind, name and file (or module) are,
 * with any folder and any line. Each is compared separately, by its self time and its total time, and so is each stack.
 * A difference is reported only if it exceeds chance.
 *
 * Order of use: compare_new(), compare_add() for each recording, compare_compute(), then a writer.
 */
#ifndef PROBING_COMPARE_H
#define PROBING_COMPARE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/profile/profile.h"

enum side { SIDE_BASE, SIDE_HEAD, N_SIDES };

/* ---- Comparison of one quantity (stats.c) ---- */

struct estimate {
	double base, head;  /* means of the runs, in the unit of the comparison */
	double change;      /* of base: 0.05 is 5 % more; INFINITY: there was none before */
	double low, high;   /* between which the change is with 95 % confidence */
	double p, adjusted; /* probability of such a difference by chance alone; corrected for the number of tests */
	bool is_known;      /* adjusted is below 5 %: it has changed */
	bool has_no_rest;   /* PER_REST: hardly a sample of anything else; base, head are INFINITY */
};

/* ---- The recordings (load.c, runs.c) ---- */

enum { N_ABOUT = 14 };

/* A property of a run besides its samples, and whether runs that differ in it can be compared. */
struct about_field {
	const char *column, *name; /* of the table run; in sentences */
	bool matters;
};
extern const struct about_field about_fields[N_ABOUT];

struct compare_run {
	enum side side;
	char *name;           /* of its file, "base.db", with its number where that has several: "base.db#3" */
	char *about[N_ABOUT]; /* never NULL; "": the file does not say */
	char *command;
	bool is_recorded;             /* otherwise it was only timed, by bench */
	double started;               /* seconds since 1970 */
	double wall_s, user_s, sys_s; /* NAN: not known */
	int64_t max_rss_bytes;        /* -1: not known */
	int exit_status;
	uint64_t samples, weight; /* of the compared part; weight in ns, or events */
	uint64_t lost;  /* samples that the recorder lost; of a file with several runs, the first one has all */
	double counter; /* the one that is divided by; NAN: none */
	double n_steps; /* of the program, that it is made of; 0: it is a run */
	double *self;   /* weight by node; of nodes behind n_nodes it has none */
	size_t n_nodes;
};

struct compare_function {
	enum frame_kind kind;
	char *name, *place; /* UTF-8 on one line; place: file, or module; "" not known */
	char *was_place;    /* where base has it, if elsewhere; NULL: there */
	bool is_ambiguous;  /* several functions of one recording have this name and place: they are counted together */
	bool is_seen[N_SIDES];
};

/* A stack as functions: node 0 is the root, of no function; callers come before their callees. */
struct compare_node {
	uint32_t parent, function;
};

/* Self and total of a function, or of a stack (function and node). */
struct compare_row {
	uint32_t function, node; /* node 0: all stacks of the function */
	struct estimate self, total;
};

/* PER_REST: a function's part of a run divided by the rest of the run, so that a machine's speed is in both. */
enum compare_per { PER_RUN, PER_WALL, PER_SAMPLES, PER_REST, PER_COUNTER };

struct compare_options {
	enum compare_per per;
	const char *counter; /* of PER_COUNTER */
	bool show_interpreter;
	bool stacks;      /* ask of stacks, too; a picture wants it */
	bool steps;       /* runs are steps of one recording: compare_add_steps() */
	bool ranks;       /* runs are ranks of a job: compare_add_ranks() */
	bool holm;        /* correct so that hardly one result is wrong; otherwise hardly one in twenty */
	double min_share; /* functions with a smaller share on both sides are not tested */
};

struct compare {
	struct compare_options options;
	struct compare_run *runs; /* those of base first, in the order of the arguments, after compare_compute() */
	size_t n_runs, runs_allocated;
	size_t n_side[N_SIDES]; /* recorded ones */
	struct compare_function *functions;
	size_t n_functions, functions_allocated;
	struct compare_node *nodes;
	size_t n_nodes, nodes_allocated;
	size_t n_unmatched; /* names that a file may have taken along, but more than one fits */
	char *unit;         /* of weights, where they are not nanoseconds; NULL: they are */
	struct function_table *table;

	/* After compare_compute(); those known to have changed first, by how much they changed. */
	struct compare_row *rows, *stacks;
	size_t n_rows, n_stacks;
	double *self_values;     /* by function and recorded run: values of the means; PER_REST: shares */
	double *means[N_SIDES];  /* by node, with all that is called from there; PER_REST: shares */
	struct estimate whole;   /* of all functions together */
	struct estimate wall;    /* wall time of runs that were only timed */
	size_t n_timed[N_SIDES]; /* how many there were of those; wall is known where both have some */
	bool by_count;           /* too few runs to know the spread from run to run */
};

/* compare_new - of nothing yet. @options: strings in it live as long. @ret: ended with compare_free(). -ENOMEM. */
int compare_new(const struct compare_options *options, struct compare **ret);
void compare_free(struct compare *compare);
void compare_freep(struct compare **compare);

/*
 * compare_add - all runs of a recording, on one side.
 * @name:    of the recording, for messages.
 * @profile: of db, or the part to compare; not needed afterwards.
 * @why:     a sentence's end for -EDOM, in at least 256 bytes.
 * Errors: -EDOM it cannot be compared with the earlier ones; -EBADMSG; -ENOMEM; -EOVERFLOW.
 */
int compare_add(struct compare *compare, enum side side, const char *name, sqlite3 *db, const struct profile *profile,
		char *why);

/* Some steps of a program, as one run: its time is that of a step. */
struct compare_steps {
	enum side side;
	double n; /* how many */
};

/*
 * compare_add_steps - the steps of one recording, as runs of both sides.
 * @steps:    what becomes a run.
 * @steps_of: by total of the profile: index into steps; -1: of none.
 * The rest as compare_add().
 */
int compare_add_steps(struct compare *compare, const char *name, sqlite3 *db, const struct profile *profile,
		      const struct compare_steps *steps, size_t n_steps, const int32_t *steps_of, char *why);

/* A rank of a job, or a part of its time, as one run; those of a rank follow each other. */
struct compare_rank {
	enum side side;
	const char *name; /* "rank 5" */
};

/*
 * compare_add_ranks - ranks of one profile, as runs of both sides.
 * @ranks_of: by total of the profile: index into ranks; -1: of none.
 * Errors: -ENOMEM; -EOVERFLOW.
 */
int compare_add_ranks(struct compare *compare, const struct profile *profile, const struct compare_rank *ranks,
		      size_t n_ranks, const int32_t *ranks_of);

/*
 * compare_compute - after the last: match moved functions, and test every function and stack for a change.
 * Errors: -ENODATA a side has no recorded run; -EDOM a run lacks the divisor; -E2BIG; -ENOMEM.
 */
int compare_compute(struct compare *compare);

/* Whether runs differ in a field. @ret_base, @ret_head: two that do, borrowed. */
bool compare_differs(const struct compare *compare, size_t field, const char **ret_base, const char **ret_head);

/* Whether the number of all functions together can change; shares always add up to the same. */
bool compare_has_whole(const struct compare *compare);

/* "time in a run", "share of samples": the compared quantity. And a number in its unit, "412 ms", of at least 32
 * bytes. */
const char *compare_quantity(const struct compare *compare);
void compare_format(const struct compare *compare, double value, char *to, size_t n_bytes);
/* Its unit alone: "s", "share", "page-faults". */
const char *compare_unit(const struct compare *compare);

/* A function with its place, "work (demo.py)". For free(3); NULL: no memory. */
char *compare_title(const struct compare_function *function);

/* A stack as functions, "main > train > load  (data.py)"; of a longer one the last ones. For free(3); NULL: no memory. */
char *compare_stack_title(const struct compare *compare, uint32_t node);

/* ---- Series (series.c) ---- */

/*
 * compare_lists - whether two lists of measurements differ, as stats_estimate() of both sides. Of long lists the means of
 * neighbours are compared: measurements that follow each other are alike.
 * @n_base, @n_head: at least 1. -ENOMEM.
 */
int compare_lists(const double *base, size_t n_base, const double *head, size_t n_head, struct estimate *ret);

/* A part of a series whose level does not change by more than chance. */
struct series_part {
	size_t first, n;
	double mean;
};
enum { SERIES_MAX_PARTS = 16, SERIES_MIN_PART = 8 };

/*
 * series_split - divide a series where its level changes.
 * @values: n of them, finite. @ret: at most SERIES_MAX_PARTS, in order; all of the series if it has no change.
 * Returns how many, or -ENOMEM. A stretch is a part of its own if the ranks of its values differ most from the others,
 * and by more than chance. The measure is Wilcoxon's statistic, in deviations. Each part is divided again.
 * compare_lists() says how sure a change is.
 * Source: Olshen and others, Circular binary segmentation (2004), with ranks in place of the values, so that a single
 * slow step is one among others.
 */
int series_split(const double *values, size_t n, struct series_part *ret);

/*
 * series_level - the mean of n measurements, of which the twentieth largest and smallest count as the next ones: one that is
 * of any length changes it little. @clipped: receives the values with that done, in their order.
 */
double series_level(const double *values, size_t n, double *clipped);

/*
 * series_join - join parts that series_split() has divided by chance: it takes measurements for independent, and those that
 * follow each other may be alike. How alike they are is measured within the parts; parts whose levels differ no more than such
 * measurements do anyway become one, the most doubtful first, and so on until none is doubtful.
 * @parts: n_parts of the n values; changed, their means are series_level().
 * @least_alike: how alike they are at least, as others of their kind show; 1: nothing is known.
 * @ret_alike: so many neighbours say as much as one that is independent, 1 + 2 times the sum of the correlations of
 * measurements 1, 2, 3 ... apart; at least 1.
 * Returns how many parts are left, or -ENOMEM.
 * Source: Geyer, Practical Markov Chain Monte Carlo (1992), for the end of the sum: where two correlations are together
 * not positive.
 */
int series_join(const double *values, size_t n, struct series_part *parts, size_t n_parts, double least_alike,
		double *ret_alike);

/* In how many places such a stretch could be: p of one is to be multiplied by that. @is_at_end: it has an end of the series. */
double series_places(size_t n, bool is_at_end);

/* ---- Output ---- */

struct compare_look {
	unsigned max_rows, columns; /* 0: all; as wide as it gets */
	bool colour;
};

/* All: 0, -ENOMEM, or -EIO with ferror(out). */
int compare_write_text(const struct compare *compare, const struct compare_look *look, FILE *out);
int compare_write_json(const struct compare *compare, FILE *out);
/* Of one with options.stacks. @title: NULL: a general one. */
int compare_write_svg(const struct compare *compare, const char *title, FILE *out);
int compare_write_html(const struct compare *compare, const char *title, FILE *out);

/* ---- Rules (rules.c, judge.c) ---- */

enum rule_kind { RULE_SELF, RULE_TOTAL, RULE_WALL, RULE_ANY, RULE_NEW_HOT, RULE_LOST, N_RULE_KINDS };

/* A condition that fails a check: "self(func=Trainer.step)>+5%". */
struct compare_rule {
	enum rule_kind kind;
	char *text;            /* as it was given */
	char *function, *file; /* globs; NULL: any. A total without a function is that of the whole run */
	double threshold;      /* of base; of new-hot and lost: of the whole. 0.05 is 5 % */
};

/*
 * compare_rule_parse - @why: a sentence's end in at least 256 bytes. @ret: ended with compare_rule_done().
 * Errors: -EINVAL it is no rule; -ENOMEM.
 */
int compare_rule_parse(const char *text, struct compare_rule *ret, char *why);
void compare_rule_done(struct compare_rule *rule);

enum outcome { OUTCOME_PASSED, OUTCOME_CANNOT_TELL, OUTCOME_REGRESSED };

/* The result of a rule for one quantity, or a reason against comparing at all. */
struct compare_finding {
	const struct compare_rule *rule; /* NULL: a finding about the recordings */
	enum outcome outcome;
	char *subject;              /* a function's title, "all of it", "processor" */
	bool has_estimate, is_wall; /* the second: in seconds of wall time, whatever the compared quantity */
	struct estimate estimate;   /* with p corrected for all that the rules ask */
	char *why;                  /* where there is more to say; NULL: there is not */
};

struct compare_verdict {
	enum outcome outcome; /* overall: inconclusive before regressed */
	struct compare_finding *findings;
	size_t n_findings, allocated;
};

/* compare_allows - whether that may differ and does not matter: a column of about_fields, "runs". */
typedef bool compare_allows(const void *data, const char *what);

/*
 * compare_judge - judge a computed comparison by rules, which outlive the result.
 * @ret: ended with compare_verdict_done(). -ENOMEM.
 */
int compare_judge(const struct compare *compare, const struct compare_rule *rules, size_t n_rules,
		  compare_allows *allows, const void *data, struct compare_verdict *ret);
void compare_verdict_done(struct compare_verdict *verdict);

int compare_write_verdict(const struct compare *compare, const struct compare_verdict *verdict, FILE *out);
/* @verdict: result of the rules; NULL: no rules. */
int compare_write_markdown(const struct compare *compare, const struct compare_verdict *verdict,
			   const struct compare_look *look, FILE *out);
int compare_write_junit(const struct compare *compare, const struct compare_verdict *verdict, FILE *out);

/* Of head alone, for tools with a history of their own; in those tools' formats. */
int compare_write_github(const struct compare *compare, FILE *out); /* github-action-benchmark, customSmallerIsBetter */
int compare_write_hyperfine(const struct compare *compare,
			    FILE *out);                         /* both sides, as results of hyperfine --export-json */
int compare_write_go(const struct compare *compare, FILE *out); /* the Go benchmark format, for benchstat */

#endif
