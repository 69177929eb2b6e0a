/* SPDX-License-Identifier: MIT */
/*
 * export_pstats.c - functions and their callers, as Python's own profilers keep them: for pstats, SnakeViz, gprof2dot.
 *
 * A dict {(file, line, name): (cc, nc, tt, ct, callers)}, marshalled; callers is a dict of the same keys and
 * (cc, nc, tt, ct). Source: Lib/pstats.py, Lib/profile.py. tt is a function's self time in seconds, ct its
 * total time, and recursion counts once. cc and nc are calls there; here both are samples that contain the
 * function, or the call.
 *
 * Of marshal's types only those are written that every Python from 2.7 on reads: interned strings are str in all
 * releases, integers are 32 bits or digits of 15, floats binary (version 2). Source: Python/marshal.c.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/export/export.h"
#include "src/export/graph.h"

enum { DIGIT_BITS = 15 };

static void put_u32(FILE *out, uint32_t value)
{
	value = htole32(value);
	fwrite(&value, sizeof value, 1, out);
}

static void put_tuple(FILE *out, uint32_t n)
{
	fputc('(', out);
	put_u32(out, n);
}

static void put_integer(FILE *out, uint64_t value)
{
	uint16_t digits[5];
	uint32_t n = 0;

	if (value <= INT32_MAX) {
		fputc('i', out);
		put_u32(out, (uint32_t)value);
		return;
	}
	for (; value > 0; value >>= DIGIT_BITS)
		digits[n++] = htole16(value & ((1 << DIGIT_BITS) - 1));
	fputc('l', out);
	put_u32(out, n);
	fwrite(digits, sizeof *digits, n, out);
}

static void put_seconds(FILE *out, uint64_t weight)
{
	double seconds = (double)weight / 1e9;
	uint64_t bits;

	memcpy(&bits, &seconds, sizeof bits);
	bits = htole64(bits);
	fputc('g', out);
	fwrite(&bits, sizeof bits, 1, out);
}

static int put_string(FILE *out, const char *text)
{
	CLEANUP(freep) char *bytes = NULL;
	size_t n_bytes;
	FILE *memory;
	int32_t c;

	memory = open_memstream(&bytes, &n_bytes);
	if (!memory)
		return -ENOMEM;
	while ((c = text_next(&text)) != 0)
		text_put(memory, c);
	if (fclose(memory) != 0)
		return -ENOMEM;
	if (n_bytes > INT32_MAX)
		return -EOVERFLOW;
	fputc('t', out);
	put_u32(out, (uint32_t)n_bytes);
	fwrite(bytes, 1, n_bytes, out);
	return 0;
}

/* ('file', line, 'name'); pstats writes '~' for no file. */
static int put_key(FILE *out, const struct graph_function *function)
{
	int r;

	put_tuple(out, 3);
	r = put_string(out, function->file ?: function->module ?: "~");
	if (r < 0)
		return r;
	put_integer(out, (uint64_t)function->line);
	return put_string(out, function->name);
}

static void put_times(FILE *out, uint64_t samples, uint64_t self_weight, uint64_t weight)
{
	put_integer(out, samples);
	put_integer(out, samples);
	put_seconds(out, self_weight);
	put_seconds(out, weight);
}

/* Sort by callee, then by caller; only functions have callers. */
static int compare_calls(const void *a, const void *b)
{
	const struct graph_call *left = a, *right = b;

	if (left->callee != right->callee)
		return left->callee < right->callee ? -1 : 1;
	if (left->caller != right->caller)
		return left->caller < right->caller ? -1 : 1;
	return (left->line > right->line) - (left->line < right->line);
}

/* Add up all calls from one function to another; *at moves past them. */
static struct graph_call add_up(const struct call_graph *graph, size_t *at)
{
	struct graph_call sum = graph->calls[(*at)++];

	for (; *at < graph->n_calls; ++*at) {
		const struct graph_call *call = &graph->calls[*at];

		if (call->callee != sum.callee || call->caller != sum.caller)
			break;
		sum.samples += call->samples;
		sum.weight += call->weight;
		sum.self_samples += call->self_samples;
		sum.self_weight_ns += call->self_weight_ns;
	}
	return sum;
}

static int put_callers(FILE *out, const struct call_graph *graph, uint32_t function, size_t *at)
{
	fputc('{', out);
	while (*at < graph->n_calls && graph->calls[*at].callee == function) {
		struct graph_call call = add_up(graph, at);
		int r;

		if (call.caller == 0)
			continue;
		r = put_key(out, &graph->functions[call.caller]);
		if (r < 0)
			return r;
		put_tuple(out, 4);
		put_times(out, call.samples, call.self_weight_ns, call.weight);
	}
	fputc('0', out);
	return 0;
}

static int put_functions(FILE *out, const struct call_graph *graph)
{
	size_t call = 0;

	fputc('{', out);
	/* "all" is no function, so it has no callers. */
	for (uint32_t i = 1; i < graph->n_functions; i++) {
		const struct graph_function *function = &graph->functions[i];
		int r;

		r = put_key(out, function);
		if (r < 0)
			return r;
		put_tuple(out, 5);
		put_times(out, function->samples, function->self_weight_ns, function->weight);
		r = put_callers(out, graph, i, &call);
		if (r < 0)
			return r;
	}
	fputc('0', out);
	return 0;
}

static int write_pstats(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(call_graph_freep) struct call_graph *graph = NULL;
	int r;

	if (profile->unit || (profile->n_totals > 0 && !profile_has_weights(profile)))
		return -ENOTSUP;
	r = call_graph_new(profile, options, options->lines ? GRAPH_LINES : 0, &graph);
	if (r < 0)
		return r;
	if (graph->n_calls > 0)
		qsort(graph->calls, graph->n_calls, sizeof *graph->calls, compare_calls);
	r = put_functions(out, graph);
	return r < 0 ? r : text_finish(out);
}

const struct exporter export_pstats = {
	.name = "pstats",
	.endings = ".pstats .prof",
	.summary = "functions and their callers in cProfile's format, for Python's pstats, SnakeViz, gprof2dot",
	.write = write_pstats,
};
