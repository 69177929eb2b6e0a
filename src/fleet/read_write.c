/* SPDX-License-Identifier: MIT */
/* read_write.c - what was fetched from a fleet, as rows of a new recording: sums without times. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/fleet/read_private.h"

enum { FLEET_PID = 1, MAX_DEPTH = 1 << 16, STEP_ROWS = 1 << 16 };

void fleet_writer_done(struct fleet_writer *writing)
{
	interner_done(&writing->modules);
	interner_done(&writing->frames);
	interner_done(&writing->nodes);
	interner_done(&writing->variants);
	free(writing->stacks);
	free(writing->variant_stacks);
}

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

/* ---- Functions ---- */

/* @ret: 0: none. */
static int put_module(struct fleet_writer *writing, const struct fleet_function *function, int64_t *ret)
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

static bool is_eval(const struct fleet_function *function)
{
	return strcmp(function->role, "eval") == 0;
}

static int parse_kind(struct fleet_writer *writing, const struct fleet_function *function, enum frame_kind *ret)
{
	if (frame_kind_parse(function->kind, ret) == 0)
		return 0;
	return fleet_fail(writing->fleet, -EBADMSG, "a function's kind is '%s', which this probing does not know",
			  function->kind);
}

/* The interpreter's loop is one of a frame, not of a function. */
static int put_function(struct fleet_writer *writing, const struct fleet_function *function, int64_t id)
{
	struct function_row row = { .function = id,
				    .name = function->name,
				    .role = is_eval(function) ? NULL : or_null(function->role),
				    .file = or_null(function->file),
				    .first_line = (int)MIN(function->line, (uint32_t)INT32_MAX) };
	int r = parse_kind(writing, function, &row.kind);

	if (r == 0 && row.kind != FRAME_PYTHON)
		r = put_module(writing, function, &row.module);
	return r < 0 ? r : store_put_function(writing->store, &row);
}

/* A frame of a function. @line: 0: unknown. */
static int put_frame(struct fleet_writer *writing, uint32_t function_id, uint16_t line, int64_t *ret)
{
	const struct fleet_function *function = &writing->answers->functions[function_id - 1];
	const uint32_t key[] = { function_id, line };
	struct frame_row row = { .function = function_id, .is_eval = is_eval(function), .line = line };
	uint32_t number;
	int r = interner_add(&writing->frames, key, sizeof key, &number);

	if (r < 0)
		return r;
	*ret = row.frame = (int64_t)number + 1;
	if (r == 0)
		return 0;
	r = parse_kind(writing, function, &row.kind);
	if (r == 0)
		r = put_module(writing, function, &row.module);
	return r < 0 ? r : store_put_frame(writing->store, &row);
}

/* ---- Stacks ---- */

static int put_node(struct fleet_writer *writing, int64_t parent, int64_t frame, unsigned depth, int64_t *ret)
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

/* @leaf: the line of the innermost Python frame; 0: unknown. @ret: the row of the innermost frame. */
static int put_path(struct fleet_writer *writing, const struct fleet_stack *stack, uint16_t leaf, int64_t *ret)
{
	const struct fleet_answers *answers = writing->answers;
	size_t innermost = stack->n;
	unsigned depth = 0;
	int r = 0;

	if (stack->n > MAX_DEPTH)
		return fleet_fail(writing->fleet, -EBADMSG, "a stack has more than %d frames", MAX_DEPTH);
	for (size_t j = 0; j < stack->n && leaf > 0; j++) {
		const struct id_slot *slot = id_map_find(&answers->function_of,
							 answers->functions_of_stacks[stack->first + j]);

		if (slot && slot->id > 0 && strcmp(answers->functions[slot->id - 1].kind, "python") == 0)
			innermost = j;
	}
	*ret = 0;
	for (size_t j = 0; j < stack->n && r == 0; j++) {
		const struct id_slot *slot = id_map_find(&answers->function_of,
							 answers->functions_of_stacks[stack->first + j]);
		int64_t frame;

		if (!slot || slot->id == 0) /* only with --partial: the frame is left out */
			continue;
		r = put_frame(writing, slot->id, j == innermost ? leaf : 0, &frame);
		if (r == 0)
			r = put_node(writing, *ret, frame, depth++, ret);
	}
	return r;
}

/* The stack with a line at its innermost Python frame. */
static int put_variant(struct fleet_writer *writing, size_t stack, uint16_t leaf, int64_t *ret)
{
	const uint64_t key[] = { stack, leaf };
	uint32_t number;
	int r = interner_add(&writing->variants, key, sizeof key, &number);

	if (r == 1) {
		r = grow(&writing->variant_stacks, writing->n_variants, &writing->variants_allocated,
			 sizeof *writing->variant_stacks);
		if (r == 0)
			r = put_path(writing, &writing->answers->stacks[stack], leaf,
				     &writing->variant_stacks[writing->n_variants++]);
	}
	if (r < 0)
		return r;
	*ret = writing->variant_stacks[number];
	return 0;
}

/* Functions and stacks that were fetched since. */
int fleet_write_names(struct fleet_writer *writing)
{
	const struct fleet_answers *answers = writing->answers;
	int64_t *stacks = reallocarray(writing->stacks, answers->n_stacks + 1, sizeof *stacks);
	int r = 0;

	if (!stacks)
		return -ENOMEM;
	writing->stacks = stacks;
	for (; writing->n_functions < answers->n_functions && r == 0; writing->n_functions++)
		r = put_function(writing, &answers->functions[writing->n_functions], (int64_t)writing->n_functions + 1);
	for (; writing->n_stacks < answers->n_stacks && r == 0; writing->n_stacks++)
		r = put_path(writing, &answers->stacks[writing->n_stacks], 0, &writing->stacks[writing->n_stacks]);
	return r;
}

int fleet_find_stack(struct fleet_writer *writing, const struct fleet_sum *sum, int64_t *ret)
{
	const struct id_slot *slot = sum->stack ? id_map_find(&writing->answers->stack_of, sum->stack) : NULL;

	*ret = 0;
	if (!slot || slot->id == 0)
		return 0;
	if (sum->leaf > 0)
		return put_variant(writing, slot->id - 1, sum->leaf, ret);
	*ret = writing->stacks[slot->id - 1];
	return 0;
}

/* ---- Threads and sums ---- */

/* Of totals, which know a run and a rank alone: its first process. NULL: unknown. */
const struct fleet_thread *fleet_find_rank(const struct fleet_answers *answers, uint64_t run, int32_t rank)
{
	size_t at = 0, end = answers->n_threads;

	while (at < end) {
		size_t middle = at + (end - at) / 2;

		if (answers->threads[middle].run < run)
			at = middle + 1;
		else
			end = middle;
	}
	for (; at < answers->n_threads && answers->threads[at].run == run; at++)
		if (answers->threads[at].rank == rank)
			return &answers->threads[at];
	return NULL;
}

const struct fleet_thread *fleet_find_thread(const struct fleet_answers *answers, const struct fleet_sum *sum)
{
	const struct fleet_thread key = { .run = sum->run, .pid = sum->pid, .tid = sum->tid };

	if (sum->pid == 0)
		return fleet_find_rank(answers, sum->run, sum->rank);
	return answers->n_threads > 0
		       ? bsearch(&key, answers->threads, answers->n_threads, sizeof key, fleet_compare_threads)
		       : NULL;
}

static int put_thread(struct fleet_writer *writing, const struct fleet_thread *thread, bool with_rank, uint64_t started)
{
	char name[256];

	snprintf(name, sizeof name, "rank %" PRId32 ": %s", thread->rank, thread->name);
	return store_put_thread(writing->store,
				&(struct thread_row){ .pid = (pid_t)(thread->pid + thread->apart),
						      .tid = (pid_t)(thread->tid + thread->apart),
						      .name = with_rank && thread->rank >= 0 ? name : thread->name,
						      .started_ns = started });
}

int fleet_write_threads(struct fleet_writer *writing, bool with_ranks)
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
			r = put_thread(writing, it, with_ranks, started);
	}
	return r;
}

/* All processes as one. */
static int put_one_process(struct fleet_writer *writing)
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

static int put_sum(struct fleet_writer *writing, const struct fleet_sum *sum, bool merge_processes)
{
	const struct fleet_thread *thread = merge_processes ? NULL : fleet_find_thread(writing->answers, sum);
	struct total_row row = { .pid = FLEET_PID, .tid = FLEET_PID, .samples = sum->samples, .weight = sum->weight };
	int r;

	if (!merge_processes && !thread && sum->pid > 0) {
		row.pid = (pid_t)sum->pid;
		row.tid = (pid_t)sum->tid;
	} else if (thread) {
		row.pid = (pid_t)(thread->pid + thread->apart);
		row.tid = (pid_t)(thread->tid + thread->apart);
	}
	if (sum->samples > INT64_MAX || sum->weight > INT64_MAX)
		return fleet_fail(writing->fleet, -EBADMSG, "numbers of the answer add up to more than 2^63");
	r = fleet_find_stack(writing, sum, &row.stack);
	return r < 0 ? r : store_put_total(writing->store, &row);
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

int fleet_write_run(struct fleet_writer *writing, bool merge_processes, const char *version)
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
static int step(struct fleet_writer *writing, size_t i)
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
	CLEANUP(fleet_writer_done)
	struct fleet_writer writing = { .fleet = fleet, .answers = answers, .store = store };
	int r = store_begin(store);

	if (r == 0)
		r = fleet_write_run(&writing, merge_processes, version);
	if (r == 0)
		r = fleet_write_names(&writing);
	if (r == 0)
		r = merge_processes ? put_one_process(&writing) : fleet_write_threads(&writing, false);
	for (size_t i = 0; i < answers->n_sums && r == 0; i++) {
		r = put_sum(&writing, &answers->sums[i], merge_processes);
		if (r == 0)
			r = step(&writing, i);
	}
	return r < 0 ? r : store_commit(store);
}
