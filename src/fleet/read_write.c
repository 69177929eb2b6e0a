/* SPDX-License-Identifier: MIT */
/* read_write.c - what was fetched from a fleet, as rows of a new recording: sums without times. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/interner.h"
#include "src/fleet/read_private.h"

enum { FLEET_PID = 1, MAX_DEPTH = 1 << 16, STEP_ROWS = 1 << 16 };

struct writing {
	struct fleet *fleet;
	const struct fleet_answers *answers;
	struct store *store;
	struct interner modules, nodes; /* nodes: (parent, frame) of stacks; numbers + 1 are ids of rows */
	int64_t *stacks;                /* by answers->stacks: the row of its innermost frame */
};

static void writing_done(struct writing *writing)
{
	interner_done(&writing->modules);
	interner_done(&writing->nodes);
	free(writing->stacks);
}

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

/* ---- Functions ---- */

/* @ret: 0: none. */
static int put_module(struct writing *writing, const struct fleet_function *function, int64_t *ret)
{
	CLEANUP(freep) char *key = NULL;
	uint32_t number;
	int n, r;

	*ret = 0;
	if (!function->module[0])
		return 0;
	n = asprintf(&key, "%s%c%s", function->module, '\0', function->build_id);
	if (n < 0) {
		key = NULL;
		return -ENOMEM;
	}
	r = interner_add(&writing->modules, key, (size_t)n, &number);
	if (r < 0)
		return r;
	*ret = (int64_t)number + 1;
	return r == 0 ? 0
		      : store_put_module(writing->store,
					 &(struct module_row){ .module = *ret,
							       .path = function->module,
							       .build_id = or_null(function->build_id) });
}

/* A function, and a frame of it with the same id. The interpreter's loop is one of a frame, not of a function. */
static int put_function(struct writing *writing, const struct fleet_function *function, int64_t id)
{
	bool is_eval = strcmp(function->role, "eval") == 0;
	struct function_row row = { .function = id,
				    .name = function->name,
				    .role = is_eval ? NULL : or_null(function->role),
				    .file = or_null(function->file),
				    .first_line = (int)MIN(function->line, (uint32_t)INT32_MAX) };
	struct frame_row frame = { .frame = id, .function = id, .is_eval = is_eval };
	int r;

	if (frame_kind_parse(function->kind, &row.kind) < 0)
		return fleet_fail(writing->fleet, -EBADMSG,
				  "a function's kind is '%s', which this probing does not know", function->kind);
	r = put_module(writing, function, &row.module);
	if (r < 0)
		return r;
	frame.kind = row.kind;
	frame.module = row.module;
	if (row.kind == FRAME_PYTHON)
		row.module = 0;
	r = store_put_function(writing->store, &row);
	return r < 0 ? r : store_put_frame(writing->store, &frame);
}

/* ---- Stacks ---- */

static int put_node(struct writing *writing, int64_t parent, int64_t frame, unsigned depth, int64_t *ret)
{
	const int64_t key[] = { parent, frame };
	uint32_t number;
	int r = interner_add(&writing->nodes, key, sizeof key, &number);

	if (r < 0)
		return r;
	*ret = (int64_t)number + 1;
	return r == 0 ? 0
		      : store_put_stack(
				writing->store,
				&(struct stack_row){ .stack = *ret, .parent = parent, .frame = frame, .depth = depth });
}

static int put_stacks(struct writing *writing)
{
	const struct fleet_answers *answers = writing->answers;
	int r = 0;

	writing->stacks = calloc(answers->n_stacks + 1, sizeof *writing->stacks);
	if (!writing->stacks)
		return -ENOMEM;
	for (size_t i = 0; i < answers->n_stacks; i++) {
		const struct fleet_stack *stack = &answers->stacks[i];
		unsigned depth = 0;

		if (stack->n > MAX_DEPTH)
			return fleet_fail(writing->fleet, -EBADMSG, "a stack has more than %d frames", MAX_DEPTH);
		for (size_t j = 0; j < stack->n && r == 0; j++) {
			const struct id_slot *slot = id_map_find(&answers->function_of,
								 answers->functions_of_stacks[stack->first + j]);

			/* Only with --partial: the frame is left out. */
			if (slot && slot->id > 0)
				r = put_node(writing, writing->stacks[i], slot->id, depth++, &writing->stacks[i]);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- Threads and sums ---- */

/* Of totals, which know a run and a rank alone: its first process. NULL: unknown. */
static const struct fleet_thread *find_rank(const struct fleet_answers *answers, uint64_t run, int32_t rank)
{
	for (size_t i = 0; i < answers->n_threads; i++)
		if (answers->threads[i].run == run && answers->threads[i].rank == rank)
			return &answers->threads[i];
	return NULL;
}

static const struct fleet_thread *find_thread(const struct fleet_answers *answers, const struct fleet_sum *sum)
{
	const struct fleet_thread key = { .run = sum->run, .pid = sum->pid, .tid = sum->tid };

	if (sum->pid == 0)
		return find_rank(answers, sum->run, sum->rank);
	return answers->n_threads > 0
		       ? bsearch(&key, answers->threads, answers->n_threads, sizeof key, fleet_compare_threads)
		       : NULL;
}

static int put_threads(struct writing *writing)
{
	const struct fleet_answers *answers = writing->answers;
	int r = 0;

	for (size_t i = 0; i < answers->n_threads && r == 0; i++) {
		const struct fleet_thread *it = &answers->threads[i];
		bool is_new = i == 0 || it[-1].run != it->run || it[-1].pid != it->pid;
		pid_t pid = (pid_t)(it->pid + it->apart);
		uint64_t started = 1;

		for (size_t run = 0; is_new && run < writing->fleet->n_runs; run++)
			if (writing->fleet->runs[run].run == it->run)
				started = writing->fleet->runs[run].started * UINT64_C(1000000000);
		if (is_new)
			r = store_put_process(writing->store, &(struct process_row){ .pid = pid,
										     .name = it->process,
										     .command = it->process,
										     .started_ns = started });
		if (r == 0)
			r = store_put_thread(writing->store, &(struct thread_row){ .pid = pid,
										   .tid = (pid_t)(it->tid + it->apart),
										   .name = it->name,
										   .started_ns = started });
	}
	return r;
}

/* All processes as one. */
static int put_one_process(struct writing *writing)
{
	uint64_t started = writing->fleet->runs[0].started * UINT64_C(1000000000);
	int r;

	r = store_put_process(
		writing->store,
		&(struct process_row){ .pid = FLEET_PID, .name = "fleet", .command = "fleet", .started_ns = started });
	return r < 0 ? r
		     : store_put_thread(writing->store, &(struct thread_row){ .pid = FLEET_PID,
									      .tid = FLEET_PID,
									      .name = "fleet",
									      .started_ns = started });
}

static int put_sum(struct writing *writing, const struct fleet_sum *sum, bool merge_processes)
{
	const struct id_slot *slot = sum->stack ? id_map_find(&writing->answers->stack_of, sum->stack) : NULL;
	const struct fleet_thread *thread = merge_processes ? NULL : find_thread(writing->answers, sum);
	struct total_row row = { .pid = FLEET_PID, .tid = FLEET_PID, .samples = sum->samples, .weight = sum->weight };

	if (!merge_processes && !thread && sum->pid > 0) {
		row.pid = (pid_t)sum->pid;
		row.tid = (pid_t)sum->tid;
	} else if (thread) {
		row.pid = (pid_t)(thread->pid + thread->apart);
		row.tid = (pid_t)(thread->tid + thread->apart);
	}
	if (sum->samples > INT64_MAX || sum->weight > INT64_MAX)
		return fleet_fail(writing->fleet, -EBADMSG, "numbers of the answer add up to more than 2^63");
	if (slot && slot->id > 0)
		row.stack = writing->stacks[slot->id - 1];
	return store_put_total(writing->store, &row);
}

/* ---- The run ---- */

/* The value that all runs have, otherwise the other one. */
static const char *common(const struct fleet *fleet, size_t offset, const char *otherwise)
{
	const char *first = *(char *const *)((const char *)&fleet->runs[0] + offset);

	for (size_t i = 1; i < fleet->n_runs; i++)
		if (strcmp(first, *(char *const *)((const char *)&fleet->runs[i] + offset)) != 0)
			return otherwise;
	return first;
}

static size_t count_hosts(const struct fleet *fleet)
{
	struct interner hosts = { 0 };
	uint32_t number;
	size_t n = 0;

	for (size_t i = 0; i < fleet->n_runs; i++)
		n += interner_add(&hosts, fleet->runs[i].host, strlen(fleet->runs[i].host), &number) > 0;
	interner_done(&hosts);
	return n;
}

static int put_run(struct writing *writing, bool merge_processes, const char *version)
{
	const struct fleet *fleet = writing->fleet;
	const struct fleet_run *first = &fleet->runs[0];
	const struct fleet_thread *thread = fleet->n_runs == 1 && !merge_processes && writing->answers->n_threads > 0
						    ? &writing->answers->threads[0]
						    : NULL;
	char hosts[32];
	int r;

	snprintf(hosts, sizeof hosts, "%zu hosts", count_hosts(fleet));
	r = store_put_run(
		writing->store,
		&(struct run_row){ .started_ns = first->started * UINT64_C(1000000000),
				   .command = common(fleet, offsetof(struct fleet_run, command), first->command),
				   .mode = common(fleet, offsetof(struct fleet_run, mode), "imported"),
				   .stack_source = "fleet",
				   .host = common(fleet, offsetof(struct fleet_run, host), hosts),
				   .kernel = common(fleet, offsetof(struct fleet_run, kernel), ""),
				   .probing = version,
				   .python = or_null(common(fleet, offsetof(struct fleet_run, python), "")),
				   .pid = thread ? (pid_t)thread->pid : FLEET_PID,
				   .hz = first->hz,
				   .kernel_frames = true,
				   .cpus = first->cpus });
	if (r == 0 && strcmp(first->unit, "ns") != 0)
		r = store_set_run_event(writing->store, first->event[0] ? first->event : "weight", true, 0);
	return r;
}

/* Transactions do not grow without bound. */
static int step(struct writing *writing, size_t i)
{
	int r;

	if (i % STEP_ROWS != STEP_ROWS - 1)
		return 0;
	if (!writing->fleet->place.keep_going || writing->fleet->place.keep_going(NULL)) {
		r = store_commit(writing->store);
		return r < 0 ? r : store_begin(writing->store);
	}
	return -ECANCELED;
}

int fleet_write(struct fleet *fleet, const struct fleet_answers *answers, bool merge_processes, struct store *store,
		const char *version)
{
	CLEANUP(writing_done) struct writing writing = { .fleet = fleet, .answers = answers, .store = store };
	int r = store_begin(store);

	if (r == 0)
		r = put_run(&writing, merge_processes, version);
	for (size_t i = 0; i < answers->n_functions && r == 0; i++)
		r = put_function(&writing, &answers->functions[i], (int64_t)i + 1);
	if (r == 0)
		r = put_stacks(&writing);
	if (r == 0)
		r = merge_processes ? put_one_process(&writing) : put_threads(&writing);
	for (size_t i = 0; i < answers->n_sums && r == 0; i++) {
		r = put_sum(&writing, &answers->sums[i], merge_processes);
		if (r == 0)
			r = step(&writing, i);
	}
	return r < 0 ? r : store_commit(store);
}
