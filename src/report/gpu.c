/* SPDX-License-Identifier: MIT */
/* gpu.c - the section of a report about GPUs; see gpu.h. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/columns/columns.h"
#include "src/report/print.h"
#include "src/report/sections.h"

enum { NUMBER_COLUMNS = 24, MIN_NAME_COLUMNS = 24, ANY_COLUMNS = 1 << 16 };

void report_gpu_done(struct report_gpu *gpu)
{
	struct report_gpu_rows *both[] = { &gpu->work, &gpu->idle };

	for (size_t i = 0; i < gpu->n_devices; i++)
		free(gpu->devices[i].name);
	free(gpu->devices);
	for (size_t i = 0; i < N_ELEMENTS(both); i++) {
		for (size_t j = 0; j < both[i]->n; j++) {
			free(both[i]->items[j].name);
			free(both[i]->items[j].python);
		}
	}
	free(gpu->longest);
	*gpu = (struct report_gpu){ 0 };
}

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static const char *time_text(int64_t ns, char to[24])
{
	cell_format_ns((uint64_t)MAX(ns, 0), to, 24);
	return to;
}

/* ---- Text ---- */

static void put_device(const struct report_gpu_device *device, FILE *out)
{
	int64_t all = device->busy_ns + MAX(device->idle_ns, 0);
	char busy[24], idle[24], whole[24];

	fputs("GPU ", out);
	cell_put(out, device->name, ANY_COLUMNS, CELL_CUT_MIDDLE);
	if (device->idle_ns >= 0)
		fprintf(out, ": busy %.1f %% (%s), idle %.1f %% (%s) of %s", percent(device->busy_ns, all),
			time_text(device->busy_ns, busy), percent(device->idle_ns, all),
			time_text(device->idle_ns, idle), time_text(all, whole));
	else
		fprintf(out, ": busy %s", time_text(device->busy_ns, busy));
	fprintf(out, "; %jd kernel%s, %jd cop%s\n", (intmax_t)device->n_kernels, device->n_kernels == 1 ? "" : "s",
		(intmax_t)device->n_copies, device->n_copies == 1 ? "y" : "ies");
}

static void put_launches(const struct report_gpu *gpu, FILE *out)
{
	char median[24], ninety[24], longest[24];

	if (gpu->n_launches == 0)
		return;
	fprintf(out, "From launch to start of %jd kernel%s: median %s, 90 %% within %s, longest %s",
		(intmax_t)gpu->n_launches, gpu->n_launches == 1 ? "" : "s", time_text(gpu->median_ns, median),
		time_text(gpu->ninety_ns, ninety), time_text(gpu->longest_ns, longest));
	if (gpu->longest) {
		fputs(" (", out);
		cell_put(out, gpu->longest, 60, CELL_CUT_MIDDLE);
		fputs(")", out);
	}
	fputs("\n", out);
}

static unsigned name_columns(unsigned columns)
{
	return columns == 0 ? ANY_COLUMNS : MAX(columns, NUMBER_COLUMNS + MIN_NAME_COLUMNS) - NUMBER_COLUMNS;
}

static void put_head(struct columns *columns)
{
	fputc('\n', columns->out);
	columns_put_head(columns);
}

/* The columns of numbers; the name is the caller's. */
static void put_numbers(struct columns *columns, const struct report_gpu_rows *rows, const struct report_gpu_row *row)
{
	char time[24];

	columns_printf(columns, "%.1f", percent(row->ns, rows->all_ns));
	columns_put(columns, time_text(row->ns, time));
	columns_printf(columns, "%jd", (intmax_t)row->n);
	columns_start_last(columns);
}

static void put_more(const struct report_gpu_rows *rows, FILE *out)
{
	if (rows->n_more > 0)
		fprintf(out, "(%zu more)\n", rows->n_more);
}

static void put_work(const struct report_gpu_rows *rows, const struct report_options *options, FILE *out)
{
	static const struct column list[] = { { "GPU %", 5, 0, false },
					      { "time", 7, 1, false },
					      { "calls", 7, 1, false },
					      { "kernel or copy", 0, 1, true } };
	struct columns columns = { .list = list, .n = N_ELEMENTS(list), .out = out, .colour = options->colour };

	put_head(&columns);
	for (size_t i = 0; i < rows->n; i++) {
		const struct report_gpu_row *row = &rows->items[i];

		put_numbers(&columns, rows, row);
		cell_put(out, row->name, name_columns(options->columns), CELL_CUT_MIDDLE);
		columns_end(&columns);
	}
	put_more(rows, out);
}

static void put_idle(const struct report_gpu_rows *rows, const struct report_options *options, FILE *out)
{
	static const struct column list[] = { { "idle %", 6, 0, false },
					      { "time", 7, 1, false },
					      { "times", 7, 1, false },
					      { "GPU waited for", 0, 1, true } };
	struct columns columns = { .list = list, .n = N_ELEMENTS(list), .out = out, .colour = options->colour };
	unsigned rest = name_columns(options->columns), used;

	put_head(&columns);
	for (size_t i = 0; i < rows->n; i++) {
		const struct report_gpu_row *row = &rows->items[i];
		const char *name = row->launched ? "[already launched: the GPU's queue, or a dependency]"
				   : row->name   ? row->name
						 : "[nothing that was traced]";

		put_numbers(&columns, rows, row);
		used = cell_put(out, name, rest, CELL_CUT_MIDDLE);
		if (row->python && row->name && strcmp(row->python, row->name) != 0 && rest > used + MIN_NAME_COLUMNS) {
			fputs("  in ", out);
			cell_put(out, row->python, rest - used - 5, CELL_CUT_START);
		}
		columns_end(&columns);
	}
	put_more(rows, out);
}

void print_gpu(const struct report_gpu *gpu, const struct report_options *options, FILE *out)
{
	if (gpu->n_devices > 0)
		fputs("\n", out);
	for (size_t i = 0; i < gpu->n_devices; i++)
		put_device(&gpu->devices[i], out);
	put_launches(gpu, out);
	if (gpu->work.n > 0)
		put_work(&gpu->work, options, out);
	if (gpu->idle.n > 0)
		put_idle(&gpu->idle, options, out);
}

/* ---- JSON ---- */

static void put_json_rows(struct json *json, const char *key, const struct report_gpu_rows *rows, bool is_idle)
{
	to_json_put_array(json, key);
	for (size_t i = 0; i < rows->n; i++) {
		const struct report_gpu_row *row = &rows->items[i];

		to_json_object(json);
		to_json_put_text(json, is_idle ? "function" : "name", row->name);
		if (is_idle) {
			to_json_put_text(json, "python", row->python);
			to_json_put_bool(json, "launched", row->launched);
		}
		to_json_put_integer(json, "ns", row->ns);
		print_json_percent(json, "share", percent(row->ns, rows->all_ns));
		to_json_put_integer(json, "count", row->n);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}

void print_json_gpu(struct json *json, const struct report_gpu *gpu)
{
	to_json_put_object(json, "gpu");
	to_json_put_array(json, "devices");
	for (size_t i = 0; i < gpu->n_devices; i++) {
		const struct report_gpu_device *device = &gpu->devices[i];

		to_json_object(json);
		to_json_put_string(json, "name", device->name);
		to_json_put_integer(json, "busy_ns", device->busy_ns);
		to_json_put_known(json, "idle_ns", device->idle_ns, device->idle_ns >= 0);
		to_json_put_integer(json, "kernels", device->n_kernels);
		to_json_put_integer(json, "copies", device->n_copies);
		to_json_object_end(json);
	}
	to_json_array_end(json);
	to_json_put_object(json, "launch_to_start");
	to_json_put_integer(json, "count", gpu->n_launches);
	to_json_put_known(json, "median_ns", gpu->median_ns, gpu->n_launches > 0);
	to_json_put_known(json, "p90_ns", gpu->ninety_ns, gpu->n_launches > 0);
	to_json_put_known(json, "longest_ns", gpu->longest_ns, gpu->n_launches > 0);
	to_json_put_text(json, "longest", gpu->longest);
	to_json_object_end(json);
	put_json_rows(json, "work", &gpu->work, false);
	put_json_rows(json, "idle", &gpu->idle, true);
	to_json_object_end(json);
}
