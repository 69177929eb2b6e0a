/* SPDX-License-Identifier: MIT */
/* verb_flamegraph.c - a recording as a flame graph, or in another exporter's format.
 *
 * --format chooses the format, else the extension of OUT, else it is svg. OUT appears once it is complete.
 */
#include <sqlite3.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/exporters.h"
#include "src/cli/format_list.h"
#include "src/cli/new_file_options.h"
#include "src/cli/page_sources.h"
#include "src/cli/view.h"
#include "src/export/export.h"
#include "src/profile/profile.h"
#include "src/store/store.h"

enum { OPTION_FORMAT = 'f', OPTION_TITLE = 0x200 };

struct options {
	const char *recording, *out;
	mode_t mode; /* of out; 0: default */
	bool quiet;
	const struct exporter *exporter; /* NULL: by the extension of out */
	struct view view;
	struct export_options export;
	struct page_sources sources;
};

static const struct argp_option option_list[] = {
	{ "output", 'o', "OUT", 0, "Write to OUT; - is stdout (default: flamegraph.svg)", 0 },
	CHMOD_OPTION_ROW,
	{ "format", OPTION_FORMAT, "FORMAT", 0, "Write as", 0 }, /* list_formats() completes it */
	VIEW_LIVE_ROW,
	VIEW_SPLIT_ROW,
	VIEW_OPTION_ROWS,
	VIEW_TREE_ROWS,
	VIEW_BY_ROW,
	{ "title", OPTION_TITLE, "TEXT", 0, "Set the title (default: the command and the active filters)", 0 },
	PAGE_SOURCES_OPTION_ROWS,
	{ "quiet", 'q', NULL, 0, "Print errors only", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'o':
		options->out = argument;
		return 0;
	case KEY_CHMOD:
		options->mode = cli_parse_mode(state, argument);
		return 0;
	case OPTION_FORMAT:
		options->exporter = exporters_named(state, argument, true);
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	case KEY_VIEW_BY:
		view_by_parse(state, argument, &options->view);
		return 0;
	case OPTION_TITLE:
		options->export.title = argument;
		return 0;
	case ARGP_KEY_ARG:
		cli_parse_recording(state, argument, &options->recording);
		return 0;
	case ARGP_KEY_END:
		view_end(state, &options->view, &options->recording);
		if (!options->exporter && options->out)
			options->exporter = exporters_of_path(state, options->out, true);
		return 0;
	default:
		if (page_sources_parse(key, argument, state, &options->sources) == 0)
			return 0;
		return view_parse(key, argument, state, &options->view);
	}
}

/* The help of --format, from the table of exporters. argp frees the result. */
static char *list_formats(int key, const char *text, void *input)
{
	struct format_list list;

	if (key != OPTION_FORMAT)
		return cli_help_filter(key, text, input);
	if (!format_list_begin(&list, "Write as"))
		return (char *)text;
	for (size_t i = 0; exporters[i]; i++)
		if (exporters[i]->write)
			format_list_add(&list, exporters[i]->name, exporters[i]->summary);
	return format_list_end(&list, "; default: by OUT's extension, else svg");
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE|PID]",
	.doc = "Draw a flame graph of a recording (default: probing.db), or record PID and draw it.\v"
	       "Examples:\n"
	       "  probing flamegraph\n"
	       "  probing flamegraph train.db -o train.svg --by-thread\n"
	       "  probing flamegraph --function Trainer.step --no-native\n"
	       "  probing flamegraph 4242 -d 10 -o now.html\n"
	       "  probing flamegraph train.db -o train.html --sources\n"
	       "  probing flamegraph --inverted --min-share 1 --where 'gil = 1'\n"
	       "  probing flamegraph train.db --by torch -o modules.html\n"
	       "  probing flamegraph --format folded -o - | flamegraph.pl > other.svg\n",
	.help_filter = list_formats,
};

/* "flamegraph" with the first extension of the format. */
static char *default_out(const struct exporter *exporter)
{
	char *out;

	if (asprintf(&out, "flamegraph%.*s", (int)strcspn(exporter->endings, " "), exporter->endings) < 0)
		return NULL;
	return out;
}

DEFINE_CLEANUP(struct tracks *, tracks_free)

static int run_flamegraph(int argc, char **argv)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(profile_freep) struct profile *profile = NULL;
	CLEANUP(tracks_freep) struct tracks *tracks = NULL;
	CLEANUP(freep) char *out = NULL, *title = NULL;
	struct options options = { .view.can_split = true };
	struct exporting exporting = { 0 };
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	view_export(&options.view, &options.export);
	if (!options.exporter)
		options.exporter = exporter_by_name("svg");
	if (!options.out) {
		out = default_out(options.exporter);
		if (!out)
			return cli_fail(EXIT_FAILED, "not enough memory");
		options.out = out;
	}
	options.view.with_samples = options.exporter->needs_samples && !options.view.by;
	options.view.quiet = options.quiet;
	status = view_by_check(&options.view, options.exporter);
	if (status == EXIT_OK)
		status = page_sources_check(&options.sources, options.exporter);
	if (status == EXIT_OK)
		status = exporters_check(options.exporter);
	if (status == EXIT_OK)
		status = view_open(options.recording, &options.view, &db, &profile);
	if (status == EXIT_OK && !options.export.title)
		options.export.title = title = view_title(&options.view, db);
	if (status == EXIT_OK)
		status = page_sources_make(&options.sources, profile, options.quiet, &options.export);
	exporting = (struct exporting){ options.recording, options.out,     options.exporter,
					profile,           &options.export, options.mode };
	if (status == EXIT_OK)
		status = exporters_tracks(&exporting, &options.view, db, &tracks);
	options.export.tracks = tracks;
	view_done(&options.view);
	if (status == EXIT_OK)
		status = exporters_write(&exporting, options.quiet);
	page_sources_done(&options.sources);
	return status;
}

const struct verb verb_flamegraph = {
	.name = "flamegraph",
	.aliases = "flame fg",
	.summary = "draw a flame graph",
	.argp = &argp,
	.run = run_flamegraph,
};
