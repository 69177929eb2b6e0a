/* SPDX-License-Identifier: MIT */
/* report.h - what the files of the report share: a job's ranks, and in what each differs. Private. */
#ifndef PROBING_CLUSTER_REPORT_H
#define PROBING_CLUSTER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/interner.h"
#include "src/cluster/cluster.h"

#define REPORT_SURE 0.01   /* p, corrected, up to which a difference is named */
#define REPORT_TOO_FAR 3.5 /* deviations */

/* Samples of hours follow each other, and are alike: as evidence they are no more than REPORT_MAX_LOOKS looks, in the same
 * shares. */
enum { REPORT_MAX_PLACES = 3, REPORT_MAX_LOOKS = 10000, REPORT_MIN_RANKS = 3 };

enum measure_kind {
	MEASURE_CPU,
	MEASURE_QUEUED,
	MEASURE_THROTTLED,
	MEASURE_STOLEN,
	MEASURE_MEMORY,
	MEASURE_STEP,
	MEASURE_FORWARD,
	MEASURE_BACKWARD,
	MEASURE_COMM,
	MEASURE_COMM_SHARE,
	MEASURE_DATA,
	N_MEASURES,
};

/* A number that ranks are compared by. */
struct measure {
	const char *name, *key; /* of a sentence, of JSON */
	const char *head, *cell_unit;
	unsigned width;                               /* of its column */
	double (*of)(const struct rank_usage *usage); /* negative: unknown */
	const char *unit;
	double factor; /* to that unit */
	double floor;  /* a deviation is at least so much: what chance and clock ticks make */
};
extern const struct measure report_measures[N_MEASURES];
/* The number of a rank; negative: unknown. */
double report_value(const struct cluster_rank *rank, enum measure_kind kind);

struct spread {
	double median, deviation;
	size_t n;
};

/* report_spread - median, and median absolute deviation scaled to a normal distribution, at least @floor. @values: are changed. */
struct spread report_spread(double *values, size_t n, double floor);
void report_sort(double *values, size_t n);

/* How many looks of a rank met a place. */
struct place_count {
	uint32_t place;
	unsigned n;
};

/* A place where a rank is more often, or less often, than the others. */
struct place_difference {
	uint32_t place;
	double share, typical, p;
};

/* A stretch of steps in which a rank was slower than the others. */
struct slow_steps {
	bool is_slow;
	bool is_over;  /* it was slow, and is not any more */
	bool is_whole; /* all steps that are kept */
	int64_t first, last;
	double change;    /* 0.38: slower than the median of the others by 38 % */
	double low, high; /* of change, with 95 % confidence; NAN: unknown */
	double p;         /* corrected */
};

/* A path of the stack tree in which a rank is more often, or less often, than the others. */
struct stack_difference {
	char *title; /* owned */
	double base, head, p;
};

/* In what a rank differs. */
struct rank_findings {
	bool is_odd;
	bool is_far[N_MEASURES];
	double distances[N_MEASURES]; /* in deviations */
	struct place_difference places[REPORT_MAX_PLACES];
	size_t n_places;
	struct slow_steps slow;
	size_t n_alike; /* so many steps that follow each other say as much as an independent one; 0: no steps are compared */
	bool wanders; /* it has slow stretches, but no longer ones than such steps have by chance */
	struct stack_difference *stacks;
	size_t n_stacks;
};

/* The ranks of one job. */
struct job {
	const struct cluster *cluster;
	size_t first, n;
	double *sorted; /* scratch, n */
	struct spread spreads[N_MEASURES];
	struct rank_findings *findings; /* n */
	enum history_kind history_kind;
	int64_t first_step, last_step; /* of the compared history */
	size_t n_histories;            /* ranks that have one; 0: none is compared */
	struct place_count *counts;    /* each place of a rank once; those of rank i begin at starts[i] */
	size_t n_counts, counts_allocated;
	size_t *starts;     /* n + 1 */
	unsigned *n_looks;  /* by rank */
	uint64_t n_samples; /* of all ranks, as they came */
	unsigned n_all;     /* looks of all ranks */
	uint32_t n_places;
	struct interner names;
	unsigned *all;   /* by place: looks of all ranks */
	double *typical; /* by place: the median of the ranks' shares */
	unsigned *here;  /* scratch, by place */
};

static inline const struct cluster_rank *job_rank(const struct job *job, size_t i)
{
	return &job->cluster->ranks[job->first + i];
}

/*
 * report_find - compare the ranks of the job that begins at a rank of the cluster.
 * @ret: also on failure ended with report_done(). Returns 0, -ENOMEM.
 */
int report_find(const struct cluster *cluster, size_t first, unsigned max_paths, struct job *ret);
void report_done(struct job *job);

/* The name of a place. Borrowed; @ret_bytes: its length. */
const char *report_place(const struct job *job, uint32_t place, uint32_t *ret_bytes);
/* The place of most looks of a rank; n_places: it has none. @ret_share: of the looks. */
uint32_t report_most(struct job *job, size_t i, double *ret_share);
/* A sentence's end for what explains a slow rank, "its control group ..."; NULL: nothing does. @to: for the text. */
const char *report_cause(const struct job *job, size_t i, char *to, size_t n_bytes);

/* history.c: fill findings[].slow. -ENOMEM. */
int report_history(struct job *job);
/* report_stacks.c: fill findings[i].stacks with at most so many. -ENOMEM. */
int report_stacks(struct job *job, size_t i, unsigned max);

#endif
