/* SPDX-License-Identifier: MIT */
/* info_json.c - descriptions of recordings as JSON. */
#include <math.h>

#include "base/json.h"
#include "base/util.h"
#include "src/cli/info.h"

/* Put a time or a rate; 0 or less: unknown. */
static void put_real(struct json *json, const char *key, double value)
{
	to_json_put_number(json, key, value > 0 ? value : NAN);
}

/* Negative: unknown. */
static void put_integer(struct json *json, const char *key, int64_t value)
{
	to_json_put_known(json, key, value, value >= 0);
}

static void put_run(struct json *json, const struct about_run *run)
{
	to_json_object(json);
	put_integer(json, "run", run->run);
	to_json_put_text(json, "command", run->command);
	put_integer(json, "pid", run->pid);
	put_real(json, "started", run->started);
	put_real(json, "ended", run->ended);
	to_json_put_bool(json, "clean", run->clean);
	to_json_put_text(json, "mode", run->mode);
	to_json_put_text(json, "event", run->event);
	to_json_put_text(json, "unit", run->unit);
	put_real(json, "hz", run->hz);
	put_integer(json, "period", run->period > 0 ? run->period : -1);
	to_json_put_text(json, "stack_source", run->stack_source);
	to_json_put_bool(json, "kernel_frames", run->kernel_frames);
	to_json_put_text(json, "python", run->python);
	to_json_put_text(json, "host", run->host);
	to_json_put_text(json, "kernel", run->kernel);
	put_integer(json, "cpus", run->cpus);
	to_json_put_text(json, "probing", run->probing);
	to_json_object_end(json);
}

static void put_parts(struct json *json, const struct about *about)
{
	put_integer(json, "file_bytes", about->file_bytes);
	put_integer(json, "log_bytes", about->log_bytes);
	if (!about->has_parts) {
		to_json_put_null(json, "bytes");
		return;
	}
	to_json_put_object(json, "bytes");
	for (int i = 0; i < N_PARTS; i++)
		put_integer(json, about_part_names[i], about->part_bytes[i]);
	to_json_object_end(json);
}

static void put_check(struct json *json, const struct info *info)
{
	if (!info->is_checked) {
		to_json_put_null(json, "check");
		return;
	}
	to_json_put_object(json, "check");
	to_json_put_bool(json, "sound", info->check.n_wrong == 0);
	to_json_put_bool(json, "verified", info->check.is_verified);
	put_integer(json, "n_wrong", (int64_t)info->check.n_wrong);
	to_json_put_array(json, "wrong");
	for (size_t i = 0; i < info->n_wrong; i++)
		to_json_string(json, info->wrong[i]);
	to_json_array_end(json);
	to_json_object_end(json);
}

static void put_info(struct json *json, const struct info *info)
{
	const struct about *about = &info->about;

	to_json_object(json);
	to_json_put_text(json, "path", info->path);
	put_integer(json, "schema_version", about->schema_version);
	to_json_put_bool(json, "is_being_recorded", about->is_written);
	to_json_put_array(json, "runs");
	for (size_t i = 0; i < about->n_runs; i++)
		put_run(json, &about->runs[i]);
	to_json_array_end(json);
	put_real(json, "first_sample", about->first);
	put_real(json, "last_sample", about->last);
	put_integer(json, "samples", about->n_samples);
	put_integer(json, "taken", about->n_taken);
	put_integer(json, "lost", about->n_lost);
	put_integer(json, "dropped", about->n_dropped);
	put_integer(json, "processes", about->n_processes);
	put_integer(json, "threads", about->n_threads);
	put_integer(json, "modules", about->n_modules);
	put_integer(json, "functions", about->n_functions);
	put_integer(json, "frames", about->n_frames);
	put_integer(json, "stacks", about->n_stacks);
	put_integer(json, "pauses", about->n_pauses);
	put_integer(json, "rows", about->n_rows);
	put_integer(json, "rows_lost", about->n_rows_lost);
	put_parts(json, about);
	put_check(json, info);
	to_json_object_end(json);
}

int info_print_json(const struct info *infos, size_t n, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	int r = to_json_keep("    ", &json);

	if (r < 0)
		return r;
	to_json_array(&json);
	for (size_t i = 0; i < n; i++)
		put_info(&json, &infos[i]);
	to_json_array_end(&json);
	return to_json_finish(&json, out);
}
