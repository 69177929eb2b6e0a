/* SPDX-License-Identifier: MIT */
/* write_json.c - a comparison for programs: every row, with interval and p; numbers are plain, in the unit that it names. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "src/compare/format.h"

static void put_estimate(struct json *json, const char *key, const struct estimate *estimate)
{
	to_json_put_object(json, key);
	to_json_put_number(json, "base", estimate->base);
	to_json_put_number(json, "head", estimate->head);
	to_json_put_number(json, "change", estimate->change);
	to_json_put_number(json, "low", estimate->low);
	to_json_put_number(json, "high", estimate->high);
	to_json_put_number(json, "p", estimate->p);
	to_json_put_number(json, "p_adjusted", estimate->adjusted);
	to_json_put_bool(json, "changed", estimate->is_known);
	to_json_object_end(json);
}

static void put_run(struct json *json, const struct compare_run *run)
{
	to_json_object(json);
	to_json_put_text(json, "name", run->name);
	to_json_put_text(json, "command", run->command);
	to_json_put_bool(json, "recorded", run->is_recorded);
	to_json_put_number(json, "wall_s", run->wall_s);
	if (run->is_recorded) {
		to_json_put_integer(json, "samples", run->samples);
		to_json_put_integer(json, "weight", run->weight);
		to_json_put_integer(json, "lost", run->lost);
		if (run->n_steps > 0)
			to_json_put_number(json, "steps", run->n_steps);
	}
	to_json_object_end(json);
}

static void put_side(struct json *json, const struct compare *compare, enum side side)
{
	to_json_put_array(json, side == SIDE_BASE ? "base" : "head");
	for (size_t i = 0; i < compare->n_runs; i++)
		if (compare->runs[i].side == side)
			put_run(json, &compare->runs[i]);
	to_json_array_end(json);
}

static void put_differences(struct json *json, const struct compare *compare)
{
	to_json_put_array(json, "differences");
	for (size_t field = 0; field < N_ABOUT; field++) {
		const char *base, *head;

		if (!compare_differs(compare, field, &base, &head))
			continue;
		to_json_object(json);
		to_json_put_text(json, "what", about_fields[field].name);
		to_json_put_text(json, "one", base);
		to_json_put_text(json, "other", head);
		to_json_put_bool(json, "matters", about_fields[field].matters);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}

static const char *kind_name(enum frame_kind kind)
{
	switch (kind) {
	case FRAME_PYTHON:
		return "python";
	case FRAME_KERNEL:
		return "kernel";
	case FRAME_TASK:
		return "task";
	case FRAME_WAIT:
		return "wait";
	case FRAME_UNSAMPLED:
		return "unsampled";
	default:
		return "native";
	}
}

static int put_path(struct json *json, const struct compare *compare, uint32_t node)
{
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return -ENOMEM;
	print_path(compare, node, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	to_json_put_text(json, "stack", text);
	return 0;
}

static int put_rows(struct json *json, const struct compare *compare, const char *key, const struct compare_row *rows,
		    size_t n)
{
	int r = 0;

	to_json_put_array(json, key);
	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct compare_function *function = &compare->functions[rows[i].function];

		to_json_object(json);
		if (rows[i].node != 0)
			r = put_path(json, compare, rows[i].node);
		to_json_put_text(json, "name", function->name);
		to_json_put_text(json, "kind", kind_name(function->kind));
		to_json_put_text(json, "place", function->place);
		to_json_put_text(json, "was_place", function->was_place);
		to_json_put_bool(json, "ambiguous", function->is_ambiguous);
		put_estimate(json, "self", &rows[i].self);
		put_estimate(json, "total", &rows[i].total);
		to_json_object_end(json);
	}
	to_json_array_end(json);
	return r;
}

static int put_all(struct json *json, const struct compare *compare)
{
	int r;

	to_json_object(json);
	to_json_put_text(json, "quantity", compare_quantity(compare));
	to_json_put_text(json, "unit", compare_unit(compare));
	to_json_put_bool(json, "by_count", compare->by_count);
	put_side(json, compare, SIDE_BASE);
	put_side(json, compare, SIDE_HEAD);
	put_differences(json, compare);
	put_estimate(json, "whole", &compare->whole);
	if (compare->n_timed[SIDE_BASE] > 0 && compare->n_timed[SIDE_HEAD] > 0)
		put_estimate(json, "wall", &compare->wall);
	r = put_rows(json, compare, "functions", compare->rows, compare->n_rows);
	if (r >= 0 && compare->options.stacks)
		r = put_rows(json, compare, "stacks", compare->stacks, compare->n_stacks);
	to_json_object_end(json);
	return r;
}

int compare_write_json(const struct compare *compare, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	int r = to_json_keep("    ", &json);

	if (r < 0)
		return r;
	r = put_all(&json, compare);
	return r < 0 ? r : to_json_finish(&json, out);
}
