/* SPDX-License-Identifier: MIT */
/* verb_export.c - a recording in another tool's format.
 *
 * A format is a view of stacks, which is written as a stream, or a copy of the whole recording.
 * Neither appears before it is complete. A view can be made again, so it replaces an existing file at a given path,
 * as flamegraph and diff do; but not at a default path, where the file may be another program's
 * recording. A copy replaces nothing without --force.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/exporters.h"
#include "src/cli/fleet_source.h"
#include "src/cli/format_list.h"
#include "src/cli/new_file_options.h"
#include "src/cli/otlp_send.h"
#include "src/cli/page_sources.h"
#include "src/cli/inputs.h"
#include "src/cli/view.h"
#include "src/cli/progress.h"
#include "src/export/export.h"
#include "src/profile/profile.h"
#include "src/store/store.h"

enum { KEY_TO = 0x200, KEY_TITLE, KEY_SERVICE };

struct options {
	const char *recording;
	struct new_file_options place;
	const struct exporter *exporter; /* NULL: by out's file name extension */
	bool has_view, is_named;
	struct view view;
	struct export_options export;
	struct page_sources sources;
};

static const struct argp_option option_list[] = {
	{ "to", KEY_TO, "FORMAT", 0, "The format", 0 }, /* list_formats() completes it */
	NEW_FILE_OPTION_ROWS("Write to OUT; - is stdout (default: FILE with the format's ending in place of its own)"),
	VIEW_LIVE_ROW,
	VIEW_SPLIT_ROW,
	VIEW_OPTION_ROWS,
	VIEW_TREE_ROWS,
	VIEW_BY_ROW,
	{ "title", KEY_TITLE, "TEXT", 0, "Set the title (default: the command and the active filters)", 0 },
	{ "service", KEY_SERVICE, "NAME", 0,
	  "Set service.name of otlp (default: OTEL_SERVICE_NAME, or the program's name)", 0 },
	PAGE_SOURCES_OPTION_ROWS,
	{ 0 },
};

static void check(struct argp_state *state, struct options *options)
{
	if (!options->exporter && options->place.out && otlp_is_address(options->place.out))
		options->exporter = exporter_by_name("otlp");
	if (!options->exporter && options->place.out)
		options->exporter = exporters_of_path(state, options->place.out, false);
	if (!options->exporter)
		argp_error(state, "format missing: give --to FORMAT; --help lists the formats");
	else if (options->exporter->copy && options->has_view)
		argp_error(state, "%s copies all of a recording: omit the options that filter its stacks",
			   options->exporter->name);
	else if (options->export.service && strcmp(options->exporter->name, "otlp") != 0)
		argp_error(state, "--service is for otlp: %s has no service", options->exporter->name);
	else if (options->exporter->copy && options->place.out && strcmp(options->place.out, "-") == 0)
		argp_error(state, "%s writes an SQLite file: give its name with -o", options->exporter->name);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;
	error_t error;

	switch (key) {
	case KEY_TO:
		options->exporter = exporters_named(state, argument, false);
		return 0;
	case KEY_VIEW_BY:
		view_by_parse(state, argument, &options->view);
		options->has_view = true;
		return 0;
	case KEY_TITLE:
		options->export.title = argument;
		return 0;
	case KEY_SERVICE:
		options->export.service = argument;
		return 0;
	case ARGP_KEY_ARG:
		cli_parse_recording(state, argument, &options->recording);
		return 0;
	case ARGP_KEY_END:
		view_end(state, &options->view, &options->recording);
		options->has_view |= options->view.pids.n > 0;
		check(state, options);
		return view_parse(key, argument, state, &options->view);
	default:
		if (new_file_parse(key, argument, state, &options->place) == 0 ||
		    page_sources_parse(key, argument, state, &options->sources) == 0)
			return 0;
		error = view_parse(key, argument, state, &options->view);
		options->has_view |= error == 0 && key >= KEY_VIEW_PID;
		return error;
	}
}

/* Help text of --to, from the table of exporters. argp frees the result. */
static char *list_formats(int key, const char *text, void *input)
{
	struct format_list list;

	if (key != KEY_TO)
		return cli_help_filter(key, text, input);
	if (!format_list_begin(&list, "The format:"))
		return (char *)text;
	for (size_t i = 0; exporters[i]; i++)
		format_list_add(&list, exporters[i]->name, exporters[i]->summary);
	return format_list_end(&list, "; default: by OUT's extension");
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE|PID]",
	.doc = "Convert a recording (default: probing.db), or a short recording of PID, to another format. An "
	       "existing OUT is replaced unless it is a recording or an SQLite file.\v"
	       "Examples:\n"
	       "  probing export train.db --to folded -o - | sort\n"
	       "  probing export train.db --to svg --by-thread\n"
	       "  probing export train.db --to speedscope --by stage\n"
	       "  probing export train.db --to pprof --since 10 --until 20\n"
	       "  probing export train.db --to sqlite -o plain.sqlite\n",
	.help_filter = list_formats,
};

/* "train.db" becomes "train.svg". */
static char *default_out(const char *recording, const struct exporter *exporter)
{
	char *out;

	if (fleet_source_is_one(recording))
		recording = "fleet";
	if (asprintf(&out, "%.*s%.*s", (int)path_stem_bytes(recording), recording, (int)strcspn(exporter->endings, " "),
		     exporter->endings) < 0)
		return NULL;
	return out;
}

static int fail_export(const struct options *options, int error)
{
	if (error == -ECANCELED)
		return cli_fail(EXIT_FAILED, "interrupted; no file was created");
	if (error == -EBADMSG)
		return cli_fail(EXIT_BAD_DATA, "%s is damaged; run 'probing info --check' for details",
				options->recording);
	if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG || error == -EIO)
		return cli_fail_write(options->place.out, error);
	return view_fail_export(options->recording, options->exporter, error);
}

static int fail_place(const struct options *options, int error)
{
	return inputs_fail_place(options->place.out, error);
}

static bool show_rows(void *data, uint64_t n_done, uint64_t n_all)
{
	return progress_show(data, "rows", n_done, n_all);
}

static int export_copy(struct options *options)
{
	CLEANUP(new_file_abandon) struct new_file file = { 0 };
	CLEANUP(inputs_done) struct inputs sources;
	struct progress progress;
	int status, r;

	status = inputs_open(&options->recording, 1, &sources);
	if (status != EXIT_OK)
		return status;
	r = new_file_reserve(&file, options->place.out, options->place.force, options->place.mode);
	if (r < 0)
		return fail_place(options, r);
	progress_begin(&progress, options->place.quiet);
	options->export.keep_going = show_rows;
	options->export.data = &progress;
	r = options->exporter->copy(sources.dbs[0], &options->export, file.path);
	if (r < 0)
		return progress_end(&progress, fail_export(options, r));
	progress_end(&progress, EXIT_OK);
	r = new_file_finish(&file);
	if (r < 0)
		return fail_place(options, r);
	if (!options->place.quiet)
		cli_say("probing: wrote %s\n", options->place.out);
	return EXIT_OK;
}

/* Overwriting anything but a regular file, such as a pipe or terminal, loses nothing. */
static bool is_in_the_way(const struct options *options)
{
	struct stat st;

	return !options->is_named && !options->place.force && stat(options->place.out, &st) == 0 && S_ISREG(st.st_mode);
}

DEFINE_CLEANUP(struct tracks *, tracks_free)

static int export_view(struct options *options)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(profile_freep) struct profile *profile = NULL;
	CLEANUP(tracks_freep) struct tracks *tracks = NULL;
	CLEANUP(freep) char *title = NULL;
	struct exporting exporting = { 0 };
	int status;

	if (is_in_the_way(options))
		return cli_fail(EXIT_NO_OUTPUT, "%s exists: name it with -o to replace it, or another one",
				options->place.out);
	view_export(&options->view, &options->export);
	options->view.with_samples = options->exporter->needs_samples && !options->view.by;
	options->view.quiet = options->place.quiet;
	status = view_by_check(&options->view, options->exporter);
	if (status == EXIT_OK)
		status = exporters_check(options->exporter);
	if (status == EXIT_OK)
		status = view_open(options->recording, &options->view, &db, &profile);
	if (status == EXIT_OK)
		status = page_sources_make(&options->sources, profile, options->place.quiet, &options->export);
	if (status != EXIT_OK)
		return status;
	if (!options->export.title)
		options->export.title = title = view_title(&options->view, db);
	exporting = (struct exporting){ options->recording, options->place.out, options->exporter, profile,
					&options->export,   options->place.mode };
	status = exporters_tracks(&exporting, &options->view, db, &tracks);
	options->export.tracks = tracks;
	return status == EXIT_OK ? exporters_write(&exporting, options->place.quiet) : status;
}

static int run_export(int argc, char **argv)
{
	CLEANUP(freep) char *out = NULL;
	struct options options = { .view.can_split = true };
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	if (!options.recording)
		options.recording = cli_default_recording();
	if (!options.export.service)
		options.export.service = getenv("OTEL_SERVICE_NAME");
	if (options.export.service && !*options.export.service)
		options.export.service = NULL;
	options.is_named = options.place.out != NULL;
	if (!options.is_named)
		options.place.out = out = default_out(options.recording, options.exporter);
	if (!options.place.out)
		return cli_fail(EXIT_FAILED, "not enough memory");
	status = page_sources_check(&options.sources, options.exporter);
	if (status == EXIT_OK)
		status = options.exporter->copy ? export_copy(&options) : export_view(&options);
	page_sources_done(&options.sources);
	view_done(&options.view);
	return status;
}

const struct verb verb_export = {
	.name = "export",
	.summary = "convert a recording to another format",
	.argp = &argp,
	.run = run_export,
};
