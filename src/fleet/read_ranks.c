/* SPDX-License-Identifier: MIT */
/* read_ranks.c - what each rank of a job did, for cluster report. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/fleet/read_private.h"

enum { MINUTE_S = 60 };

struct visiting {
	struct fleet *fleet;
	const struct fleet_selection *selection;
	const struct fleet_answers *answers;
	const struct fleet_rank_visitor *visitor;
	uint32_t last; /* the end of the last minute with samples */
};

/* ---- Stacks ---- */

static int visit_stack(const struct visiting *visiting, const struct fleet_stack *stack)
{
	const struct fleet_answers *answers = visiting->answers;
	struct fleet_call *calls = calloc(stack->n + 1, sizeof *calls);
	size_t n = 0;
	int r;

	if (!calls)
		return -ENOMEM;
	for (size_t i = 0; i < stack->n; i++) {
		const struct id_slot *slot = id_map_find(&answers->function_of,
							 answers->functions_of_stacks[stack->first + i]);
		const struct fleet_function *function = slot && slot->id > 0 ? &answers->functions[slot->id - 1] : NULL;

		if (function) /* without it only by --partial */
			calls[n++] = (struct fleet_call){ function->kind, function->role, function->name,
							  function->file, function->module };
	}
	r = visiting->visitor->stack(visiting->visitor->data, calls, n);
	free(calls);
	return r;
}

/* ---- Ranks ---- */

static const struct fleet_run *find_run(const struct fleet *fleet, uint64_t run)
{
	for (size_t i = 0; i < fleet->n_runs; i++)
		if (fleet->runs[i].run == run)
			return &fleet->runs[i];
	return NULL;
}

/* The part of a run within the selected time. */
static void clip(const struct visiting *visiting, const struct fleet_run *run, double *ret_from, double *ret_to)
{
	const struct fleet_selection *selection = visiting->selection;
	double to = run->ended > 0 ? run->ended : visiting->last;

	*ret_from = selection->has_since ? MAX(selection->since, (double)run->started) : run->started;
	*ret_to = selection->has_until ? MIN(selection->until, to) : to;
}

static int compare_starts(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (left[0] > right[0]) - (left[0] < right[0]);
}

/* How long any of a rank's recordings lasted. @sums: of the rank, by run. */
static int measure(const struct visiting *visiting, const struct fleet_sum *sums, size_t n, double *ret)
{
	double(*times)[2] = calloc(n + 1, sizeof *times);
	double until = 0;
	size_t n_runs = 0;

	if (!times)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct fleet_run *run = i > 0 && sums[i].run == sums[i - 1].run
						      ? NULL
						      : find_run(visiting->fleet, sums[i].run);

		if (run) {
			clip(visiting, run, &times[n_runs][0], &times[n_runs][1]);
			n_runs++;
		}
	}
	qsort(times, n_runs, sizeof *times, compare_starts);
	*ret = 0;
	for (size_t i = 0; i < n_runs; i++) {
		*ret += MAX(times[i][1] - MAX(times[i][0], until), 0);
		until = MAX(until, times[i][1]);
	}
	free(times);
	return 0;
}

static int visit_rank(const struct visiting *visiting, const struct fleet_sum *sums, size_t n)
{
	const struct fleet_run *run = find_run(visiting->fleet, sums[0].run);
	const struct fleet_thread *process = fleet_find_rank(visiting->answers, sums[0].run, sums[0].rank);
	struct fleet_rank rank = { .rank = sums[0].rank,
				   .pid = process ? process->pid : 0,
				   .host = run ? run->host : "" };
	uint64_t running = 0;
	int r = measure(visiting, sums, n, &rank.seconds);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		rank.n_samples += sums[i].samples;
		running += sums[i].running;
	}
	rank.cpu_s = run && strcmp(run->unit, "ns") == 0 && strcmp(run->mode, "offcpu") != 0 ? (double)running / 1e9
											     : -1;
	r = visiting->visitor->rank(visiting->visitor->data, &rank);
	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct id_slot *slot = id_map_find(&visiting->answers->stack_of, sums[i].stack);

		if (sums[i].stack != 0 && slot && slot->id > 0)
			r = visiting->visitor->samples(visiting->visitor->data, slot->id - 1, sums[i].samples);
	}
	return r;
}

static int visit_all(struct visiting *visiting)
{
	const struct fleet_answers *answers = visiting->answers;
	int r = 0;

	for (size_t i = 0; i < answers->n_sums; i++)
		visiting->last = MAX(visiting->last,
				     answers->sums[i].last - answers->sums[i].last % MINUTE_S + MINUTE_S);
	for (size_t i = 0; i < answers->n_stacks && r >= 0; i++)
		r = visit_stack(visiting, &answers->stacks[i]);
	for (size_t i = 0, n; i < answers->n_sums && r >= 0; i += n) {
		const struct fleet_sum *first = &answers->sums[i];

		/* Without a number each recording is one. */
		for (n = 1; i + n < answers->n_sums && first[n].rank == first->rank &&
			    (first->rank >= 0 || first[n].run == first->run);)
			n++;
		r = visit_rank(visiting, first, n);
	}
	return MIN(r, 0);
}

int fleet_read_ranks(struct fleet *fleet, const struct fleet_selection *selection,
		     const struct fleet_rank_visitor *visitor)
{
	CLEANUP(fleet_answers_done) struct fleet_answers answers = { 0 };
	struct visiting visiting = { .fleet = fleet, .selection = selection, .answers = &answers, .visitor = visitor };
	int r;

	r = fleet_fetch_rank_sums(fleet, selection, &answers);
	if (r == 0 && answers.n_sums == 0)
		r = fleet_fail(fleet, -ENODATA, "no sample of the job was taken in that time, or by these ranks");
	if (r == 0)
		r = fleet_fetch_threads(fleet, &answers);
	if (r == 0)
		r = fleet_fetch_stacks(fleet, &answers);
	if (r == 0 && fleet->place.is_partial)
		r = fleet_note_missing(fleet);
	return r < 0 ? r : visit_all(&visiting);
}
