/* SPDX-License-Identifier: MIT */
/* exporters.c - see exporters.h. */
#include "src/cli/exporters.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "base/util.h"
#include "src/cli/aliases.h"
#include "src/cli/cli.h"
#include "src/cli/otlp_send.h"
#include "src/cli/view.h"
#include "src/sql/sql.h"

static bool is_wanted(const struct exporter *exporter, bool views_only)
{
	return exporter->write || !views_only;
}

/* "svg (.svg), html (.html .htm)". Owned by the caller; NULL: out of memory. */
static char *list_all(bool views_only)
{
	char *text = NULL;
	size_t n_bytes, n = 0;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return NULL;
	for (size_t i = 0; exporters[i]; i++)
		if (is_wanted(exporters[i], views_only))
			fprintf(out, "%s%s (%s)", n++ > 0 ? ", " : "", exporters[i]->name, exporters[i]->endings);
	return fclose(out) == 0 ? text : NULL;
}

const struct exporter *exporters_named(struct argp_state *state, const char *name, bool views_only)
{
	const struct exporter *exporter = exporter_by_name(aliases_format(name));
	CLEANUP(freep) char *all = NULL;

	if (exporter && is_wanted(exporter, views_only))
		return exporter;
	all = list_all(views_only);
	argp_error(state, "there is no format %s; there are %s", name, all ? all : "others");
	return NULL;
}

const char *exporters_ending(const char *path)
{
	const char *name = path_base_name(path), *dot = strrchr(name, '.');

	if (!dot || dot == name || strncmp(path, "/dev/", strlen("/dev/")) == 0)
		return "";
	return dot[1 + strspn(dot + 1, "0123456789-_")] == '\0' ? "" : dot;
}

const struct exporter *exporters_of_path(struct argp_state *state, const char *path, bool views_only)
{
	const struct exporter *exporter = exporter_by_path(path);
	CLEANUP(freep) char *all = NULL;

	if (exporter && is_wanted(exporter, views_only))
		return exporter;
	if (!exporters_ending(path)[0])
		return NULL;
	all = list_all(views_only);
	argp_error(state,
		   "%s: no format ends in %s; name another file, a recording (.db), or the format with --format: %s",
		   path, exporters_ending(path), all ? all : "--help lists them");
	return NULL;
}

int exporters_check(const struct exporter *exporter)
{
	const char *lacks = exporter->lacks ? exporter->lacks() : NULL;

	if (lacks)
		return cli_fail(EXIT_FAILED, "this build of probing cannot write %s: %s", exporter->name, lacks);
	return EXIT_OK;
}

/* ns since 1970 of a time that is given; @otherwise: of one that is not. */
static uint64_t resolve(const struct view_time *time, const struct profile *profile, uint64_t otherwise)
{
	double seconds = time->type == VIEW_TIME_NONE ? 0
						      : view_time_resolve(time, (double)profile->run.started_ns / 1e9);

	return time->type == VIEW_TIME_NONE ? otherwise : seconds < 0 ? 0 : (uint64_t)(seconds * 1e9);
}

int exporters_tracks(const struct exporting *exporting, const struct view *view, sqlite3 *db, struct tracks **ret)
{
	const struct profile *profile = exporting->profile;
	const struct profile_sample *last;
	uint64_t begin_ns, end_ns;
	int r;

	*ret = NULL;
	if (!exporting->exporter->has_tracks || profile->n_samples == 0)
		return EXIT_OK;
	last = &profile->samples[profile->n_samples - 1];
	begin_ns = profile->run.started_ns > 0 ? MIN(profile->run.started_ns, profile->samples[0].time_ns)
					       : profile->samples[0].time_ns;
	end_ns = MAX(last->time_ns + last->weight, profile->run.ended_ns);
	r = sql_attach(db);
	if (r == 0)
		r = tracks_read(db, resolve(&view->since, profile, begin_ns), resolve(&view->until, profile, end_ns),
				ret);
	return r < 0 ? view_fail_export(exporting->recording, exporting->exporter, r) : EXIT_OK;
}

static int put(const void *data, FILE *out)
{
	const struct exporting *exporting = data;
	struct export_options options = *exporting->options;

	options.compress = strcasecmp(exporters_ending(exporting->out), ".gz") == 0;
	return exporting->exporter->write(exporting->profile, &options, out);
}

static int fail(const void *data, int error)
{
	const struct exporting *exporting = data;

	return view_fail_export(exporting->recording, exporting->exporter, error);
}

int exporters_write(const struct exporting *exporting, bool quiet)
{
	int status;

	if (otlp_is_address(exporting->out))
		return otlp_send(exporting, quiet);
	status = output_write(exporting->out, exporting->mode, put, fail, exporting);

	if (status == EXIT_OK && strcmp(exporting->out, "-") != 0 && !quiet)
		cli_say("probing: wrote %s (%" PRIu64 " samples)\n", exporting->out,
			cli_count_samples(exporting->profile));
	return status;
}
