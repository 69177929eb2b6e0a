/* SPDX-License-Identifier: MIT */
/* info_print.c - the description of a recording as text, a property a line. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "src/cli/format.h"
#include "src/cli/info.h"
#include "src/cli/resymbolize_summary.h"
#include "src/columns/columns.h"

enum { MAX_TIME = 64, MAX_SHOWN = 200, MAX_WHOLE = 1 << 14, NAME_COLUMNS = 11 };

static void put_time(double seconds, FILE *out)
{
	time_t whole = (time_t)seconds;
	struct tm tm;
	char text[MAX_TIME];

	if (seconds > 0 && seconds < 1e11 && gmtime_r(&whole, &tm) && strftime(text, sizeof text, "%F %T UTC", &tm) > 0)
		fputs(text, out);
	else
		fputs("not known", out);
}

static void put_label(const char *name, FILE *out)
{
	label_put(out, NAME_COLUMNS, name);
}

static void put_text(const char *name, const char *text, FILE *out)
{
	char shown[MAX_WHOLE]; /* a command line is not cut */

	format_printable_name(text, shown, sizeof shown);
	put_label(name, out);
	fprintf(out, "%s\n", shown);
}

/* How the recording ended, or the time of its last sample. */
static void put_end(const struct info *info, const struct about_run *run, FILE *out)
{
	const struct about *about = &info->about;

	put_label("ended", out);
	if (run->ended > 0) {
		put_time(run->ended, out);
		fprintf(out, ", after %.1f s%s\n", run->ended - run->started, run->clean ? "" : ", not cleanly");
		return;
	}
	fprintf(out, "%s; its last sample is from ",
		about->is_written ? "not yet: it is being recorded" : "not cleanly: its recorder was killed");
	put_time(about->last, out);
	if (about->last > 0)
		fprintf(out, ", %.1f s after the start", about->last - run->started);
	fputc('\n', out);
}

static void put_mode(const struct about_run *run, FILE *out)
{
	char event[MAX_SHOWN], mode[MAX_SHOWN], source[MAX_SHOWN];

	format_printable_name(run->event, event, sizeof event);
	format_printable_name(run->mode, mode, sizeof mode);
	format_printable_name(run->stack_source, source, sizeof source);
	put_label("mode", out);
	if (strcmp(run->mode, "imported") == 0) {
		fprintf(out, "imported, another profiler's: %s of %s\n", source, event);
		return;
	}
	fprintf(out, "%s, ", mode);
	if (run->period > 0)
		fprintf(out, "one in %" PRId64 " %s", run->period, event);
	else if (run->hz > 0)
		fprintf(out, "%g Hz of %s", run->hz, event);
	else
		fprintf(out, "each %s", event);
	fprintf(out, ", stack source %s%s\n", source, run->kernel_frames ? "" : ", without the kernel");
}

static void put_run(const struct info *info, const struct about_run *run, FILE *out)
{
	char host[MAX_SHOWN], kernel[MAX_SHOWN];

	if (info->about.n_runs > 1)
		fprintf(out, "  run %" PRId64 "\n", run->run);
	put_text("command", run->command, out);
	put_label("process", out);
	fprintf(out, "%" PRId64 "\n", run->pid);
	put_label("started", out);
	put_time(run->started, out);
	fputc('\n', out);
	put_end(info, run, out);
	put_mode(run, out);
	format_printable_name(run->host, host, sizeof host);
	format_printable_name(run->kernel, kernel, sizeof kernel);
	put_label("host", out);
	if (host[0] || kernel[0])
		fprintf(out, "%s, kernel %s, %" PRId64 " CPUs\n", host, kernel, run->cpus);
	else
		fputs("not known\n", out);
	put_text("python", run->python[0] ? run->python : "none was found", out);
	put_text("probing", run->probing, out);
}

static void put_count(const char *what, int64_t n, const char *before, FILE *out)
{
	char text[32];

	format_count((uint64_t)MAX(n, 0), text);
	fprintf(out, "%s%s %s", before, text, what);
}

static void put_samples(const struct about *about, FILE *out)
{
	put_label("samples", out);
	put_count("there", about->n_samples, "", out);
	if (about->n_lost >= 0)
		put_count("lost", about->n_lost, ", ", out);
	if (about->n_dropped > 0)
		put_count("older ones dropped", about->n_dropped, ", ", out);
	fputc('\n', out);
	put_label("of", out);
	put_count("processes", about->n_processes, "", out);
	put_count("threads", about->n_threads, ", ", out);
	put_count("functions", about->n_functions, ", ", out);
	put_count("stacks", about->n_stacks, ", ", out);
	if (about->n_pauses > 0)
		put_count("pauses", about->n_pauses, ", ", out);
	fputc('\n', out);
}

/* Rows that the program wrote. */
static void put_rows(const struct about *about, FILE *out)
{
	char tables[MAX_SHOWN];

	if (!about->row_tables)
		return;
	format_printable_name(about->row_tables, tables, sizeof tables);
	put_label("rows", out);
	put_count("of ", about->n_rows, "", out);
	fputs(tables, out);
	if (about->n_rows_lost > 0)
		put_count("lost", about->n_rows_lost, "; ", out);
	fputc('\n', out);
}

static void put_size(const struct about *about, FILE *out)
{
	char size[16];

	format_bytes((uint64_t)about->file_bytes, size);
	put_label("size", out);
	fputs(size, out);
	for (int i = 0; i < N_PARTS && about->has_parts; i++) {
		format_bytes((uint64_t)about->part_bytes[i], size);
		if (about->part_bytes[i] > 0)
			fprintf(out, "%s%s %s", i == 0 ? ": " : ", ", about_part_names[i], size);
	}
	if (about->log_bytes > 0) {
		format_bytes((uint64_t)about->log_bytes, size);
		fprintf(out, "; %s in the log beside it: keep both", size);
	}
	fputc('\n', out);
	put_label("schema", out);
	fprintf(out, "version %" PRId64 " of the tables\n", about->schema_version);
}

static void put_check(const struct info *info, FILE *out)
{
	if (!info->is_checked)
		return;
	put_label("check", out);
	if (info->check.n_wrong > 0)
		fprintf(out, "DAMAGED, %" PRIu64 " thing%s wrong:\n", info->check.n_wrong,
			info->check.n_wrong == 1 ? " is" : "s are");
	else if (info->check.is_verified)
		fputs("intact: each value is the one that was written\n", out);
	else
		fputs("intact, but not verified: only a recording that ends cleanly has a checksum\n", out);
	for (size_t i = 0; i < info->n_wrong; i++) {
		char shown[MAX_SHOWN * 2];

		format_printable_name(info->wrong[i], shown, sizeof shown);
		fprintf(out, "    %s\n", shown);
	}
	if (info->check.n_wrong > info->n_wrong)
		fprintf(out, "    and %" PRIu64 " more\n", info->check.n_wrong - info->n_wrong);
}

void info_print(const struct info *info, FILE *out)
{
	char path[MAX_SHOWN * 4];

	format_printable_name(info->path, path, sizeof path);
	fprintf(out, "%s\n", path);
	for (size_t i = 0; i < info->about.n_runs; i++)
		put_run(info, &info->about.runs[i], out);
	if (info->about.n_runs == 0)
		put_text("command", "unknown: its recorder was killed before the first sample", out);
	put_samples(&info->about, out);
	put_rows(&info->about, out);
	put_size(&info->about, out);
	put_check(info, out);
}
