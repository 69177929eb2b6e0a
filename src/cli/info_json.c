/* info_json.c - what recordings are, for programs. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "base/util.h"
#include "src/cli/info.h"
#include "src/cli/rename_summary.h"

DEFINE_CLEANUP(yajl_gen, yajl_gen_free)

/* What is not UTF-8 comes without the bytes that make it so. */
static void put_bytes(yajl_gen json, const char *text)
{
	char plain[1024];

	if (yajl_gen_string(json, (const unsigned char *)text, strlen(text)) != yajl_gen_invalid_string)
		return;
	rename_printable(text, plain, sizeof plain);
	for (char *at = plain; *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	yajl_gen_string(json, (const unsigned char *)plain, strlen(plain));
}

static void put_text(yajl_gen json, const char *key, const char *text)
{
	put_bytes(json, key);
	if (text[0])
		put_bytes(json, text);
	else
		yajl_gen_null(json);
}

/* Below 0: not known. */
static void put_integer(yajl_gen json, const char *key, int64_t value)
{
	put_bytes(json, key);
	if (value >= 0)
		yajl_gen_integer(json, value);
	else
		yajl_gen_null(json);
}

static void put_real(yajl_gen json, const char *key, double value)
{
	put_bytes(json, key);
	if (isfinite(value) && value > 0)
		yajl_gen_double(json, value);
	else
		yajl_gen_null(json);
}

static void put_bool(yajl_gen json, const char *key, bool value)
{
	put_bytes(json, key);
	yajl_gen_bool(json, value);
}

static void put_run(yajl_gen json, const struct about_run *run)
{
	yajl_gen_map_open(json);
	put_integer(json, "run", run->run);
	put_text(json, "command", run->command);
	put_integer(json, "pid", run->pid);
	put_real(json, "started", run->started);
	put_real(json, "ended", run->ended);
	put_bool(json, "clean", run->clean);
	put_text(json, "mode", run->mode);
	put_text(json, "event", run->event);
	put_text(json, "unit", run->unit);
	put_real(json, "hz", run->hz);
	put_integer(json, "period", run->period > 0 ? run->period : -1);
	put_text(json, "stack_source", run->stack_source);
	put_bool(json, "kernel_frames", run->kernel_frames);
	put_text(json, "python", run->python);
	put_text(json, "host", run->host);
	put_text(json, "kernel", run->kernel);
	put_integer(json, "cpus", run->cpus);
	put_text(json, "probing", run->probing);
	yajl_gen_map_close(json);
}

static void put_parts(yajl_gen json, const struct about *about)
{
	put_integer(json, "file_bytes", about->file_bytes);
	put_integer(json, "log_bytes", about->log_bytes);
	put_bytes(json, "bytes");
	if (!about->has_parts) {
		yajl_gen_null(json);
		return;
	}
	yajl_gen_map_open(json);
	for (int i = 0; i < N_PARTS; i++)
		put_integer(json, about_part_names[i], about->part_bytes[i]);
	yajl_gen_map_close(json);
}

static void put_check(yajl_gen json, const struct info *info)
{
	put_bytes(json, "check");
	if (!info->is_checked) {
		yajl_gen_null(json);
		return;
	}
	yajl_gen_map_open(json);
	put_bool(json, "sound", info->check.n_wrong == 0);
	put_bool(json, "sealed", info->check.is_sealed);
	put_integer(json, "n_wrong", (int64_t)info->check.n_wrong);
	put_bytes(json, "wrong");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < info->n_wrong; i++)
		put_bytes(json, info->wrong[i]);
	yajl_gen_array_close(json);
	yajl_gen_map_close(json);
}

static void put_info(yajl_gen json, const struct info *info)
{
	const struct about *about = &info->about;

	yajl_gen_map_open(json);
	put_text(json, "path", info->path);
	put_integer(json, "schema_version", about->schema_version);
	put_bool(json, "is_being_recorded", about->is_written);
	put_bytes(json, "runs");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < about->n_runs; i++)
		put_run(json, &about->runs[i]);
	yajl_gen_array_close(json);
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
	put_parts(json, about);
	put_check(json, info);
	yajl_gen_map_close(json);
}

int info_print_json(const struct info *infos, size_t n, FILE *out)
{
	CLEANUP(yajl_gen_freep) yajl_gen json = yajl_gen_alloc(NULL);
	const unsigned char *bytes;
	size_t n_bytes;

	if (!json)
		return -ENOMEM;
	yajl_gen_config(json, yajl_gen_validate_utf8, 1);
	yajl_gen_config(json, yajl_gen_beautify, 1);
	yajl_gen_array_open(json);
	for (size_t i = 0; i < n; i++)
		put_info(json, &infos[i]);
	yajl_gen_array_close(json);
	if (yajl_gen_get_buf(json, &bytes, &n_bytes) != yajl_gen_status_ok)
		return -ENOMEM;
	fwrite(bytes, 1, n_bytes, out);
	return ferror(out) ? -EIO : 0;
}
