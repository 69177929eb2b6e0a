/* SPDX-License-Identifier: MIT */
/*
 * html_profile.c - the data of an HTML flame graph.
 *
 * One JSON object in columns, so that a box costs a few digits:
 *
 *   samples, unit, scale   scale: nanoseconds, or events of that unit, of one unit of a value; 0: values are samples
 *   inverted, left_out, limit, depth   number of omitted boxes: below limit %, or deeper than that
 *   kinds, strings         names; strings are referred to by number, from 1 on, 0 is none
 *   labels                 text, kind, file, first, last, module
 *   nodes                  label; up: its caller is so many nodes before
 *   threads                [{name, process, pid, tid, cells, functions}]: how many of the following cells and
 *                          functions; pid 0: all remaining threads
 *   cells                  self time of a thread in a node: node, as difference to the cell before; value; samples,
 *   null: as value functions              label, self, total of each thread; functions_left_out: how many below
 *   1/20000 of all aspects                [{name, values, sums}]: sums[i][n] is the part of cell n's value with
 *   values[i] sources                JSON of report_annotate(), or null
 *
 * Weights are mostly multiples of one period, so they are divided by their common divisor.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/export/html_page.h"
#include "src/export/names.h"

/* Numbers of strings, from 1 on; 0: none. */
struct label_strings {
	uint32_t text, file, module;
};

struct data {
	const struct profile *profile;
	const struct html_boxes *boxes;
	const struct html_sums *sums;
	const struct html_aspects *aspects;
	FILE *out;
	uint64_t scale;     /* 1 if values are samples */
	uint32_t *labels;   /* labels of the tree that are used */
	uint32_t *label_of; /* label of the tree -> number in labels; UINT32_MAX: unused */
	uint64_t *totals;   /* totals of functions over all threads, by label of the tree */
	size_t n_labels;
	struct names strings;
	struct label_strings *of_labels;
};

static void data_done(struct data *data)
{
	free(data->labels);
	free(data->label_of);
	free(data->totals);
	free(data->of_labels);
	names_done(&data->strings);
}

/* ---- References ---- */

static const struct label *label_at(const struct data *data, size_t i)
{
	return &data->boxes->tree->labels.items[data->labels[i]];
}

static void number_label(struct data *data, uint32_t label)
{
	if (data->label_of[label] != UINT32_MAX)
		return;
	data->label_of[label] = (uint32_t)data->n_labels;
	data->labels[data->n_labels++] = label;
}

/* Functions below the size of a visible box are not listed. */
static bool is_listed(const struct data *data, const struct html_function *function)
{
	return data->totals[function->label] > 0 && data->totals[function->label] >= data->boxes->drawn.all / 20000;
}

static int number_labels(struct data *data)
{
	const struct call_tree *tree = data->boxes->tree;

	data->labels = calloc(tree->labels.n_items, sizeof *data->labels);
	data->label_of = malloc(tree->labels.n_items * sizeof *data->label_of);
	data->totals = calloc(tree->labels.n_items, sizeof *data->totals);
	if (!data->labels || !data->label_of || !data->totals)
		return -ENOMEM;
	memset(data->label_of, 0xff, tree->labels.n_items * sizeof *data->label_of);
	for (size_t i = 0; i < data->boxes->n; i++)
		number_label(data, tree->nodes[data->boxes->node_of[i]].label);
	for (size_t i = 0; i < data->sums->n_functions; i++)
		data->totals[data->sums->functions[i].label] += data->sums->functions[i].total;
	for (size_t i = 0; i < data->sums->n_functions; i++)
		if (is_listed(data, &data->sums->functions[i]))
			number_label(data, data->sums->functions[i].label);
	return 0;
}

/* 0: there is no text. */
static int number_string(struct data *data, const char *text, uint32_t *ret)
{
	int r;

	*ret = 0;
	if (!text || !*text)
		return 0;
	r = names_add(&data->strings, text, ret);
	++*ret;
	return r;
}

static int number_strings(struct data *data)
{
	int r = 0;

	data->of_labels = calloc(data->n_labels + 1, sizeof *data->of_labels);
	if (!data->of_labels)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < data->n_labels; i++) {
		const struct label *label = label_at(data, i);

		r = number_string(data, label->text, &data->of_labels[i].text);
		if (r >= 0)
			r = number_string(data, label->file, &data->of_labels[i].file);
		if (r >= 0)
			r = number_string(data, label->module, &data->of_labels[i].module);
	}
	return r;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static uint64_t find_scale(const struct profile *profile, const struct html_boxes *boxes)
{
	uint64_t scale = 0;

	if (!boxes->drawn.by_weight)
		return 1;
	for (size_t i = 0; i < profile->n_totals; i++)
		scale = common_divisor(profile->totals[i].weight, scale);
	for (size_t i = 0; i < profile->n_samples; i++)
		scale = common_divisor(profile->samples[i].weight, scale);
	return scale;
}

/* ---- JSON ---- */

/*
 * Escape '<', so that no name ends the surrounding element. The backslash of an escaped character is escaped as JSON,
 * too.
 */
void html_put_string(FILE *out, const char *text)
{
	char spelled[TEXT_SPELL_BYTES];
	int32_t c;

	fputc('"', out);
	while ((c = text_next(&text)) != 0) {
		if (text_spell(c, spelled) || c == '"' || c == '\\')
			fputc('\\', out);
		if (c == '<')
			fputs("\\u003c", out);
		else
			fputs(spelled, out);
	}
	fputc('"', out);
}

/* In JSON, these characters only occur inside strings. */
static void html_put_json(FILE *out, const char *json)
{
	char spelled[TEXT_SPELL_BYTES];
	int32_t c;

	while ((c = text_decode(&json)) != 0) {
		if (c == '<')
			fputs("\\u003c", out);
		else if (c >= 0x80 && text_spell(c, spelled))
			fprintf(out, "\\%s", spelled);
		else
			text_put(out, c);
	}
}

static void put_strings(const struct data *data)
{
	for (size_t i = 0; i < data->strings.n; i++) {
		fputs(i > 0 ? ",\n" : "", data->out);
		html_put_string(data->out, data->strings.texts[i]);
	}
}

/* Write a column: "name":[...] */
static void put_column(const struct data *data, const char *name, size_t n,
		       uint64_t (*at)(const struct data *data, size_t i))
{
	fprintf(data->out, "\"%s\":[", name);
	for (size_t i = 0; i < n; i++)
		fprintf(data->out, i > 0 ? ",%ju" : "%ju", (uintmax_t)at(data, i));
	fputc(']', data->out);
}

static uint64_t label_text(const struct data *data, size_t i)
{
	return data->of_labels[i].text;
}

static uint64_t label_kind(const struct data *data, size_t i)
{
	return label_at(data, i)->kind;
}

static uint64_t label_file(const struct data *data, size_t i)
{
	return data->of_labels[i].file;
}

static uint64_t label_first(const struct data *data, size_t i)
{
	return (uint64_t)label_at(data, i)->first_line;
}

static uint64_t label_last(const struct data *data, size_t i)
{
	return (uint64_t)label_at(data, i)->last_line;
}

static uint64_t label_module(const struct data *data, size_t i)
{
	return data->of_labels[i].module;
}

static void put_labels(const struct data *data)
{
	static const struct {
		const char *name;
		uint64_t (*at)(const struct data *data, size_t i);
	} columns[] = {
		{ "text", label_text },   { "kind", label_kind }, { "file", label_file },
		{ "first", label_first }, { "last", label_last }, { "module", label_module },
	};

	for (size_t i = 0; i < N_ELEMENTS(columns); i++) {
		fputs(i > 0 ? ",\n" : "", data->out);
		put_column(data, columns[i].name, data->n_labels, columns[i].at);
	}
}

static const struct node *node_at(const struct data *data, size_t i)
{
	return &data->boxes->tree->nodes[data->boxes->node_of[i]];
}

static uint64_t node_label(const struct data *data, size_t i)
{
	return data->label_of[node_at(data, i)->label];
}

static uint64_t node_up(const struct data *data, size_t i)
{
	return i - html_box_caller(data->boxes, (uint32_t)i);
}

static void put_nodes(const struct data *data)
{
	put_column(data, "label", data->boxes->n, node_label);
	fputs(",\n", data->out);
	put_column(data, "up", data->boxes->n, node_up);
}

/* ---- Threads ---- */

static void put_thread(const struct data *data, const struct html_thread *thread, size_t n_functions)
{
	FILE *out = data->out;

	fputs("{\"name\":", out);
	html_put_string(out, thread->thread ? thread->thread->name : "");
	fputs(",\"process\":", out);
	html_put_string(out, thread->thread ? thread->thread->process : "");
	fprintf(out, ",\"pid\":%d,\"tid\":%d,\"cells\":%zu,\"functions\":%zu}",
		thread->thread ? thread->thread->pid : 0, thread->thread ? thread->thread->tid : 0, thread->n_cells,
		n_functions);
}

static void put_threads(const struct data *data)
{
	const struct html_function *function = data->sums->functions;

	for (size_t i = 0; i < data->sums->n_threads; i++) {
		const struct html_thread *thread = &data->sums->threads[i];
		size_t n_listed = 0;

		for (size_t at = 0; at < thread->n_functions; at++)
			n_listed += is_listed(data, function++);
		fputs(i > 0 ? ",\n" : "", data->out);
		put_thread(data, thread, n_listed);
	}
}

static uint64_t cell_value(const struct data *data, size_t i)
{
	return data->sums->cells[i].value / data->scale;
}

static uint64_t cell_samples(const struct data *data, size_t i)
{
	return data->sums->cells[i].samples;
}

static void put_cells(const struct data *data)
{
	bool same = true;

	fputs("\"node\":[", data->out);
	for (size_t i = 0; i < data->sums->n_cells; i++) {
		same &= cell_value(data, i) == cell_samples(data, i);
		fprintf(data->out, i > 0 ? ",%jd" : "%jd",
			(intmax_t)data->sums->cells[i].box - (i > 0 ? data->sums->cells[i - 1].box : 0));
	}
	fputs("],\n", data->out);
	put_column(data, "value", data->sums->n_cells, cell_value);
	fputs(",\n", data->out);
	if (same)
		fputs("\"samples\":null", data->out);
	else
		put_column(data, "samples", data->sums->n_cells, cell_samples);
}

static uint64_t function_label(const struct data *data, const struct html_function *function)
{
	return data->label_of[function->label];
}

static uint64_t function_self(const struct data *data, const struct html_function *function)
{
	return function->self / data->scale;
}

static uint64_t function_total(const struct data *data, const struct html_function *function)
{
	return function->total / data->scale;
}

static void put_functions(const struct data *data)
{
	static const struct {
		const char *name;
		uint64_t (*at)(const struct data *data, const struct html_function *function);
	} columns[] = { { "label", function_label }, { "self", function_self }, { "total", function_total } };

	for (size_t i = 0; i < N_ELEMENTS(columns); i++) {
		const char *separator = "";

		fprintf(data->out, "%s\"%s\":[", i > 0 ? ",\n" : "", columns[i].name);
		for (size_t at = 0; at < data->sums->n_functions; at++) {
			if (!is_listed(data, &data->sums->functions[at]))
				continue;
			fprintf(data->out, "%s%ju", separator,
				(uintmax_t)columns[i].at(data, &data->sums->functions[at]));
			separator = ",";
		}
		fputc(']', data->out);
	}
}

static size_t count_unlisted(const struct data *data)
{
	size_t n = 0;

	for (size_t i = 0; i < data->boxes->tree->labels.n_items; i++) {
		struct html_function function = { .label = (uint32_t)i };

		n += data->totals[i] > 0 && !is_listed(data, &function);
	}
	return n;
}

/* ---- Aspects and the document ---- */

static void put_aspect(const struct data *data, const struct html_aspect *aspect)
{
	FILE *out = data->out;

	fprintf(out, "{\"name\":\"%s\",\"values\":[", aspect->name);
	for (size_t i = 0; i < aspect->n_values; i++)
		fprintf(out, "%s\"%s\"", i > 0 ? "," : "", aspect->values[i]);
	fputs("],\"sums\":[", out);
	for (size_t i = 0; i < aspect->n_values; i++) {
		fputs(i > 0 ? ",\n[" : "[", out);
		for (size_t cell = 0; cell < data->sums->n_cells; cell++)
			fprintf(out, cell > 0 ? ",%ju" : "%ju",
				(uintmax_t)(aspect->sums[cell * aspect->n_values + i] / data->scale));
		fputc(']', out);
	}
	fputs("]}", out);
}

static void put_aspects(const struct data *data)
{
	const char *separator = "";

	for (size_t i = 0; i < HTML_N_ASPECTS; i++) {
		if (!data->aspects->items[i].sums)
			continue;
		fputs(separator, data->out);
		put_aspect(data, &data->aspects->items[i]);
		separator = ",\n";
	}
}

static void put_kinds(FILE *out)
{
	for (int kind = 0; kind < LABEL_N_KINDS; kind++)
		fprintf(out, "%s\"%s\"", kind > 0 ? "," : "", label_kind_name((enum label_kind)kind) ?: "");
}

static void put_head(const struct data *data, bool inverted)
{
	const struct drawn *drawn = &data->boxes->drawn;
	FILE *out = data->out;

	fprintf(out, "\"samples\":%ju,\"scale\":%ju,\"unit\":", (uintmax_t)drawn->tree->nodes[0].samples,
		(uintmax_t)(drawn->by_weight ? data->scale : 0));
	if (data->profile->unit)
		html_put_string(out, data->profile->unit);
	else
		fputs("null", out);
	fprintf(out, ",\"inverted\":%s,\"left_out\":%zu,\"depth\":%u,\"limit\":", inverted ? "true" : "false",
		drawn->n_left_out, drawn->n_too_deep > 0 ? drawn->most_depth : 0);
	text_put_fixed(out, 100000 / drawn->smallest_share, 3);
}

static void put_all(const struct data *data, const struct export_options *options)
{
	FILE *out = data->out;

	fputs("{", out);
	put_head(data, options->inverted);
	fputs(",\n\"kinds\":[", out);
	put_kinds(out);
	fputs("],\n\"strings\":[", out);
	put_strings(data);
	fputs("],\n\"labels\":{", out);
	put_labels(data);
	fputs("},\n\"nodes\":{", out);
	put_nodes(data);
	fputs("},\n\"threads\":[", out);
	put_threads(data);
	fputs("],\n\"cells\":{", out);
	put_cells(data);
	fputs("},\n\"functions\":{", out);
	put_functions(data);
	fprintf(out, "},\n\"functions_left_out\":%zu,\n\"aspects\":[", count_unlisted(data));
	put_aspects(data);
	fputs("],\n\"sources\":", out);
	html_put_json(out, options->sources ?: "null");
	fputs("}\n", out);
}

int html_put_profile(const struct profile *profile, const struct html_boxes *boxes, const struct html_sums *sums,
		     const struct html_aspects *aspects, const struct export_options *options, FILE *out)
{
	CLEANUP(data_done)
	struct data data = {
		.profile = profile,
		.boxes = boxes,
		.sums = sums,
		.aspects = aspects,
		.out = out,
		.scale = find_scale(profile, boxes),
	};
	int r;

	r = number_labels(&data);
	if (r >= 0)
		r = number_strings(&data);
	if (r < 0)
		return r;
	put_all(&data, options);
	return 0;
}
