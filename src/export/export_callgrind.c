/* SPDX-License-Identifier: MIT */
/*
 * export_callgrind.c - costs of functions and lines, and calls, for KCachegrind and callgrind_annotate.
 *
 * Source: "Callgrind Format Specification" of Valgrind's manual. A recursive call is a function of
 * its own, with the suffix '2 as callgrind has it, so that the inclusive cost of the first one has each
 * sample once. "calls" are samples, because a sampler does not know the number of calls. A reader takes a name
 * without text after its number for a known one, so no name may be blank.
 */
#include <errno.h>

#include "base/text.h"
#include "base/util.h"
#include "src/export/export.h"
#include "src/export/graph.h"
#include "src/export/names.h"

/* A name is written once; later references use its number. */
struct numbers {
	uint32_t *of_function;
	bool *is_written; /* by number */
};

struct writer {
	const struct call_graph *graph;
	FILE *out;
	bool by_weight; /* the profile has weights */
	struct numbers objects, files, functions;
};

static void numbers_done(struct numbers *numbers)
{
	free(numbers->of_function);
	free(numbers->is_written);
}

static void writer_done(struct writer *writer)
{
	numbers_done(&writer->objects);
	numbers_done(&writer->files);
	numbers_done(&writer->functions);
}

static const char *object_of(const struct graph_function *function)
{
	if (function->module)
		return function->module;
	if (function->kind == LABEL_PYTHON)
		return "[python]";
	return function->kind == LABEL_KERNEL ? "[kernel]" : "???";
}

static const char *file_of(const struct graph_function *function)
{
	return function->file ?: "???";
}

/* ---- Numbers for names ---- */

static int number_texts(const struct call_graph *graph, const char *(*text_of)(const struct graph_function *function),
			struct numbers *ret)
{
	CLEANUP(names_done) struct names names = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < graph->n_functions; i++)
		r = names_add(&names, text_of(&graph->functions[i]), &ret->of_function[i]);
	return r;
}

/* @text_of NULL: each function has its own name. */
static int number_names(const struct call_graph *graph, const char *(*text_of)(const struct graph_function *function),
			struct numbers *ret)
{
	ret->of_function = calloc(graph->n_functions, sizeof *ret->of_function);
	ret->is_written = calloc(graph->n_functions, sizeof *ret->is_written);
	if (!ret->of_function || !ret->is_written)
		return -ENOMEM;
	if (text_of)
		return number_texts(graph, text_of, ret);
	for (size_t i = 0; i < graph->n_functions; i++)
		ret->of_function[i] = (uint32_t)i;
	return 0;
}

/* ---- Lines ---- */

static void put_text(FILE *out, const char *text)
{
	int32_t c = text_next(&text);

	while (c == ' ')
		c = text_next(&text);
	if (c == 0)
		fputs("[unnamed]", out);
	for (; c != 0; c = text_next(&text))
		text_put(out, c);
}

/* "fn=(7) name (place)", or "fn=(7)" if already written. @place NULL: none. */
static void put_name(const struct writer *writer, const char *key, struct numbers *numbers, uint32_t function,
		     const char *text, const char *place, const char *suffix)
{
	uint32_t number = numbers->of_function[function];

	fprintf(writer->out, "%s=(%u)", key, number + 1);
	if (!numbers->is_written[number]) {
		fputc(' ', writer->out);
		put_text(writer->out, text);
		if (place) {
			fputs(" (", writer->out);
			put_text(writer->out, place);
			fputc(')', writer->out);
		}
		fputs(suffix, writer->out);
		numbers->is_written[number] = true;
	}
	fputc('\n', writer->out);
}

static void put_function(struct writer *writer, uint32_t number, bool is_callee)
{
	const struct graph_function *function = &writer->graph->functions[number];

	put_name(writer, is_callee ? "cob" : "ob", &writer->objects, number, object_of(function), NULL, "");
	put_name(writer, is_callee ? "cfi" : "fl", &writer->files, number, file_of(function), NULL, "");
	put_name(writer, is_callee ? "cfn" : "fn", &writer->functions, number, function->name, function->place,
		 function->nested ? "'2" : "");
}

static void put_cost(const struct writer *writer, int line, uint64_t samples, uint64_t weight)
{
	fprintf(writer->out, "%d ", line);
	if (writer->by_weight)
		fprintf(writer->out, "%ju ", (uintmax_t)weight);
	fprintf(writer->out, "%ju\n", (uintmax_t)samples);
}

static void put_call(struct writer *writer, const struct graph_call *call)
{
	put_function(writer, call->callee, true);
	fprintf(writer->out, "calls=%ju %d\n", (uintmax_t)MAX(call->samples, (uint64_t)1),
		writer->graph->functions[call->callee].line);
	put_cost(writer, call->line, call->samples, call->weight);
}

/* Costs and calls are both sorted by function. */
static void put_body(struct writer *writer)
{
	const struct call_graph *graph = writer->graph;
	size_t cost = 0, call = 0;

	for (uint32_t function = 0; function < graph->n_functions; function++) {
		fputc('\n', writer->out);
		put_function(writer, function, false);
		for (; cost < graph->n_costs && graph->costs[cost].function == function; cost++) {
			const struct graph_cost *it = &graph->costs[cost];

			if (it->samples > 0 || it->weight > 0)
				put_cost(writer, it->line, it->samples, it->weight);
		}
		for (; call < graph->n_calls && graph->calls[call].caller == function; call++)
			if (graph->calls[call].samples > 0 || graph->calls[call].weight > 0)
				put_call(writer, &graph->calls[call]);
	}
}

/* An event's name must be one word. */
static void put_event(FILE *out, const char *unit)
{
	for (; *unit; unit++)
		fputc((*unit >= 'a' && *unit <= 'z') || (*unit >= 'A' && *unit <= 'Z') || (*unit >= '0' && *unit <= '9')
			      ? *unit
			      : '_',
		      out);
}

static void put_head(const struct writer *writer, const char *unit, const char *title)
{
	const struct graph_function *all = &writer->graph->functions[0];
	FILE *out = writer->out;

	fputs("# callgrind format\nversion: 1\ncreator: probing\n", out);
	if (title && *title) {
		fputs("cmd: ", out);
		put_text(out, title);
		fputc('\n', out);
	}
	fputs("positions: line\n", out);
	if (writer->by_weight && !unit)
		fputs("event: ns : Time, ns\n", out);
	fputs("event: samples : Samples\nevents: ", out);
	if (writer->by_weight)
		put_event(out, unit ?: "ns");
	fprintf(out, "%ssamples\ntotals: ", writer->by_weight ? " " : "");
	if (writer->by_weight)
		fprintf(out, "%ju ", (uintmax_t)all->weight);
	fprintf(out, "%ju\n", (uintmax_t)all->samples);
}

static int write_callgrind(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(call_graph_freep) struct call_graph *graph = NULL;
	CLEANUP(writer_done) struct writer writer = { .out = out };
	struct export_options by_line = *options;
	int r;

	by_line.lines = true;
	r = call_graph_new(profile, &by_line, GRAPH_MODULES | GRAPH_NESTED, &graph);
	if (r < 0)
		return r;
	writer.graph = graph;
	writer.by_weight = graph->functions[0].weight > 0;
	r = number_names(graph, object_of, &writer.objects);
	if (r >= 0)
		r = number_names(graph, file_of, &writer.files);
	if (r >= 0)
		r = number_names(graph, NULL, &writer.functions);
	if (r < 0)
		return r;
	put_head(&writer, profile->unit, options->title);
	put_body(&writer);
	return text_finish(out);
}

const struct exporter export_callgrind = {
	.name = "callgrind",
	.endings = ".callgrind",
	.summary = "functions, lines and calls, for KCachegrind and callgrind_annotate",
	.write = write_callgrind,
};
