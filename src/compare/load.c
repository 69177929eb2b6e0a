/* SPDX-License-Identifier: MIT */
/*
 * load.c - the samples of a recording as weights of nodes, for each of its runs.
 *
 * Frames become functions, stacks nodes of one tree that all runs share, outermost first. A run has the self time of
 * each node; total times of functions and stacks follow from the tree.
 */
#include "src/compare/load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/compare/function_table.h"

enum { FIRST_PATH = 256 };

struct loading {
	struct compare *compare;
	const struct profile *profile;
	enum side side;
	const struct file_runs *runs;
	uint32_t *functions; /* by frame, plus 1; 0: not set yet */
	uint32_t *nodes;     /* by stack, plus 1; 0: not set yet */
	int32_t *path;
	size_t path_allocated;
	uint32_t nothing;        /* node for samples without a stack */
	const int32_t *steps_of; /* by total, index into the runs from the first on; NULL: runs are those of processes */
};

int compare_new(const struct compare_options *options, struct compare **ret)
{
	CLEANUP(compare_freep) struct compare *compare = calloc(1, sizeof *compare);
	int r;

	if (!compare)
		return -ENOMEM;
	compare->options = *options;
	r = function_table_new(&compare->table);
	if (r >= 0)
		r = function_table_forget_nodes(compare);
	if (r < 0)
		return r;
	*ret = TAKE(compare);
	return 0;
}

void compare_free(struct compare *compare)
{
	if (!compare)
		return;
	for (size_t i = 0; i < compare->n_runs; i++)
		runs_done(&compare->runs[i]);
	for (size_t i = 0; i < compare->n_functions; i++) {
		free(compare->functions[i].name);
		free(compare->functions[i].place);
		free(compare->functions[i].was_place);
	}
	function_table_free(compare->table);
	free(compare->runs);
	free(compare->functions);
	free(compare->nodes);
	free(compare->unit);
	free(compare->self_values);
	free(compare->means[SIDE_BASE]);
	free(compare->means[SIDE_HEAD]);
	free(compare->rows);
	free(compare->stacks);
	free(compare);
}

void compare_freep(struct compare **compare)
{
	compare_free(*compare);
}

/* Read the shown path of a stack of any length. */
static int read_path(struct loading *loading, int32_t stack, size_t *ret)
{
	for (;;) {
		size_t n = 0;
		int r;

		if (loading->path_allocated > 0)
			n = profile_path(loading->profile, stack, loading->compare->options.show_interpreter,
					 loading->path, loading->path_allocated);
		if (n < loading->path_allocated) {
			*ret = n;
			return 0;
		}
		/* The path fills the array, so it may be longer. */
		r = grow(&loading->path, MAX(n, (size_t)FIRST_PATH), &loading->path_allocated, sizeof *loading->path);
		if (r < 0)
			return r;
	}
}

static int function_of(struct loading *loading, int32_t frame, uint32_t *ret)
{
	uint32_t *known = &loading->functions[frame];
	int r;

	if (*known == 0) {
		uint32_t function;

		r = function_table_enter_frame(loading->compare, &loading->profile->frames[frame], &function);
		if (r < 0)
			return r;
		*known = function + 1;
	}
	*ret = *known - 1;
	loading->compare->functions[*ret].is_seen[loading->side] = true;
	if (loading->steps_of) /* of one program: it is there on both sides, even if it never runs on one */
		loading->compare->functions[*ret].is_seen[SIDE_BASE] =
			loading->compare->functions[*ret].is_seen[SIDE_HEAD] = true;
	return 0;
}

static int enter_nothing(struct loading *loading, uint32_t *ret)
{
	const struct profile_frame frame = { .kind = FRAME_NATIVE, .name = profile_nothing(loading->profile) };
	uint32_t function;
	int r;

	if (loading->nothing == 0) {
		r = function_table_enter_frame(loading->compare, &frame, &function);
		if (r >= 0)
			r = function_table_enter_node(loading->compare, 0, function, &loading->nothing);
		if (r < 0)
			return r;
		loading->compare->functions[function].is_seen[loading->side] = true;
	}
	*ret = loading->nothing;
	return 0;
}

static int enter_stack(struct loading *loading, int32_t stack, uint32_t *ret)
{
	size_t n = 0;
	uint32_t node = 0;
	int r = 0;

	if (stack >= 0)
		r = read_path(loading, stack, &n);
	if (r < 0)
		return r;
	if (n == 0)
		return enter_nothing(loading, ret);
	for (size_t i = 0; i < n; i++) {
		uint32_t function;

		r = function_of(loading, loading->path[i], &function);
		if (r >= 0)
			r = function_table_enter_node(loading->compare, node, function, &node);
		if (r < 0)
			return r;
	}
	*ret = node;
	return 0;
}

static int node_of(struct loading *loading, int32_t stack, uint32_t *ret)
{
	uint32_t node;
	int r;

	if (stack >= 0 && loading->nodes[stack] != 0) {
		*ret = loading->nodes[stack] - 1;
		return 0;
	}
	r = enter_stack(loading, stack, &node);
	if (r < 0)
		return r;
	if (stack >= 0)
		loading->nodes[stack] = node + 1;
	*ret = node;
	return 0;
}

static int compare_pids(const void *a, const void *b)
{
	const struct run_of_pid *left = a, *right = b;

	return left->pid < right->pid ? -1 : left->pid > right->pid;
}

/* NULL: no run of this file. */
static struct compare_run *run_of(const struct loading *loading, int32_t pid)
{
	const struct file_runs *runs = loading->runs;
	const struct run_of_pid wanted = { .pid = pid }, *found;

	if (runs->n_pids == 0)
		return &loading->compare->runs[runs->first];
	found = bsearch(&wanted, runs->pids, runs->n_pids, sizeof *runs->pids, compare_pids);
	for (size_t i = 0; found && i < runs->n; i++)
		if (runs->numbers[i] == found->run)
			return &loading->compare->runs[runs->first + i];
	return NULL;
}

static int put_weight(struct compare *compare, struct compare_run *run, uint32_t node, double weight)
{
	if (node >= run->n_nodes) {
		size_t n = MAX(compare->n_nodes, run->n_nodes * 2);
		double *self = reallocarray(run->self, n, sizeof *self);

		if (!self)
			return -ENOMEM;
		memset(self + run->n_nodes, 0, (n - run->n_nodes) * sizeof *self);
		run->self = self;
		run->n_nodes = n;
	}
	run->self[node] += weight;
	return 0;
}

static int load_totals(struct loading *loading)
{
	const struct profile *profile = loading->profile;
	int r = 0;

	for (size_t i = 0; i < profile->n_totals && r >= 0; i++) {
		const struct profile_total *total = &profile->totals[i];
		struct compare_run *run;
		uint32_t node = 0;

		if (loading->steps_of && loading->steps_of[i] < 0)
			continue;
		run = loading->steps_of ? &loading->compare->runs[loading->runs->first + (size_t)loading->steps_of[i]]
					: run_of(loading, total->pid);
		if (run)
			loading->side = run->side;
		if (!run)
			return -EBADMSG;
		r = node_of(loading, total->stack, &node);
		if (r >= 0)
			r = put_weight(loading->compare, run, node, (double)total->weight);
		run->samples += total->samples;
		run->weight += total->weight;
	}
	return r;
}

/* All recordings must have the same unit. */
static int check_unit(struct compare *compare, const struct profile *profile, char *why)
{
	const char *unit = profile->unit ? profile->unit : "ns", *before = compare->unit ? compare->unit : "ns";

	if (compare->n_runs > 0 && strcmp(unit, before) != 0) {
		snprintf(why, 256, "its weights are in %.60s, those before in %.60s", unit, before);
		return -EDOM;
	}
	if (!profile->unit || compare->unit)
		return 0;
	compare->unit = name_clean(profile->unit);
	return compare->unit ? 0 : -ENOMEM;
}

/* @steps_of: see struct loading. */
static int add_profile(struct compare *compare, const struct profile *profile, const struct file_runs *runs,
		       const int32_t *steps_of)
{
	CLEANUP(freep) uint32_t *functions = calloc(profile->n_frames + 1, sizeof *functions);
	CLEANUP(freep) uint32_t *nodes = calloc(profile->n_stacks + 1, sizeof *nodes);
	struct loading loading = { .compare = compare,
				   .profile = profile,
				   .functions = functions,
				   .nodes = nodes,
				   .runs = runs,
				   .steps_of = steps_of };
	int r = functions && nodes ? load_totals(&loading) : -ENOMEM;

	/* Drop preallocated nodes. */
	for (size_t i = 0; i < compare->n_runs; i++)
		compare->runs[i].n_nodes = MIN(compare->runs[i].n_nodes, compare->n_nodes);
	free(loading.path);
	return r;
}

int compare_add(struct compare *compare, enum side side, const char *name, sqlite3 *db, const struct profile *profile,
		char *why)
{
	CLEANUP(file_runs_done) struct file_runs runs = { 0 };
	int r;

	why[0] = '\0';
	function_table_begin(compare->table);
	r = check_unit(compare, profile, why);
	if (r >= 0)
		r = runs_read(compare, side, name, db, &runs, why);
	if (r >= 0 && runs.n_pids > 0)
		qsort(runs.pids, runs.n_pids, sizeof *runs.pids, compare_pids);
	return r < 0 ? r : add_profile(compare, profile, &runs, NULL);
}

int compare_add_steps(struct compare *compare, const char *name, sqlite3 *db, const struct profile *profile,
		      const struct compare_steps *steps, size_t n_steps, const int32_t *steps_of, char *why)
{
	struct file_runs runs = { .first = compare->n_runs };
	int r;

	why[0] = '\0';
	function_table_begin(compare->table);
	r = check_unit(compare, profile, why);
	for (size_t i = 0; i < n_steps && r >= 0; i++)
		r = runs_add_steps(compare, name, &steps[i], db);
	return r < 0 ? r : add_profile(compare, profile, &runs, steps_of);
}

int compare_add_ranks(struct compare *compare, const struct profile *profile, const struct compare_rank *ranks,
		      size_t n_ranks, const int32_t *ranks_of)
{
	struct file_runs runs = { .first = compare->n_runs };
	int r = 0;

	function_table_begin(compare->table);
	for (size_t i = 0; i < n_ranks && r >= 0; i++)
		r = runs_add_rank(compare, &ranks[i]);
	return r < 0 ? r : add_profile(compare, profile, &runs, ranks_of);
}
