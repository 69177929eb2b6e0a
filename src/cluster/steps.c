/* SPDX-License-Identifier: MIT */
/* steps.c - what the steps of a rank took, from the tables that its agent writes: steps, torch_trace, comm_metrics.
 *
 * A rank sends its last steps. A row of `steps` says how long the step before it took. Passes are counted once: of modules
 * within modules the outer one, of passes that overlap their union. Operations of torch.distributed likewise; but those of
 * a GPU follow each other there, whenever they were called, so each counts.
 * Programs may count their steps again from the start: older steps are then left out.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "src/cluster/private.h"
#include "src/cluster/values.h"

#define AS_TEXT(x) #x
#define IN_TEXT(x) AS_TEXT(x)
#define MAX_STEPS 2000 /* CLUSTER_MAX_STEPS, as text for SQL */
#define MAX_MS 1e12

_Static_assert(MAX_STEPS == CLUSTER_MAX_STEPS, "one limit");

enum { N_MEAN = 20 }; /* steps of a mean */

/* The newest first. The share of a pass that no earlier pass of its thread covers counts. */
const char *const cluster_steps_sql[N_STEPS_SQL] = {
	[STEPS_OF_PROGRAM] =
		"SELECT step, last_ms FROM (SELECT lag(step) OVER (ORDER BY time_ns) AS step, last_ms, time_ns"
		" FROM python.steps) WHERE step IS NOT NULL AND last_ms IS NOT NULL"
		" ORDER BY time_ns DESC LIMIT " IN_TEXT(MAX_STEPS),
	[STEPS_OF_PASSES] =
		"WITH pass AS (SELECT step, stage, began, duration_ms, host_ms / 1e3 AS length,"
		" max(began + host_ms / 1e3) OVER (PARTITION BY step, stage, tid ORDER BY began, host_ms DESC"
		" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until FROM python.torch_trace),"
		" own AS (SELECT step, stage, began, CASE WHEN until IS NULL OR until <= began THEN duration_ms"
		" WHEN length > 0 THEN duration_ms * max(0, began + length - until) / length ELSE 0 END AS ms FROM pass)"
		" SELECT step, min(began), sum(ms) FILTER (WHERE stage = 'forward'), sum(ms) FILTER (WHERE stage = 'backward'),"
		" sum(ms) FILTER (WHERE stage = 'data') FROM own WHERE step IS NOT NULL GROUP BY step"
		" ORDER BY min(began) DESC LIMIT " IN_TEXT(MAX_STEPS),
	[STEPS_OF_COMM] =
		"WITH call AS (SELECT step, time_ns / 1e6 AS ended, latency_ms, coalesce(backend LIKE '%nccl%', 0) AS on_gpu"
		" FROM python.comm_metrics WHERE latency_ms IS NOT NULL), covered AS (SELECT *, max(ended) OVER"
		" (PARTITION BY on_gpu ORDER BY ended - latency_ms ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until"
		" FROM call) SELECT step, sum(CASE WHEN on_gpu OR until IS NULL THEN latency_ms"
		" ELSE max(0, ended - max(until, ended - latency_ms)) END) FROM covered WHERE step IS NOT NULL GROUP BY step"
		" ORDER BY max(ended) DESC LIMIT " IN_TEXT(MAX_STEPS),
};

/* ---- Rows ---- */

/* A step of the rank; negative times: unknown. */
struct step {
	int64_t step;
	double whole_ms, forward_ms, backward_ms, data_ms, comm_ms;
	double began_s;
};

struct steps {
	struct step *list;
	size_t n, allocated;
};

static const json_t *rows_of(const json_t *answer, size_t i)
{
	return json_object_get(json_array_get(json_object_get(answer, "tables"), i), "rows");
}

/* A time; unknown: -1. */
static double ms_of(const json_t *row, size_t column)
{
	const json_t *value = json_array_get(row, column);
	double ms = json_number_value(value);

	return json_is_number(value) && ms >= 0 && ms < MAX_MS ? ms : -1;
}

/* The step of a row that is older than the one before it, @before; false: it is another count of steps, or no number. */
static bool step_of(const json_t *row, int64_t before, int64_t *ret)
{
	const json_t *value = json_array_get(row, 0);

	if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >= before)
		return false;
	*ret = json_integer_value(value);
	return true;
}

static int compare_steps(const void *a, const void *b)
{
	const struct step *left = a, *right = b;

	return (left->step > right->step) - (left->step < right->step);
}

static int add(struct steps *steps, const struct step *step)
{
	int r = grow(&steps->list, steps->n, &steps->allocated, sizeof *steps->list);

	if (r >= 0)
		steps->list[steps->n++] = *step;
	return r;
}

/* @is_newest: the step may still go on, and its sums grow. */
static void put_row(size_t table, const json_t *row, bool is_newest, struct step *step)
{
	if (table == STEPS_OF_PROGRAM)
		step->whole_ms = ms_of(row, 1);
	if (table == STEPS_OF_PASSES)
		step->began_s = ms_of(row, 1);
	if (table == STEPS_OF_COMM && !is_newest)
		step->comm_ms = ms_of(row, 1);
	if (table != STEPS_OF_PASSES || is_newest)
		return;
	step->forward_ms = ms_of(row, 2);
	step->backward_ms = ms_of(row, 3);
	step->data_ms = ms_of(row, 4);
}

static int read_table(struct steps *steps, size_t table, const json_t *rows)
{
	int64_t number = INT64_MAX;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < json_array_size(rows) && i < CLUSTER_MAX_STEPS; i++) {
		struct step step = {
			.whole_ms = -1, .forward_ms = -1, .backward_ms = -1, .data_ms = -1, .comm_ms = -1, .began_s = -1
		};

		if (!step_of(json_array_get(rows, i), number, &step.step))
			break;
		number = step.step;
		put_row(table, json_array_get(rows, i), i == 0, &step);
		r = add(steps, &step);
	}
	return r;
}

static void take_known(double *to, double from)
{
	if (from >= 0)
		*to = from;
}

/* Rows of one step become one, the oldest first. */
static void join(struct steps *steps)
{
	size_t n = 0;

	if (steps->n > 0)
		qsort(steps->list, steps->n, sizeof *steps->list, compare_steps);
	for (size_t i = 0; i < steps->n; i++) {
		const struct step *from = &steps->list[i];
		struct step *to = n > 0 ? &steps->list[n - 1] : NULL;

		if (!to || to->step != from->step) {
			steps->list[n++] = *from;
			continue;
		}
		take_known(&to->whole_ms, from->whole_ms);
		take_known(&to->forward_ms, from->forward_ms);
		take_known(&to->backward_ms, from->backward_ms);
		take_known(&to->data_ms, from->data_ms);
		take_known(&to->comm_ms, from->comm_ms);
		take_known(&to->began_s, from->began_s);
	}
	steps->n = n;
}

/* A program that never calls probing.step(): from the first pass of a step to that of the next one. */
static void time_by_passes(struct steps *steps)
{
	for (size_t i = 0; i < steps->n; i++)
		if (steps->list[i].whole_ms >= 0)
			return;
	for (size_t i = 0; i + 1 < steps->n; i++) {
		struct step *one = &steps->list[i], *next = one + 1;

		if (next->step == one->step + 1 && one->began_s >= 0 && next->began_s > one->began_s)
			one->whole_ms = (next->began_s - one->began_s) * 1e3;
	}
}

/* ---- Means and history ---- */

/* Of the last steps that have it; -1: none has. @offset: of the number in struct step. */
static double mean_of(const struct steps *steps, size_t offset)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = steps->n; i-- > 0 && n < N_MEAN;) {
		double ms = *(const double *)((const char *)&steps->list[i] + offset);

		if (ms < 0)
			continue;
		sum += ms;
		n++;
	}
	return n > 0 ? sum / (double)n : -1;
}

static double outside_ms(const struct step *step)
{
	return step->whole_ms >= 0 && step->comm_ms >= 0 ? MAX(step->whole_ms - step->comm_ms, 0) : -1;
}

static double passes_ms(const struct step *step)
{
	return step->forward_ms < 0 && step->backward_ms < 0
		       ? -1
		       : MAX(step->forward_ms, 0) + MAX(step->backward_ms, 0) + MAX(step->data_ms, 0);
}

static double whole_ms(const struct step *step)
{
	return step->whole_ms;
}

static int add_moment(struct rank_history *history, int64_t step, double ms)
{
	size_t allocated = history->allocated;
	int r = grow(&history->steps, history->n, &allocated, sizeof *history->steps);

	if (r >= 0)
		r = grow(&history->ms, history->n, &history->allocated, sizeof *history->ms);
	if (r < 0)
		return r;
	history->steps[history->n] = step;
	history->ms[history->n++] = ms;
	return 0;
}

/* Without communication if that is known, because ranks wait for each other there. */
static int fill_history(struct rank_history *history, const struct steps *steps)
{
	static const struct {
		enum history_kind kind;
		double (*ms)(const struct step *step);
	} kinds[] = { { HISTORY_OUTSIDE, outside_ms }, { HISTORY_PASSES, passes_ms }, { HISTORY_STEP, whole_ms } };
	int r = 0;

	for (size_t k = 0; k < N_ELEMENTS(kinds) && history->n == 0; k++) {
		size_t n = 0, known = 0;

		for (size_t i = 0; i < steps->n; i++)
			known += kinds[k].ms(&steps->list[i]) >= 0;
		history->kind = kinds[k].kind;
		for (size_t i = 0; r >= 0 && i < steps->n; i++) {
			double ms = kinds[k].ms(&steps->list[i]);

			if (ms >= 0 && n++ + CLUSTER_MAX_STEPS >= known)
				r = add_moment(history, steps->list[i].step, ms);
		}
	}
	return r;
}

int cluster_read_steps(struct cluster_rank *rank, const char *text, size_t n_bytes)
{
	CLEANUP(value_decrefp) json_t *answer = NULL;
	struct steps steps = { 0 };
	int r = value_load(text, n_bytes, &answer);

	cluster_history_done(rank);
	for (size_t table = 0; r >= 0 && table < N_STEPS_SQL; table++)
		r = read_table(&steps, table, rows_of(answer, table));
	if (r >= 0) {
		join(&steps);
		time_by_passes(&steps);
		rank->usage.step_ms = mean_of(&steps, offsetof(struct step, whole_ms));
		rank->usage.forward_ms = mean_of(&steps, offsetof(struct step, forward_ms));
		rank->usage.backward_ms = mean_of(&steps, offsetof(struct step, backward_ms));
		rank->usage.data_ms = mean_of(&steps, offsetof(struct step, data_ms));
		rank->usage.comm_ms = mean_of(&steps, offsetof(struct step, comm_ms));
		r = fill_history(&rank->history, &steps);
	}
	free(steps.list);
	return r;
}

/* ---- Documents ---- */

static const char *const kind_names[N_HISTORY_KINDS] = {
	[HISTORY_STEP] = "step",
	[HISTORY_OUTSIDE] = "outside communication",
	[HISTORY_PASSES] = "passes",
};

const char *history_kind_name(enum history_kind kind)
{
	return kind_names[kind];
}

void cluster_history_done(struct cluster_rank *rank)
{
	free(rank->history.steps);
	free(rank->history.ms);
	rank->history = (struct rank_history){ 0 };
}

void cluster_history_write(struct json *json, const struct cluster_rank *rank)
{
	const struct rank_history *history = &rank->history;

	if (history->n == 0)
		return;
	to_json_put_object(json, "history");
	to_json_put_string(json, "kind", kind_names[history->kind]);
	to_json_put_array(json, "steps");
	for (size_t i = 0; i < history->n; i++)
		to_json_integer(json, history->steps[i]);
	to_json_array_end(json);
	to_json_put_array(json, "us");
	for (size_t i = 0; i < history->n; i++)
		to_json_integer(json, (int64_t)llround(history->ms[i] * 1e3));
	to_json_array_end(json);
	to_json_object_end(json);
}

int cluster_history_read(struct cluster_rank *rank, const json_t *from)
{
	const json_t *history = json_object_get(from, "history"), *steps = NULL, *us = NULL;
	const char *kind = value_text(history, "kind");
	int64_t before = -1;
	int r = value_array(history, "steps", CLUSTER_MAX_STEPS, &steps);

	cluster_history_done(rank);
	if (r >= 0)
		r = value_array(history, "us", CLUSTER_MAX_STEPS, &us);
	for (size_t k = 0; kind && k < N_HISTORY_KINDS; k++)
		if (strcmp(kind, kind_names[k]) == 0)
			rank->history.kind = (enum history_kind)k;
	for (size_t i = 0; r >= 0 && i < json_array_size(steps); i++) {
		int64_t step = json_integer_value(json_array_get(steps, i));
		double ms = (double)json_integer_value(json_array_get(us, i)) / 1e3;

		if (step <= before || ms < 0 || ms >= MAX_MS)
			return -EBADMSG;
		before = step;
		r = add_moment(&rank->history, step, ms);
	}
	return r;
}
