/* SPDX-License-Identifier: MIT */
/* verb_compact.c - rewrites a recording in its smallest form.
 *
 * The new file replaces the old one in one step, after it has reached the disk; until then the old one is
 * unchanged and locked.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/format.h"
#include "src/cli/new_file_options.h"
#include "src/cli/inputs.h"
#include "src/cli/progress.h"
#include "src/store/store.h"

enum { MAX_SENTENCE = 512 };

struct options {
	const char *recording;
	struct new_file_options place; /* out NULL: replace the recording */
};

static const struct argp_option option_list[] = {
	NEW_FILE_OPTION_ROWS("Write to OUT and keep FILE (default: replace FILE)"),
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (options->recording)
			argp_error(state,
				   "unexpected argument %s: compact takes one recording (probing merge combines "
				   "several)",
				   argument);
		options->recording = argument;
		return 0;
	default:
		return new_file_parse(key, argument, state, &options->place);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE]",
	.doc = "Rewrite a recording (default: probing.db) in the current schema, without free space, duplicate stacks "
	       "and unreferenced rows. No sample is lost.\vExamples:\n  probing compact train.db\n  probing compact "
	       "train.db -o small.db\n\nThe old file stays until the new one is complete. A file that is still being "
	       "recorded is refused, unless -o names the copy; the copy then holds what was written when it began. "
	       "Exit status: 65 not a sound recording; 66 no such file; 73 it is being recorded, or OUT cannot be "
	       "created; 74 the disk is full.",
};

static int64_t bytes_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : st.st_size;
}

static bool show(void *data, const struct copy_progress *progress)
{
	return progress_show(data, progress->what, progress->n_done, progress->n_all);
}

static void print_sizes(const char *path, int64_t before, int64_t after)
{
	char was[16], is[16];

	format_bytes((uint64_t)before, was);
	format_bytes((uint64_t)after, is);
	cli_say("probing: %s: %s (%jd bytes) before, %s (%jd bytes) now\n", path, was, (intmax_t)before, is,
		(intmax_t)after);
}

/* Rewrite a recording into a new file, which then replaces it. @old: lock on the replaced file; NULL: none. */
static int rewrite(const struct options *options, const struct inputs *sources, const char *out, struct store *old)
{
	CLEANUP(new_file_abandon) struct new_file file = { 0 };
	struct progress progress;
	struct copy_options wanted = { .keep_all = true, .keep_going = show, .data = &progress };
	struct copy_result result;
	int64_t before = bytes_of(sources->paths[0]);
	int r;

	progress_begin(&progress, options->place.quiet);
	r = new_file_reserve(&file, out, old || options->place.force, options->place.mode);
	if (r < 0)
		return inputs_fail_place(out, r);
	r = copy_recordings(sources->dbs, 1, file.path, &wanted, &result);
	if (r < 0)
		return progress_end(&progress, inputs_fail(sources, out, r, &result));
	progress_end(&progress, EXIT_OK);
	if (old) /* checkpoint its log first */
		r = store_checkpoint(old);
	if (r >= 0)
		r = new_file_finish(&file);
	if (r == -EBUSY && old)
		return cli_fail(EXIT_NO_OUTPUT,
				"%s is being read by another program: try again later, or write to another file "
				"with -o OUT",
				out);
	if (r < 0)
		return inputs_fail_place(out, r);
	if (!options->place.quiet)
		print_sizes(out, before, bytes_of(out));
	return EXIT_OK;
}

static int fail_open(int error, const char *path)
{
	char sentence[MAX_SENTENCE];

	if (error == -EBUSY)
		return cli_fail(EXIT_NO_OUTPUT,
				"%s is being recorded or changed: wait until that ends, or copy its current state with "
				"-o OUT",
				path);
	if (error == -EACCES || error == -EROFS || error == -EPERM)
		return cli_fail(EXIT_NO_OUTPUT, "%s cannot be changed: %s; name another file with -o OUT", path,
				strerror(-error));
	store_explain(error, path, sentence, sizeof sentence);
	return cli_fail(cli_status(error), "%s", sentence);
}

static int compact_in_place(const struct options *options, const char *path)
{
	CLEANUP(store_closep) struct store *store = NULL;
	sqlite3 *db;
	struct inputs sources = { .paths = &path, .dbs = &db, .n = 1 };
	int r;

	r = store_open(path, &store);
	if (r < 0)
		return fail_open(r, path);
	db = store_connection(store);
	return rewrite(options, &sources, path, store);
}

static int compact_elsewhere(const struct options *options, const char *path)
{
	CLEANUP(inputs_done) struct inputs sources;
	int status;

	status = inputs_open(&path, 1, &sources);
	return status != EXIT_OK ? status : rewrite(options, &sources, options->place.out, NULL);
}

static int run_compact(int argc, char **argv)
{
	struct options options = { 0 };
	const char *path;

	cli_parse(&argp, argc, argv, 0, &options);
	path = options.recording ? options.recording : cli_default_recording();
	return options.place.out ? compact_elsewhere(&options, path) : compact_in_place(&options, path);
}

const struct verb verb_compact = {
	.name = "compact",
	.summary = "rewrite a recording as small as possible",
	.argp = &argp,
	.run = run_compact,
};
