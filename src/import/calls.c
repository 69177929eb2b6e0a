/* SPDX-License-Identifier: MIT */
/*
 * calls.c - see calls.h.
 *
 * Calls are followed from each function without a known caller. A function's share in a context is the
 * part of its total time spent there; its callees get that part of the edge's time. A function that is
 * on the path already is not followed again; such calls, and those too small to follow, are corrected at the end:
 * the sum of each function is scaled to its real value.
 *
 * Invariants:
 * 1. The shares of a function in all its contexts are at most 1, so no function gets more than it has.
 * 2. At most MAX_CONTEXTS contexts are made, none deeper than MAX_DEPTH.
 */
#include "src/import/calls.h"

#include <errno.h>
#include <math.h>

enum { MAX_CONTEXTS = 1 << 19, MAX_DEPTH = 400 };
#define MIN_SHARE 1e-6 /* of all time; do not follow less */

struct context {
	int64_t stack;
	uint32_t function;
	double calls, self_weight;
};

struct spread {
	struct calls *calls;
	struct sink *sink;
	struct context *contexts;
	size_t n_contexts, contexts_allocated;
	double least_ns;
};

static int by_caller(const void *left, const void *right)
{
	const struct call_edge *one = left, *other = right;

	if (one->caller != other->caller)
		return one->caller < other->caller ? -1 : 1;
	return one->callee < other->callee ? -1 : one->callee > other->callee;
}

static void find_edges(struct calls *calls)
{
	if (calls->n_edges > 0)
		qsort(calls->edges, calls->n_edges, sizeof *calls->edges, by_caller);
	for (size_t i = 0; i < calls->n_edges; i++) {
		struct call_function *caller = &calls->functions[calls->edges[i].caller];

		if (caller->n_edges++ == 0)
			caller->first_edge = i;
	}
}

/* Compute the part of each function that no known caller explains. */
static double find_roots(struct calls *calls)
{
	double all_ns = 0;

	for (size_t i = 0; i < calls->n_functions; i++) {
		struct call_function *function = &calls->functions[i];

		function->root_calls = function->calls;
		function->root_self_ns = function->self_weight;
		all_ns += function->self_weight;
	}
	for (size_t i = 0; i < calls->n_edges; i++) {
		const struct call_edge *edge = &calls->edges[i];
		struct call_function *callee = &calls->functions[edge->callee];

		callee->root_calls -= edge->calls;
		callee->root_self_ns -= edge->self_weight;
		callee->in_ns += edge->caller == edge->callee ? 0 : edge->total_weight;
	}
	for (size_t i = 0; i < calls->n_functions; i++) {
		struct call_function *function = &calls->functions[i];

		function->in_ns = MAX(function->in_ns, function->total_weight);
		function->root_share = function->in_ns > 0 ? 1 : 0;
	}
	for (size_t i = 0; i < calls->n_edges; i++) {
		const struct call_edge *edge = &calls->edges[i];
		struct call_function *callee = &calls->functions[edge->callee];

		if (callee->in_ns > 0 && edge->caller != edge->callee)
			callee->root_share -= edge->total_weight / callee->in_ns;
	}
	return all_ns;
}

static int add_context(struct spread *spread, uint32_t function, int64_t stack, double calls, double self_weight)
{
	int r = grow(&spread->contexts, spread->n_contexts, &spread->contexts_allocated, sizeof *spread->contexts);

	if (r < 0)
		return r;
	spread->contexts[spread->n_contexts++] = (struct context){ stack, function, calls, self_weight };
	spread->calls->functions[function].met_calls += calls;
	spread->calls->functions[function].met_self_ns += self_weight;
	return 0;
}

static int follow(struct spread *spread, uint32_t index, int64_t parent, unsigned depth, double share, double calls,
		  double self_weight)
{
	struct call_function *function = &spread->calls->functions[index];
	int64_t stack;
	int r;

	r = sink_stack(spread->sink, parent, function->frame, &stack);
	if (r >= 0)
		r = add_context(spread, index, stack, calls, self_weight);
	if (r < 0 || function->is_on_path || depth == MAX_DEPTH)
		return r;
	function->is_on_path = true;
	for (size_t i = 0; i < function->n_edges && r >= 0; i++) {
		const struct call_edge *edge = &spread->calls->edges[function->first_edge + i];
		const struct call_function *callee = &spread->calls->functions[edge->callee];

		if (edge->total_weight * share < spread->least_ns || spread->n_contexts >= MAX_CONTEXTS)
			continue;
		r = follow(spread, edge->callee, stack, depth + 1,
			   callee->in_ns > 0 ? share * edge->total_weight / callee->in_ns : 0, edge->calls * share,
			   edge->self_weight * share);
	}
	function->is_on_path = false;
	return r;
}

static int follow_roots(struct spread *spread)
{
	int r = 0;

	for (size_t i = 0; i < spread->calls->n_functions && r >= 0; i++) {
		const struct call_function *function = &spread->calls->functions[i];
		bool is_root = function->root_share > MIN_SHARE || function->root_calls >= 1;

		if (is_root && spread->n_contexts < MAX_CONTEXTS)
			r = follow(spread, (uint32_t)i, 0, 0, MAX(function->root_share, 0),
				   MAX(function->root_calls, 0), MAX(function->root_self_ns, 0));
	}
	return r;
}

/* Functions that no path reached become stacks of their own. */
static int add_unmet(struct spread *spread)
{
	int r = 0;

	for (size_t i = 0; i < spread->calls->n_functions && r >= 0; i++) {
		const struct call_function *function = &spread->calls->functions[i];
		double self_weight = function->met_self_ns > 0 ? 0 : function->self_weight;
		double calls = function->met_calls > 0 ? 0 : function->calls;
		int64_t stack;

		if (self_weight == 0 && calls == 0)
			continue;
		r = sink_stack(spread->sink, 0, function->frame, &stack);
		if (r >= 0)
			r = add_context(spread, (uint32_t)i, stack, calls, self_weight);
	}
	return r;
}

/* Round a part so that the sum of all parts so far is rounded to nearest. */
static uint64_t next_part(double *done, double part)
{
	double before = round(*done);

	*done += part;
	return round(*done) > before ? (uint64_t)(round(*done) - before) : 0;
}

static int put_totals(struct spread *spread, pid_t pid)
{
	struct call_function *functions = spread->calls->functions;
	CLEANUP(freep) double *done = calloc(2 * spread->calls->n_functions + 1, sizeof *done);
	int r = done ? 0 : -ENOMEM;

	for (size_t i = 0; i < spread->n_contexts && r >= 0; i++) {
		const struct context *context = &spread->contexts[i];
		const struct call_function *function = &functions[context->function];
		double calls = function->met_calls > 0 ? context->calls * function->calls / function->met_calls : 0;
		double self_weight = function->met_self_ns > 0
					     ? context->self_weight * function->self_weight / function->met_self_ns
					     : 0;
		uint64_t n_calls = next_part(&done[2 * context->function], calls);
		uint64_t n_ns = next_part(&done[2 * context->function + 1], self_weight);

		if (n_calls > 0 || n_ns > 0)
			r = sink_total(spread->sink, pid, pid, context->stack, n_calls, n_ns);
	}
	return r;
}

int calls_spread(struct calls *calls, struct sink *sink, pid_t pid)
{
	struct spread spread = { .calls = calls, .sink = sink };
	int r;

	find_edges(calls);
	spread.least_ns = find_roots(calls) * MIN_SHARE;
	r = follow_roots(&spread);
	if (r >= 0)
		r = add_unmet(&spread);
	if (r >= 0)
		r = put_totals(&spread, pid);
	free(spread.contexts);
	return r;
}

void calls_done(struct calls *calls)
{
	free(calls->functions);
	free(calls->edges);
	*calls = (struct calls){ 0 };
}
