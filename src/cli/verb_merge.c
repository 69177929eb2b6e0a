/* SPDX-License-Identifier: MIT */
/* verb_merge.c - one recording out of several. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "base/glob_list.h"
#include "src/cli/cli.h"
#include "src/cli/format.h"
#include "src/cli/new_file_options.h"
#include "src/cli/inputs.h"
#include "src/cli/progress.h"

struct options {
	struct glob_list paths;
	struct new_file_options place;
};

static const struct argp_option option_list[] = {
	NEW_FILE_OPTION_ROWS("Write to OUT (required)"),
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		cli_parse_name(state, argument, &options->paths);
		return 0;
	case ARGP_KEY_END:
		if (options->paths.n < 2)
			argp_error(state, "name the recordings that become one, two at least");
		if (!options->place.out)
			argp_error(state, "output missing: give -o OUT");
		return 0;
	default:
		return new_file_parse(key, argument, state, &options->place);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "FILE FILE...",
	.doc = "Merge recordings of ranks, hosts or successive runs into one. Equal functions and stacks become one, "
	       "samples are ordered by time, and the table run has a row per recording.\vExamples:\n  probing merge "
	       "rank0.db rank1.db -o all.db\n  probing flamegraph all.db --by-thread\n\nEqual PIDs of different "
	       "recordings stay apart: the later one is 10,000,000 larger; the table run_process has the original "
	       "PIDs. Recordings of different modes or events are refused. Exit status: 65 not a sound recording, or "
	       "they do not go together; 66 no such file; 73 OUT cannot be created; 74 the disk is full.",
};

static bool show(void *data, const struct copy_progress *progress)
{
	return progress_show(data, progress->what, progress->n_done, progress->n_all);
}

static void print_result(const char *out, const struct copy_result *result)
{
	char samples[32];

	format_count(result->n_samples, samples);
	cli_say("probing: wrote %s: %s samples of %" PRIu64 " run%s\n", out, samples, result->n_runs,
		result->n_runs == 1 ? "" : "s");
	if (result->n_moved > 0)
		cli_say("%" PRIu64
			" process%s got another number, since there was one of that number already: see table "
			"run_process\n",
			result->n_moved, result->n_moved == 1 ? "" : "es");
}

static int merge(const struct options *options, const struct inputs *sources)
{
	CLEANUP(new_file_abandon) struct new_file file = { 0 };
	struct progress progress;
	struct copy_options wanted = { .keep_going = show, .data = &progress };
	struct copy_result result;
	int r;

	r = new_file_reserve(&file, options->place.out, options->place.force, options->place.mode);
	if (r < 0)
		return inputs_fail_place(options->place.out, r);
	progress_begin(&progress, options->place.quiet);
	r = copy_recordings(sources->dbs, sources->n, file.path, &wanted, &result);
	if (r < 0)
		return progress_end(&progress, inputs_fail(sources, options->place.out, r, &result));
	progress_end(&progress, EXIT_OK);
	r = new_file_finish(&file);
	if (r < 0)
		return inputs_fail_place(options->place.out, r);
	if (!options->place.quiet)
		print_result(options->place.out, &result);
	return EXIT_OK;
}

static int run_merge(int argc, char **argv)
{
	CLEANUP(inputs_done) struct inputs sources = { 0 };
	struct options options = { 0 };
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	status = inputs_open((const char *const *)options.paths.words, options.paths.n, &sources);
	if (status == EXIT_OK)
		status = merge(&options, &sources);
	glob_list_done(&options.paths);
	return status;
}

const struct verb verb_merge = {
	.name = "merge",
	.summary = "merge recordings into one",
	.argp = &argp,
	.run = run_merge,
};
