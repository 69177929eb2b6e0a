/* write_json.c - a comparison for programs: every row, with interval and p; numbers are plain, in the unit that it names. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/compare/json.h"
#include "src/compare/say.h"

static void put_estimate(yajl_gen json, const char *key, const struct estimate *estimate)
{
	json_put_string(json, key);
	yajl_gen_map_open(json);
	json_put_number(json, "base", estimate->base);
	json_put_number(json, "head", estimate->head);
	json_put_number(json, "change", estimate->change);
	json_put_number(json, "low", estimate->low);
	json_put_number(json, "high", estimate->high);
	json_put_number(json, "p", estimate->p);
	json_put_number(json, "p_adjusted", estimate->adjusted);
	json_put_bool(json, "changed", estimate->is_known);
	yajl_gen_map_close(json);
}

static void put_run(yajl_gen json, const struct compare_run *run)
{
	yajl_gen_map_open(json);
	json_put_text(json, "name", run->name);
	json_put_text(json, "command", run->command);
	json_put_bool(json, "recorded", run->is_recorded);
	json_put_number(json, "wall_s", run->wall_s);
	if (run->is_recorded) {
		json_put_integer(json, "samples", run->samples);
		json_put_integer(json, "weight", run->weight);
		json_put_integer(json, "lost", run->lost);
	}
	yajl_gen_map_close(json);
}

static void put_side(yajl_gen json, const struct compare *compare, enum side side)
{
	json_put_string(json, side == SIDE_BASE ? "base" : "head");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < compare->n_runs; i++)
		if (compare->runs[i].side == side)
			put_run(json, &compare->runs[i]);
	yajl_gen_array_close(json);
}

static void put_differences(yajl_gen json, const struct compare *compare)
{
	json_put_string(json, "differences");
	yajl_gen_array_open(json);
	for (size_t field = 0; field < N_ABOUT; field++) {
		const char *base, *head;

		if (!compare_differs(compare, field, &base, &head))
			continue;
		yajl_gen_map_open(json);
		json_put_text(json, "what", about_fields[field].name);
		json_put_text(json, "one", base);
		json_put_text(json, "other", head);
		json_put_bool(json, "matters", about_fields[field].matters);
		yajl_gen_map_close(json);
	}
	yajl_gen_array_close(json);
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
	default:
		return "native";
	}
}

static int put_path(yajl_gen json, const struct compare *compare, uint32_t node)
{
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return -ENOMEM;
	say_path(compare, node, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	json_put_text(json, "stack", text);
	return 0;
}

static int put_rows(yajl_gen json, const struct compare *compare, const char *key, const struct compare_row *rows, size_t n)
{
	int r = 0;

	json_put_string(json, key);
	yajl_gen_array_open(json);
	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct compare_function *function = &compare->functions[rows[i].function];

		yajl_gen_map_open(json);
		if (rows[i].node != 0)
			r = put_path(json, compare, rows[i].node);
		json_put_text(json, "name", function->name);
		json_put_text(json, "kind", kind_name(function->kind));
		json_put_text(json, "place", function->place);
		json_put_text(json, "was_place", function->was_place);
		json_put_bool(json, "ambiguous", function->is_ambiguous);
		put_estimate(json, "self", &rows[i].self);
		put_estimate(json, "total", &rows[i].total);
		yajl_gen_map_close(json);
	}
	yajl_gen_array_close(json);
	return r;
}

static int put_all(yajl_gen json, const struct compare *compare)
{
	int r;

	yajl_gen_map_open(json);
	json_put_text(json, "quantity", compare_quantity(compare));
	json_put_text(json, "unit", compare_unit(compare));
	json_put_bool(json, "by_count", compare->by_count);
	put_side(json, compare, SIDE_BASE);
	put_side(json, compare, SIDE_HEAD);
	put_differences(json, compare);
	put_estimate(json, "whole", &compare->whole);
	if (compare->n_timed[SIDE_BASE] > 0 && compare->n_timed[SIDE_HEAD] > 0)
		put_estimate(json, "wall", &compare->wall);
	r = put_rows(json, compare, "functions", compare->rows, compare->n_rows);
	if (r >= 0 && compare->options.stacks)
		r = put_rows(json, compare, "stacks", compare->stacks, compare->n_stacks);
	yajl_gen_map_close(json);
	return r;
}

int compare_write_json(const struct compare *compare, FILE *out)
{
	CLEANUP(yajl_gen_freep) yajl_gen json = json_new();
	int r;

	if (!json)
		return -ENOMEM;
	r = put_all(json, compare);
	return r < 0 ? r : json_finish(json, out);
}
