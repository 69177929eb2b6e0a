/* SPDX-License-Identifier: MIT */
/*
 * write_history.c - the numbers themselves, in formats of others that keep a history or have a test of their own.
 *
 * Sources: github-action-benchmark's README, "customSmallerIsBetter"; hyperfine 1.18, doc of --export-json; "Go
 * Benchmark Data Format", golang.org/design/14313-benchmark-format.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/json.h"
#include "base/util.h"
#include "src/compare/format.h"
#include "src/compare/stats.h"

enum { MAX_FUNCTIONS = 50, MAX_RANGE = 48 };

/* ---- Lists of numbers ---- */

struct series {
	double *values;
	size_t n;
};

static void series_done(struct series *series)
{
	free(series->values);
}

static double mean_of(const struct series *series)
{
	double sum = 0;

	for (size_t i = 0; i < series->n; i++)
		sum += series->values[i];
	return series->n ? sum / (double)series->n : NAN;
}

/* NAN for fewer than two values. */
static double deviation_of(const struct series *series)
{
	double mean = mean_of(series), squares = 0;

	for (size_t i = 0; i < series->n; i++)
		squares += (series->values[i] - mean) * (series->values[i] - mean);
	return series->n > 1 ? sqrt(squares / (double)(series->n - 1)) : NAN;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static double median_of(const struct series *series)
{
	CLEANUP(freep) double *sorted = calloc(series->n + 1, sizeof *sorted);

	if (!sorted || series->n == 0)
		return NAN;
	memcpy(sorted, series->values, series->n * sizeof *sorted);
	qsort(sorted, series->n, sizeof *sorted, compare_doubles);
	return (sorted[(series->n - 1) / 2] + sorted[series->n / 2]) / 2;
}

/* Prefer wall times of timed runs over those of recorded runs. */
static bool tells_wall(const struct compare *compare, const struct compare_run *run, enum side side)
{
	return run->side == side && run->is_recorded == (compare->n_timed[side] == 0) && run->wall_s > 0;
}

static int wall_series(const struct compare *compare, enum side side, struct series *ret)
{
	ret->values = calloc(compare->n_runs + 1, sizeof *ret->values);
	if (!ret->values)
		return -ENOMEM;
	for (size_t i = 0; i < compare->n_runs; i++)
		if (tells_wall(compare, &compare->runs[i], side))
			ret->values[ret->n++] = compare->runs[i].wall_s;
	return 0;
}

/* Drop runs in which the function takes all time: their odds are infinite. */
static void make_odds(struct series *series)
{
	size_t n = 0;

	for (size_t i = 0; i < series->n; i++)
		if (isfinite(stats_odds(series->values[i])))
			series->values[n++] = stats_odds(series->values[i]);
	series->n = n;
}

/* Values of head in the comparison's unit. */
static int self_series(const struct compare *compare, uint32_t function, struct series *ret)
{
	size_t n_base = compare->n_side[SIDE_BASE], n_runs = n_base + compare->n_side[SIDE_HEAD];

	ret->values = calloc(n_runs, sizeof *ret->values);
	if (!ret->values)
		return -ENOMEM;
	ret->n = compare->n_side[SIDE_HEAD];
	memcpy(ret->values, &compare->self_values[function * n_runs + n_base], ret->n * sizeof *ret->values);
	if (compare->options.per == PER_REST)
		make_odds(ret);
	return 0;
}

/* ---- github-action-benchmark ---- */

static void put_entry(struct json *json, const char *name, const char *unit, const struct series *series)
{
	char range[MAX_RANGE];

	to_json_object(json);
	to_json_put_text(json, "name", name);
	to_json_put_text(json, "unit", unit);
	to_json_put_number(json, "value", mean_of(series));
	if (series->n > 1) {
		snprintf(range, sizeof range, "± %.3g", deviation_of(series));
		to_json_put_text(json, "range", range);
	}
	to_json_object_end(json);
}

static int put_functions(struct json *json, const struct compare *compare)
{
	int r = 0;

	for (size_t i = 0; i < MIN(compare->n_rows, (size_t)MAX_FUNCTIONS) && r >= 0; i++) {
		CLEANUP(series_done) struct series series = { 0 };
		CLEANUP(freep) char *title = compare_title(&compare->functions[compare->rows[i].function]);

		r = title ? self_series(compare, compare->rows[i].function, &series) : -ENOMEM;
		if (r >= 0 && series.n > 0)
			put_entry(json, title, compare_unit(compare), &series);
	}
	return r;
}

int compare_write_github(const struct compare *compare, FILE *out)
{
	CLEANUP(series_done) struct series wall = { 0 };
	CLEANUP(to_json_done) struct json json = { 0 };
	int r = to_json_keep("    ", &json);

	if (r < 0)
		return r;
	r = wall_series(compare, SIDE_HEAD, &wall);
	if (r < 0)
		return r;
	to_json_array(&json);
	if (wall.n > 0)
		put_entry(&json, "wall time", "s", &wall);
	r = put_functions(&json, compare);
	to_json_array_end(&json);
	return r < 0 ? r : to_json_finish(&json, out);
}

/* ---- hyperfine ---- */

static void put_list(struct json *json, const char *key, const struct series *series)
{
	to_json_put_array(json, key);
	for (size_t i = 0; i < series->n; i++)
		to_json_number(json, series->values[i]);
	to_json_array_end(json);
}

/* Details of the runs whose wall times are used. */
static void put_details(struct json *json, const struct compare *compare, enum side side)
{
	double user = 0, system = 0, n = 0;
	const char *command = NULL;

	for (size_t i = 0; i < compare->n_runs; i++) {
		const struct compare_run *run = &compare->runs[i];

		if (!tells_wall(compare, run, side))
			continue;
		command = run->command;
		user += run->user_s;
		system += run->sys_s;
		n++;
	}
	to_json_put_text(json, "command", command);
	to_json_put_number(json, "user", user / n);
	to_json_put_number(json, "system", system / n);
	to_json_put_array(json, "exit_codes");
	for (size_t i = 0; i < compare->n_runs; i++)
		if (tells_wall(compare, &compare->runs[i], side))
			to_json_integer(json, compare->runs[i].exit_status);
	to_json_array_end(json);
}

static int put_result(struct json *json, const struct compare *compare, enum side side)
{
	CLEANUP(series_done) struct series wall = { 0 };
	double least = INFINITY, most = -INFINITY;
	int r = wall_series(compare, side, &wall);

	if (r < 0 || wall.n == 0)
		return r;
	for (size_t i = 0; i < wall.n; i++) {
		least = fmin(least, wall.values[i]);
		most = fmax(most, wall.values[i]);
	}
	to_json_object(json);
	put_details(json, compare, side);
	to_json_put_number(json, "mean", mean_of(&wall));
	to_json_put_number(json, "stddev", deviation_of(&wall));
	to_json_put_number(json, "median", median_of(&wall));
	to_json_put_number(json, "min", least);
	to_json_put_number(json, "max", most);
	put_list(json, "times", &wall);
	to_json_put_object(json, "parameters");
	to_json_put_text(json, "side", side == SIDE_BASE ? "base" : "head");
	to_json_object_end(json);
	to_json_object_end(json);
	return 0;
}

int compare_write_hyperfine(const struct compare *compare, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	int r = to_json_keep("    ", &json);

	if (r < 0)
		return r;
	to_json_object(&json);
	to_json_put_array(&json, "results");
	r = put_result(&json, compare, SIDE_BASE);
	if (r >= 0)
		r = put_result(&json, compare, SIDE_HEAD);
	to_json_array_end(&json);
	to_json_object_end(&json);
	return r < 0 ? r : to_json_finish(&json, out);
}

/* ---- Go ---- */

/* Go's format ends a name at a space, and "/" and "=" have a meaning. */
static void put_go_name(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc(isspace((unsigned char)*text) || *text == '/' || *text == '=' ? '_' : *text, out);
}

static void put_go(const struct compare *compare, const char *group, const struct compare_function *function,
		   double value, bool is_time, FILE *out)
{
	fprintf(out, "Benchmark%s", group);
	if (function) {
		fputc('/', out);
		put_go_name(out, function->name);
		if (function->place[0]) {
			fputc('@', out);
			put_go_name(out, function->place);
		}
	}
	if (is_time) {
		fprintf(out, " 1 %.0f ns/op\n", value * 1e9);
	} else {
		fprintf(out, " 1 %.6g ", value);
		put_go_name(out, compare_unit(compare));
		fputs("/op\n", out);
	}
}

static int put_go_functions(const struct compare *compare, FILE *out)
{
	bool is_time = !compare->unit && compare_has_whole(compare);
	int r = 0;

	for (size_t i = 0; i < MIN(compare->n_rows, (size_t)MAX_FUNCTIONS) && r >= 0; i++) {
		const struct compare_function *function = &compare->functions[compare->rows[i].function];
		CLEANUP(series_done) struct series series = { 0 };

		r = self_series(compare, compare->rows[i].function, &series);
		for (size_t run = 0; run < series.n && r >= 0; run++)
			put_go(compare, "Self", function, series.values[run], is_time, out);
	}
	return r;
}

int compare_write_go(const struct compare *compare, FILE *out)
{
	CLEANUP(series_done) struct series wall = { 0 };
	struct utsname name;
	int r = wall_series(compare, SIDE_HEAD, &wall);

	if (r < 0)
		return r;
	uname(&name);
	fprintf(out, "goos: linux\ngoarch: %s\npkg: probing\n",
		strcmp(name.machine, "x86_64") == 0 ? "amd64" : "arm64");
	for (size_t i = 0; i < wall.n; i++)
		put_go(compare, "Wall", NULL, wall.values[i], true, out);
	r = put_go_functions(compare, out);
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}
