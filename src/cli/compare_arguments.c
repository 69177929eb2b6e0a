/* SPDX-License-Identifier: MIT */
/* compare_arguments.c - the recordings of two sides, read and compared; see compare_arguments.h. */
#include "src/cli/compare_arguments.h"

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/fleet_source.h"

enum { MAX_WHY = 256 };

static const char *const per_names[] = {
	[PER_RUN] = "run", [PER_WALL] = "wall", [PER_SAMPLES] = "samples", [PER_REST] = "rest"
};

void compare_arguments_init(struct compare_arguments *arguments)
{
	*arguments = (struct compare_arguments){ .options.min_share = 0.01 };
}

void compare_arguments_done(struct compare_arguments *arguments)
{
	for (int side = 0; side < N_SIDES; side++)
		glob_list_done(&arguments->files[side]);
	view_done(&arguments->view);
}

static void parse_per(const char *argument, struct compare_options *options)
{
	for (unsigned i = 0; i < N_ELEMENTS(per_names); i++) {
		if (strcmp(argument, per_names[i]) != 0)
			continue;
		options->per = (enum compare_per)i;
		return;
	}
	options->per = PER_COUNTER;
	options->counter = argument;
}

static void parse_time(struct argp_state *state, const char *option, const char *argument, struct view_time *ret)
{
	if (view_time_parse(argument, ret) < 0)
		argp_error(state, "%s needs a time such as 12.5, 90s, 2m or 14:05, not %s", option, argument);
}

error_t compare_arguments_parse(int key, char *argument, struct argp_state *state, struct compare_arguments *arguments)
{
	switch (key) {
	case KEY_COMPARE_PER:
		parse_per(argument, &arguments->options);
		return 0;
	case KEY_COMPARE_MIN_SHARE:
		arguments->options.min_share = cli_parse_number(state, argument, "--min-change-share", 0, 100) / 100;
		return 0;
	case KEY_COMPARE_BASE_SINCE:
		parse_time(state, "--base-since", argument, &arguments->base_since);
		return 0;
	case KEY_COMPARE_BASE_UNTIL:
		parse_time(state, "--base-until", argument, &arguments->base_until);
		return 0;
	case KEY_CHMOD:
		arguments->mode = cli_parse_mode(state, argument);
		return 0;
	default:
		return view_parse(key, argument, state, &arguments->view);
	}
}

/* ---- Files ---- */

/* Keep a pattern without matches, so that the error message names it. */
static void add_glob(struct glob_list *files, const char *pattern, struct argp_state *state)
{
	glob_t found = { 0 };

	if (access(pattern, F_OK) != 0 && glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			cli_parse_name(state, found.gl_pathv[i], files);
	else
		cli_parse_name(state, pattern, files);
	globfree(&found);
}

void compare_arguments_add(struct compare_arguments *arguments, enum side side, const char *argument,
			   struct argp_state *state)
{
	CLEANUP(glob_list_done) struct glob_list parts = { 0 };

	if (access(argument, F_OK) == 0 || fleet_source_is_one(argument)) {
		cli_parse_name(state, argument, &arguments->files[side]);
		return;
	}
	if (glob_list_add_list(&parts, argument) < 0)
		argp_error(state, "%s is not a list of recordings", argument);
	for (size_t i = 0; i < parts.n; i++)
		add_glob(&arguments->files[side], parts.words[i], state);
}

/* ---- Read ---- */

int compare_arguments_fail(const char *path, int error, const char *why)
{
	if (error == -EDOM)
		return cli_fail(EXIT_BAD_DATA, "%s cannot be compared: %s", path, why);
	if (error == -EBADMSG)
		return cli_fail(EXIT_BAD_DATA, "%s is damaged; run 'probing info --check' for details", path);
	return cli_fail(cli_status(error), "%s cannot be compared: %s", path, strerror(-error));
}

static int add_recording(struct compare_arguments *arguments, enum side side, const char *path, struct compare *compare)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(profile_freep) struct profile *profile = NULL;
	struct view_time since = arguments->view.since, until = arguments->view.until;
	bool has_window = arguments->base_since.type != VIEW_TIME_NONE || arguments->base_until.type != VIEW_TIME_NONE;
	char why[MAX_WHY];
	int status, r;

	if (side == SIDE_BASE && has_window) {
		arguments->view.since = arguments->base_since;
		arguments->view.until = arguments->base_until;
	}
	status = view_open(path, &arguments->view, &db, &profile);
	arguments->view.since = since;
	arguments->view.until = until;
	if (status != EXIT_OK)
		return status;
	r = compare_add(compare, side, path, db, profile, why);
	return r < 0 ? compare_arguments_fail(path, r, why) : EXIT_OK;
}

int compare_arguments_compute(struct compare *compare)
{
	int r = compare_compute(compare);

	if (r == -EDOM)
		return cli_fail(EXIT_BAD_DATA,
				"a recording has no duration, because its recorder was killed: use --normalize run or "
				"samples");
	if (r == -E2BIG)
		return cli_fail(EXIT_USAGE, "more than 1000 runs are too many to compare");
	return r < 0 ? cli_fail(EXIT_FAILED, "comparing failed: %s", strerror(-r)) : EXIT_OK;
}

int compare_arguments_run(struct compare_arguments *arguments, struct compare **ret)
{
	CLEANUP(compare_freep) struct compare *compare = NULL;
	int status = EXIT_OK;

	arguments->options.show_interpreter = arguments->view.show_interpreter;
	if (compare_new(&arguments->options, &compare) < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	for (int side = 0; side < N_SIDES && status == EXIT_OK; side++)
		for (size_t i = 0; i < arguments->files[side].n && status == EXIT_OK; i++)
			status = add_recording(arguments, (enum side)side, arguments->files[side].words[i], compare);
	if (status == EXIT_OK)
		status = compare_arguments_compute(compare);
	if (status == EXIT_OK)
		*ret = TAKE(compare);
	return status;
}

static int fail_write(const void *data, int error)
{
	(void)data;
	return cli_fail(EXIT_FAILED, "writing the comparison failed: %s", strerror(-error));
}

int compare_arguments_write(const struct compare_arguments *arguments, const char *path, output_put *put,
			    const void *data)
{
	return output_write(path, arguments->mode, put, fail_write, data);
}
