/* SPDX-License-Identifier: MIT */
/* report.c - the groups with most time, in any grouping. */
#include "src/report/report.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/report/paths.h"
#include "src/report/print.h"
#include "src/report/sections.h"
#include "src/report/table.h"
#include "src/report/waits.h"

enum { LONGEST_WAITS = 10 }; /* below the functions */

const char *const report_by_names[REPORT_N_BY] = { "function", "line", "module", "thread", "process", "wait",
						   "step",     "span", "phase",  "rank",   "torch" };

/* Headings of the name column. */
static const char *const heads[REPORT_N_BY] = { "function", "function", "module", "thread", "process", "",
						"step",     "span",     "phase",  "rank",   "" };

static frame_order *const orders[REPORT_N_BY] = { order_by_function, order_by_line, order_by_module };

static bool is_of_labels(enum report_by by)
{
	return by == REPORT_BY_STEP || by == REPORT_BY_SPAN || by == REPORT_BY_PHASE || by == REPORT_BY_RANK;
}

static bool is_of_tasks(enum report_by by)
{
	return by == REPORT_BY_THREAD || by == REPORT_BY_PROCESS;
}

static bool has_no_self(enum report_by by)
{
	return is_of_tasks(by) || is_of_labels(by);
}

static const char *const none_names[REPORT_N_BY] = { [REPORT_BY_STEP] = "[no step]",
						     [REPORT_BY_SPAN] = "[no span]",
						     [REPORT_BY_PHASE] = "[no span]",
						     [REPORT_BY_RANK] = "[no rank]" };

static void name_modules(struct report_sums *sums)
{
	for (size_t i = 0; i < sums->n_items; i++) {
		struct report_sum *sum = &sums->items[i];

		sum->name = sum->frame ? profile_frame_module_label(sum->frame) : sum->name;
	}
}

static int add_up(const struct profile *profile, const struct report_options *options, struct report_sums *ret)
{
	int r;

	if (is_of_labels(options->by))
		r = report_sums_of_labels(profile, options->show_interpreter, none_names[options->by], ret);
	else if (is_of_tasks(options->by))
		r = report_sums_of_tasks(profile, options->by == REPORT_BY_PROCESS, ret);
	else
		r = report_sums_of_frames(profile, options->show_interpreter, orders[options->by], ret);
	if (r < 0)
		return r;
	if (options->by == REPORT_BY_MODULE)
		name_modules(ret);
	report_sums_sort(ret, options->by_total);
	return 0;
}

/* ---- Table ---- */

static int place_of(const struct report_sum *sum, enum report_by by, char **ret)
{
	int n = 0;

	*ret = NULL;
	if (by == REPORT_BY_MODULE) {
		/* Show what is not part of the name. */
		if (sum->frame && strcmp(sum->name, profile_frame_module(sum->frame)) != 0)
			n = asprintf(ret, "%s", profile_frame_module(sum->frame));
	} else if (by == REPORT_BY_THREAD) {
		n = asprintf(ret, "process %d%s%s%s, thread %d", sum->pid, sum->process ? " (" : "", sum->process ?: "",
			     sum->process ? ")" : "", sum->tid);
	} else if (by == REPORT_BY_PROCESS) {
		n = asprintf(ret, "process %d", sum->pid);
	} else if (is_of_labels(by)) {
		if (sum->frame)
			n = asprintf(ret, "%s %.0f %%", sum->frame->name,
				     sum->total > 0 ? 100.0 * (double)sum->most / (double)sum->total : 0);
	} else {
		return table_place(sum->frame, ret);
	}
	if (n < 0)
		*ret = NULL;
	return n < 0 ? -ENOMEM : 0;
}

static int make_rows(const struct report_sums *sums, struct table *table)
{
	enum report_by by = table->options->by;
	size_t n = MIN(table->options->max_rows ?: REPORT_ROWS, sums->n_items);
	int r = 0;

	table->rows = calloc(n + 1, sizeof *table->rows);
	if (!table->rows)
		return -ENOMEM;
	table->n_more = sums->n_items - n;
	while (table->n_rows < n && r >= 0) {
		const struct report_sum *sum = &sums->items[table->n_rows];
		struct table_row *row = &table->rows[table->n_rows++];

		*row = (struct table_row){
			.name = sum->name,
			.shares = { whole_share(&sums->whole, sum->self), whole_share(&sums->whole, sum->total) },
			.values = { sum->self, sum->total },
		};
		table_kind(sum->frame, by == REPORT_BY_MODULE, row);
		r = place_of(sum, by, &row->place);
	}
	return r;
}

static int print_table(const struct report_sums *sums, const struct wait_sums *waits,
		       const struct report_options *options, FILE *out)
{
	CLEANUP(table_done)
	struct table table = {
		.options = options,
		.whole = &sums->whole,
		.times = { { has_no_self(options->by) ? NULL : "self", true }, { "total", true } },
		.name_head = heads[options->by],
		.place_head = is_of_labels(options->by) ? "most self time in" : NULL,
		.has_kind = !has_no_self(options->by),
	};
	int r;

	if (whole_all(&sums->whole) == 0) {
		fputs("The recording has no samples.\n", out);
		return 0;
	}
	r = make_rows(sums, &table);
	if (r < 0)
		return r;
	table_put_whole(options, &sums->whole, out);
	table_put(&table, out);
	if (options->gpu && options->by == REPORT_BY_FUNCTION)
		print_gpu(options->gpu, options, out);
	if (options->collectives && options->by == REPORT_BY_FUNCTION)
		r = print_collectives(options->collectives, out);
	if (r < 0)
		return r;
	return waits->n_items > 0
		       ? print_waits(waits, options, "The longest waits (all: --by wait):", LONGEST_WAITS, out)
		       : 0;
}

/* ---- JSON ---- */

static void put_sum(struct json *json, const struct report_sums *sums, const struct report_sum *sum, enum report_by by)
{
	to_json_object(json);
	if (is_of_tasks(by)) {
		to_json_put_integer(json, "pid", sum->pid);
		if (by == REPORT_BY_THREAD)
			to_json_put_integer(json, "tid", sum->tid);
		to_json_put_string(json, "name", sum->name);
		if (by == REPORT_BY_THREAD)
			to_json_put_string(json, "process", sum->process);
	} else if (is_of_labels(by)) {
		to_json_put_string(json, report_by_names[by], sum->name == none_names[by] ? NULL : sum->name);
		to_json_put_string(json, "most_in", sum->frame ? sum->frame->name : NULL);
		to_json_put_integer(json, "most", (int64_t)sum->most);
	} else if (by == REPORT_BY_MODULE) {
		to_json_put_string(json, "module", sum->frame ? profile_frame_module(sum->frame) : sum->name);
	} else {
		print_json_frame(json, sum->frame, sum->name);
	}
	if (!has_no_self(by))
		print_json_time(json, &sums->whole, "self", sum->self);
	print_json_time(json, &sums->whole, "total", sum->total);
	to_json_put_integer(json, "samples", (int64_t)sum->samples);
	to_json_object_end(json);
}

static int print_json(const struct report_sums *sums, const struct wait_sums *waits,
		      const struct report_options *options, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	size_t n = MIN(options->max_rows ?: REPORT_ROWS, sums->n_items);
	int r;

	r = print_json_begin(&sums->whole, &json);
	if (r < 0)
		return r;
	to_json_put_string(&json, "by", report_by_names[options->by]);
	to_json_put_array(&json, "rows");
	for (size_t i = 0; i < n; i++)
		put_sum(&json, sums, &sums->items[i], options->by);
	to_json_array_end(&json);
	to_json_put_integer(&json, "left_out", (int64_t)(sums->n_items - n));
	if (waits->n_items > 0)
		print_json_waits(&json, waits, "waits", LONGEST_WAITS);
	if (options->gpu && options->by == REPORT_BY_FUNCTION)
		print_json_gpu(&json, options->gpu);
	if (options->collectives && options->by == REPORT_BY_FUNCTION)
		print_json_collectives(&json, options->collectives);
	to_json_object_end(&json);
	return to_json_finish(&json, out);
}

/* ---- Waits ---- */

static int print_waits_table(const struct wait_sums *waits, const struct report_options *options, FILE *out)
{
	if (waits->n_items == 0) {
		fputs("The recording has no waits: record with --mode wall or --mode offcpu.\n", out);
		return 0;
	}
	table_put_whole(options, &waits->whole, out);
	return print_waits(waits, options, NULL, options->max_rows ?: REPORT_ROWS, out);
}

static int print_waits_json(const struct wait_sums *waits, const struct report_options *options, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	size_t n = MIN(options->max_rows ?: REPORT_ROWS, waits->n_items);
	int r;

	r = print_json_begin(&waits->whole, &json);
	if (r < 0)
		return r;
	to_json_put_string(&json, "by", report_by_names[options->by]);
	print_json_waits(&json, waits, "rows", n);
	to_json_put_integer(&json, "left_out", (int64_t)(waits->n_items - n));
	to_json_object_end(&json);
	return to_json_finish(&json, out);
}

static int print_by_wait(const struct profile *profile, const struct report_options *options, FILE *out)
{
	CLEANUP(wait_sums_done) struct wait_sums waits = {};
	int r;

	r = wait_sums_make(profile, &waits);
	if (r >= 0)
		r = options->json ? print_waits_json(&waits, options, out) : print_waits_table(&waits, options, out);
	return r;
}

static int print_sums(const struct profile *profile, const struct report_options *options, FILE *out)
{
	CLEANUP(report_sums_done) struct report_sums sums = {};
	CLEANUP(wait_sums_done) struct wait_sums waits = {};
	int r;

	r = add_up(profile, options, &sums);
	if (r >= 0 && options->by == REPORT_BY_FUNCTION)
		r = wait_sums_make(profile, &waits);
	if (r >= 0)
		r = options->json ? print_json(&sums, &waits, options, out) : print_table(&sums, &waits, options, out);
	return r;
}

int report_print(const struct profile *profile, const struct report_options *options, FILE *out)
{
	int r;

	r = options->by == REPORT_BY_WAIT ? print_by_wait(profile, options, out) : print_sums(profile, options, out);
	return r < 0 ? r : text_finish(out);
}
