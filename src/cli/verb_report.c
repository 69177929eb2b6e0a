/* verb_report.c - the top functions of a recording as text. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/view.h"
#include "src/report/report.h"
#include "src/store/store.h"

enum { OPTION_TOTAL = 0x200, MAX_ROWS = 1000000 };

struct options {
	const char *recording;
	struct view view;
	struct report_options report;
};

static const struct argp_option option_list[] = {
	{ "rows", 'n', "ROWS", 0, "Show so many functions (default: 20)", 0 },
	{ "total", OPTION_TOTAL, NULL, 0, "Sort by total time (default: self time)", 0 },
	VIEW_OPTION_ROWS,
	{ 0 },
};

static unsigned parse_rows(const char *argument, struct argp_state *state)
{
	char *end;
	long rows;

	errno = 0;
	rows = strtol(argument, &end, 10);
	if (errno != 0 || end == argument || *end != '\0' || rows < 1 || rows > MAX_ROWS)
		argp_error(state, "-n wants a number from 1 to %d, not %s", MAX_ROWS, argument);
	return (unsigned)rows;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'n':
		options->report.max_rows = parse_rows(argument, state);
		return 0;
	case OPTION_TOTAL:
		options->report.by_total = true;
		return 0;
	case ARGP_KEY_ARG:
		if (options->recording)
			argp_error(state, "one recording at a time: %s?", argument);
		options->recording = argument;
		return 0;
	default:
		return view_parse(key, argument, state, &options->view);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE]",
	.doc = "Print the functions of a recording (default: probing.db) that took most time. "
	       "Self is time in the function itself, total includes what it called.\v"
	       "Examples:\n"
	       "  probing report\n"
	       "  probing report train.db -n 50 --total\n"
	       "  probing report --function Trainer.step --threads='loader-*'\n",
};

static int print(const struct profile *profile, const struct options *options)
{
	CLEANUP(output_abandon) struct output output;
	int r;

	r = output_open(&output, "-");
	if (r < 0)
		return cli_fail_open("-", r);
	r = report_functions(profile, &options->report, output.file);
	if (output.error < 0)
		return cli_fail_write("-", output.error);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "making the report failed: %s", strerror(-r));
	r = output_finish(&output);
	return r < 0 ? cli_fail_write("-", r) : EXIT_OK;
}

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)

static int run_report(int argc, char **argv)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(profile_freep) struct profile *profile = NULL;
	struct options options = { 0 };
	struct held_time held;
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	options.report.show_interpreter = options.view.show_interpreter;
	options.report.columns = cli_columns(STDOUT_FILENO);
	options.report.colour = cli_colour(STDOUT_FILENO);
	status = view_open(options.recording, &options.view, &db, &profile);
	if (status == EXIT_OK && view_held(&options.view, db, &held))
		options.report.held = &held;
	if (status == EXIT_OK)
		status = print(profile, &options);
	view_done(&options.view);
	return status;
}

const struct verb verb_report = {
	.name = "report",
	.summary = "print the functions that took most time",
	.run = run_report,
};
