/* SPDX-License-Identifier: MIT */
/*
 * read_names.c - threads, stacks and functions of the sums that were fetched.
 *
 * Ids of stacks and functions are listed in statements, as many as fit into the smallest limit of a server
 * (max_query_size: 256 KiB).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/fleet/read_private.h"

enum { MAX_IDS = 10000, APART = 10000000, MAX_APART = 200, NOT_FETCHED = 0 };

static void thread_done(struct fleet_thread *thread)
{
	free(thread->name);
	free(thread->process);
}

static void function_done(struct fleet_function *function)
{
	free(function->kind);
	free(function->role);
	free(function->name);
	free(function->file);
	free(function->module);
	free(function->build_id);
}

void fleet_forget_threads(struct fleet_answers *answers)
{
	for (size_t i = 0; i < answers->n_threads; i++)
		thread_done(&answers->threads[i]);
	answers->n_threads = 0;
}

void fleet_answers_done(struct fleet_answers *answers)
{
	fleet_forget_threads(answers);
	for (size_t i = 0; i < answers->n_functions; i++)
		function_done(&answers->functions[i]);
	free(answers->sums);
	free(answers->threads);
	free(answers->stacks);
	free(answers->functions_of_stacks);
	free(answers->functions);
	id_map_done(&answers->stack_of);
	id_map_done(&answers->function_of);
	*answers = (struct fleet_answers){ 0 };
}

static void print_ids(FILE *out, const uint64_t *ids, size_t n)
{
	fputc('(', out);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", ids[i]);
	fputc(')', out);
}

/* ---- Threads ---- */

static int take_threads(struct fleet *fleet, struct row_cursor *rows, struct fleet_answers *answers)
{
	while (row_cursor_more(rows)) {
		struct fleet_thread thread = { .run = row_cursor_number(rows, sizeof thread.run) };
		int r;

		thread.pid = (uint32_t)row_cursor_number(rows, sizeof thread.pid);
		thread.tid = (uint32_t)row_cursor_number(rows, sizeof thread.tid);
		thread.rank = row_cursor_int32(rows);
		r = row_cursor_text(rows, &thread.name);
		if (r == 0)
			r = row_cursor_text(rows, &thread.process);
		if (r == 0)
			r = grow(&answers->threads, answers->n_threads, &answers->threads_allocated,
				 sizeof *answers->threads);
		if (r < 0) {
			thread_done(&thread);
			return r;
		}
		answers->threads[answers->n_threads++] = thread;
	}
	return fleet_finish_rows(fleet, rows);
}

int fleet_compare_threads(const void *a, const void *b)
{
	const struct fleet_thread *left = a, *right = b;

	if (left->run != right->run)
		return left->run < right->run ? -1 : 1;
	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

/*
 * Runs in the order of time: a process whose pid an earlier one has gets a pid that is 10,000,000 larger, and so on, as
 * in a merged recording.
 */
static int set_apart(const struct fleet *fleet, struct fleet_answers *answers)
{
	struct id_map taken = { 0 };
	int r = 0;

	for (size_t i = 0; i < fleet->n_runs && r == 0; i++) {
		const struct fleet_thread key = { .run = fleet->runs[i].run };
		size_t at = 0, end = answers->n_threads;

		while (at < end) {
			size_t middle = at + (end - at) / 2;

			if (fleet_compare_threads(&answers->threads[middle], &key) < 0)
				at = middle + 1;
			else
				end = middle;
		}
		for (; at < answers->n_threads && answers->threads[at].run == key.run && r == 0; at++) {
			struct fleet_thread *it = &answers->threads[at];
			bool is_same = at > 0 && it[-1].run == it->run && it[-1].pid == it->pid;

			it->apart = is_same ? it[-1].apart : 0;
			while (!is_same && id_map_find(&taken, (uint64_t)it->pid + it->apart + 1) &&
			       it->apart < (uint32_t)APART * MAX_APART)
				it->apart += APART;
			if (!is_same && !id_map_find(&taken, (uint64_t)it->pid + it->apart + 1))
				r = id_map_add(&taken, (uint64_t)it->pid + it->apart + 1, 1);
		}
	}
	id_map_done(&taken);
	return r;
}

int fleet_fetch_threads(struct fleet *fleet, struct fleet_answers *answers)
{
	int r = 0;

	for (size_t first = 0; first < fleet->n_runs && r == 0; first += MAX_IDS) {
		size_t n = MIN(fleet->n_runs - first, (size_t)MAX_IDS);
		struct fleet_statement statement;
		struct row_cursor rows;

		r = fleet_begin(&statement);
		if (r < 0)
			return r;
		fputs("SELECT run, pid, tid, argMax(rank, version), argMax(name, version), argMax(process, version)"
		      " FROM threads WHERE run IN (",
		      statement.out);
		for (size_t i = 0; i < n; i++)
			fprintf(statement.out, "%s%" PRIu64, i > 0 ? "," : "", fleet->runs[first + i].run);
		fputs(") GROUP BY run, pid, tid", statement.out);
		r = fleet_send(fleet, &statement, &rows);
		if (r == 0)
			r = take_threads(fleet, &rows, answers);
	}
	if (r < 0)
		return r;
	if (answers->n_threads > 0)
		qsort(answers->threads, answers->n_threads, sizeof *answers->threads, fleet_compare_threads);
	return set_apart(fleet, answers);
}

/* ---- Stacks ---- */

/* Note an id once, and list it. */
static int want(struct id_map *known, uint64_t id, uint64_t **ids, size_t *n, size_t *allocated)
{
	int r;

	if (id == 0 || id_map_find(known, id))
		return 0;
	r = id_map_add(known, id, NOT_FETCHED);
	if (r == 0)
		r = grow(ids, *n, allocated, sizeof **ids);
	if (r == 0)
		(*ids)[(*n)++] = id;
	return r;
}

static int take_stacks(struct fleet *fleet, struct row_cursor *rows, struct fleet_answers *answers)
{
	while (row_cursor_more(rows)) {
		uint64_t id = row_cursor_number(rows, sizeof id);
		struct id_slot *slot = id_map_find(&answers->stack_of, id);
		struct fleet_stack stack = { .first = answers->n_functions_of_stacks, .n = row_cursor_count(rows) };
		int r;

		for (size_t i = 0; i < stack.n; i++) {
			r = grow(&answers->functions_of_stacks, answers->n_functions_of_stacks,
				 &answers->functions_of_stacks_allocated, sizeof *answers->functions_of_stacks);
			if (r < 0)
				return r;
			answers->functions_of_stacks[answers->n_functions_of_stacks++] = row_cursor_number(
				rows, sizeof(uint64_t));
		}
		if (!slot || slot->id != NOT_FETCHED)
			return fleet_fail(fleet, -EBADMSG, "%s answers with a stack that was not asked for",
					  fleet->place.base);
		r = grow(&answers->stacks, answers->n_stacks, &answers->stacks_allocated, sizeof *answers->stacks);
		if (r < 0)
			return r;
		answers->stacks[answers->n_stacks++] = stack;
		slot->id = (uint32_t)answers->n_stacks; /* index + 1 */
	}
	return fleet_finish_rows(fleet, rows);
}

static int take_functions(struct fleet *fleet, struct row_cursor *rows, struct fleet_answers *answers)
{
	while (row_cursor_more(rows)) {
		struct fleet_function function = { .function = row_cursor_number(rows, sizeof function.function) };
		struct id_slot *slot = id_map_find(&answers->function_of, function.function);
		char **const texts[] = { &function.kind, &function.role,   &function.name,
					 &function.file, &function.module, &function.build_id };
		int r = 0;

		for (size_t i = 0; i < N_ELEMENTS(texts) && r == 0; i++)
			r = row_cursor_text(rows, texts[i]);
		function.line = (uint32_t)row_cursor_number(rows, sizeof function.line);
		if (r == 0 && (!slot || slot->id != NOT_FETCHED))
			r = fleet_fail(fleet, -EBADMSG, "%s answers with a function that was not asked for",
				       fleet->place.base);
		if (r == 0)
			r = grow(&answers->functions, answers->n_functions, &answers->functions_allocated,
				 sizeof *answers->functions);
		if (r < 0) {
			function_done(&function);
			return r;
		}
		answers->functions[answers->n_functions++] = function;
		slot->id = (uint32_t)answers->n_functions;
	}
	return fleet_finish_rows(fleet, rows);
}

/* @head: up to the list of ids. */
static int fetch_all(struct fleet *fleet, const char *head, const char *tail, const uint64_t *ids, size_t n_ids,
		     struct fleet_answers *answers,
		     int (*take)(struct fleet *fleet, struct row_cursor *rows, struct fleet_answers *answers))
{
	int r = 0;

	for (size_t first = 0; first < n_ids && r == 0; first += MAX_IDS) {
		struct fleet_statement statement;
		struct row_cursor rows;

		r = fleet_begin(&statement);
		if (r < 0)
			return r;
		fputs(head, statement.out);
		print_ids(statement.out, ids + first, MIN(n_ids - first, (size_t)MAX_IDS));
		fputs(tail, statement.out);
		r = fleet_send(fleet, &statement, &rows);
		if (r == 0)
			r = take(fleet, &rows, answers);
	}
	return r;
}

static int check_fetched(struct fleet *fleet, const char *what, size_t n_wanted, size_t n_found)
{
	if (n_found == n_wanted || fleet->place.is_partial)
		return 0;
	return fleet_fail(
		fleet, -ENODATA,
		"%zu of %zu %s are missing at %s: they have expired, or have not arrived yet; --partial shows the others",
		n_wanted - n_found, n_wanted, what, fleet->place.base);
}

static int fetch_stacks(struct fleet *fleet, struct fleet_answers *answers)
{
	CLEANUP(freep) uint64_t *ids = NULL;
	size_t n = 0, allocated = 0, before = answers->n_stacks;
	int r = 0;

	for (size_t i = 0; i < answers->n_sums && r == 0; i++)
		r = want(&answers->stack_of, answers->sums[i].stack, &ids, &n, &allocated);
	if (r == 0)
		r = fetch_all(fleet, "SELECT stack, any(functions) FROM stacks WHERE stack IN ", " GROUP BY stack", ids,
			      n, answers, take_stacks);
	return r < 0 ? r : check_fetched(fleet, "stacks", n, answers->n_stacks - before);
}

static int fetch_functions(struct fleet *fleet, struct fleet_answers *answers)
{
	CLEANUP(freep) uint64_t *ids = NULL;
	size_t n = 0, allocated = 0, before = answers->n_functions;
	int r = 0;

	for (size_t i = 0; i < answers->n_functions_of_stacks && r == 0; i++)
		r = want(&answers->function_of, answers->functions_of_stacks[i], &ids, &n, &allocated);
	if (r == 0)
		r = fetch_all(
			fleet,
			"SELECT function, toString(any(kind)), toString(any(role)), any(name), any(file), any(module),"
			" any(build_id), any(line) FROM functions WHERE function IN ",
			" GROUP BY function", ids, n, answers, take_functions);
	return r < 0 ? r : check_fetched(fleet, "functions", n, answers->n_functions - before);
}

int fleet_fetch_stacks(struct fleet *fleet, struct fleet_answers *answers)
{
	int r = fetch_stacks(fleet, answers);

	return r < 0 ? r : fetch_functions(fleet, answers);
}

/* ---- Missing shards ---- */

/* The cluster of the table samples, which its engine names; "" there is none. */
static int read_cluster(struct fleet *fleet, char **ret)
{
	struct fleet_statement statement;
	struct row_cursor rows;
	int r = fleet_begin(&statement);

	if (r < 0)
		return r;
	fprintf(statement.out,
		"SELECT extract(engine_full, '^Distributed\\\\([^A-Za-z0-9_]*([A-Za-z0-9_]+)') FROM system.tables"
		" WHERE database = '%s' AND name = 'samples'",
		fleet->place.database);
	r = fleet_send(fleet, &statement, &rows);
	if (r == 0)
		r = row_cursor_text(&rows, ret);
	return r < 0 ? r : fleet_finish_rows(fleet, &rows);
}

/* Ask each shard for one row: which of them, in their order, is only known to newer servers. */
int fleet_note_missing(struct fleet *fleet)
{
	CLEANUP(freep) char *cluster = NULL;
	struct fleet_statement statement;
	struct row_cursor rows;
	uint64_t n_shards, n_found;
	char *hosts = NULL;
	int r = read_cluster(fleet, &cluster);

	if (r < 0 || !fleet_is_name(cluster))
		return r;
	r = fleet_begin(&statement);
	if (r < 0)
		return r;
	fprintf(statement.out,
		/* A scalar subquery is Nullable in newer servers. */
		fleet->server.dialect == FLEET_NEW
			? "SELECT assumeNotNull((SELECT uniqExact(shard_num) FROM system.clusters WHERE cluster = '%s')),"
			  " assumeNotNull((SELECT count() FROM cluster('%s', system.one))),"
			  " assumeNotNull((SELECT arrayStringConcat(arraySort(groupArray(concat(host_name, ':',"
			  " toString(port)))), ', ') FROM system.clusters WHERE cluster = '%s' AND shard_num NOT IN"
			  " (SELECT shardNum() FROM cluster('%s', system.one))))"
			: "SELECT assumeNotNull((SELECT uniqExact(shard_num) FROM system.clusters WHERE cluster = '%s')),"
			  " assumeNotNull((SELECT count() FROM cluster('%s', system.one))),"
			  " assumeNotNull((SELECT concat('one of ', arrayStringConcat(arraySort(groupArray(concat(host_name,"
			  " ':', toString(port)))), ', ')) FROM system.clusters WHERE cluster = '%s' AND '%s' != ''))",
		cluster, cluster, cluster, cluster);
	r = fleet_send(fleet, &statement, &rows);
	if (r < 0)
		return r;
	n_shards = row_cursor_number(&rows, sizeof n_shards);
	n_found = row_cursor_number(&rows, sizeof n_found);
	r = row_cursor_text(&rows, &hosts);
	if (r == 0)
		r = fleet_finish_rows(fleet, &rows);
	if (r == 0 && n_found < n_shards &&
	    asprintf(&fleet->missing, "%" PRIu64 " of %" PRIu64 " shards (%s)", n_shards - n_found, n_shards, hosts) <
		    0) {
		fleet->missing = NULL;
		r = -ENOMEM;
	}
	free(hosts);
	return r;
}
