/* SPDX-License-Identifier: MIT */
/* verb_annotate.c - sources with the time spent beside each line. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/resymbolize_summary.h"
#include "src/cli/view.h"
#include "src/profile/profile.h"
#include "src/report/report.h"
#include "src/store/store.h"

enum {
	OPTION_ROOT = 0x200,
	OPTION_CONTEXT,
	OPTION_ALL,
	OPTION_JSON,
	MAX_FILES = 10000,
	MAX_CONTEXT = 100000,
	DEFAULT_CONTEXT = 3
};

struct options {
	const char *recording;
	struct view view;
	struct glob_list what, roots;
	struct annotate_options annotate;
	unsigned n_found, n_missing; /* source files */
};

static const struct argp_option option_list[] = {
	{ "source-root", OPTION_ROOT, "FOLDER", 0,
	  "Search for sources below this folder first; FROM=TO maps a path prefix (repeatable)", 0 },
	{ "context", OPTION_CONTEXT, "N", 0, "Show N lines of context around lines with time (default: 3)", 0 },
	{ "all", OPTION_ALL, NULL, 0, "Show whole files", 0 },
	{ "files", 'n', "N", 0, "Show N files (default: 3, or all that match)", 0 },
	{ "limit", 'n', NULL, OPTION_ALIAS, NULL, 0 },
	{ "json", OPTION_JSON, NULL, 0, "Write one JSON object", 0 },
	VIEW_LIVE_ROW,
	VIEW_OPTION_ROWS,
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_ROOT:
		cli_parse_source_root(state, argument, &options->roots);
		return 0;
	case OPTION_CONTEXT:
		options->annotate.context = (unsigned)cli_parse_number(state, argument, "--context", 0, MAX_CONTEXT);
		return 0;
	case OPTION_ALL:
		options->annotate.all_lines = true;
		return 0;
	case 'n':
		options->annotate.max_files = (unsigned)cli_parse_number(state, argument, "-n", 1, MAX_FILES);
		return 0;
	case OPTION_JSON:
		options->annotate.json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (options->recording)
			cli_parse_name(state, argument, &options->what);
		else
			options->recording = argument;
		return 0;
	case ARGP_KEY_END:
		view_end(state, &options->view, &options->recording);
		return 0;
	default:
		return view_parse(key, argument, state, &options->view);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE|PID [FUNCTION|SOURCE]...]",
	.doc = "Print source files with the time of each line: of a function or file (globs), or of the files with "
	       "the most time. FILE is the recording (default: probing.db). Self time is spent in the line itself, "
	       "total time includes callees.\v"
	       "Examples:\n"
	       "  probing annotate\n"
	       "  probing annotate train.db Trainer.step\n"
	       "  probing annotate train.db train.py --all\n"
	       "  probing annotate train.db --source-root /build=/home/anna/src 'gemm*'\n",
};

/* Report the fate of a source file on stderr; its lines go to stdout. */
static void tell(void *data, const char *file, enum annotate_source what, int error)
{
	struct options *options = data;
	char name[1024];

	format_printable_name(file, name, sizeof name);
	if (what != ANNOTATE_MISSING) {
		options->n_found++;
		if (what == ANNOTATE_NEWER)
			cli_say("probing: %s changed after the recording began: its lines may have moved\n", name);
		return;
	}
	options->n_missing++;
	if (error == -ENOENT || error == -ENOTDIR)
		cli_say("probing: %s not found; name its folder with --source-root (of a running container: "
			"/proc/PID/root)\n",
			name);
	else
		cli_say("probing: %s cannot be read: %s\n", name, strerror(-error));
}

struct writing {
	const struct profile *profile;
	const struct options *options;
};

static int write_listing(const void *data, FILE *out)
{
	const struct writing *writing = data;

	return report_annotate(writing->profile, &writing->options->annotate, out);
}

static int fail_listing(const void *data, int error)
{
	const struct writing *writing = data;

	if (error == -ENODATA)
		return cli_fail(EXIT_NO_INPUT,
				"%s has no source lines for that; probing report --by line lists all lines",
				writing->options->recording ?: cli_default_recording());
	return cli_fail(EXIT_FAILED, "making the listing failed: %s", strerror(-error));
}

static int print(const struct profile *profile, const struct options *options)
{
	int status = output_write("-", 0, write_listing, fail_listing, &(struct writing){ profile, options });

	return status == EXIT_OK && options->n_found == 0 && options->n_missing > 0 ? EXIT_NO_INPUT : status;
}

static int run_annotate(int argc, char **argv)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(profile_freep) struct profile *profile = NULL;
	struct options options = { .annotate.context = DEFAULT_CONTEXT };
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	options.view.with_lines = true;
	options.annotate.what = &options.what;
	options.annotate.roots = &options.roots;
	options.annotate.show_interpreter = options.view.show_interpreter;
	options.annotate.columns = cli_columns(STDOUT_FILENO);
	options.annotate.colour = cli_colour(STDOUT_FILENO);
	options.annotate.tell = tell;
	options.annotate.data = &options;
	status = view_open(options.recording, &options.view, &db, &profile);
	if (status == EXIT_OK) {
		options.annotate.recorded_ns = profile->run.started_ns;
		status = print(profile, &options);
	}
	view_done(&options.view);
	glob_list_done(&options.what);
	glob_list_done(&options.roots);
	return status;
}

const struct verb verb_annotate = {
	.name = "annotate",
	.summary = "print sources with the time spent on each line",
	.argp = &argp,
	.pages = true,
	.run = run_annotate,
};
