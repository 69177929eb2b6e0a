/* SPDX-License-Identifier: MIT */
/* verb_report.c - the time of a recording, as text or JSON. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/endpoint.h"
#include "src/cli/report/report.h"
#include "src/cli/view.h"
#include "src/profile/profile.h"
#include "src/report/report.h"
#include "src/store/store.h"

enum {
	OPTION_TOTAL = 0x200,
	OPTION_BY,
	OPTION_CALLERS,
	OPTION_CALLEES,
	OPTION_JSON,
	OPTION_TIMELINE,
	OPTION_ASCII,
	MAX_ROWS = 1000000
};

struct options {
	const char *recording;
	struct view view;
	struct report_options report;
	struct glob_list callers, callees;
	bool timeline, is_ascii;
};

static const struct argp_option option_list[] = {
	{ "rows", 'n', "ROWS", 0, "Show ROWS rows (default: 20)", 0 },
	{ "limit", 'n', NULL, OPTION_ALIAS, NULL, 0 },
	{ "by", OPTION_BY, "WHAT", 0,
	  "Group by function, line, module, thread, process, wait, rank, or by the program's own step, span or phase (default: function); "
	  "torch: the tree of torch's modules instead, from rows of torch_trace",
	  0 },
	{ "callers", OPTION_CALLERS, "NAME", 0, "Show the callers of this function; a glob (repeatable)", 0 },
	{ "callees", OPTION_CALLEES, "NAME", 0, "Show the callees of this function; a glob (repeatable)", 0 },
	{ "json", OPTION_JSON, NULL, 0, "Write one JSON object", 0 },
	{ "total", OPTION_TOTAL, NULL, 0, "Sort by total time (default: self time)", 0 },
	{ "timeline", OPTION_TIMELINE, NULL, 0,
	  "Draw the metrics over time instead: CPU, memory, I/O, GPUs, of --pid, from --since to --until", 0 },
	{ "ascii", OPTION_ASCII, NULL, 0, "With --timeline: ASCII characters only", 0 },
	VIEW_LIVE_ROW,
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
		argp_error(state, "-n needs a number from 1 to %d, not %s", MAX_ROWS, argument);
	return (unsigned)rows;
}

/* Whether an option of the view selects threads or stacks. */
static bool selects_stacks(const struct view *view)
{
	return view->where || view->processes.n > 0 || view->threads.n > 0 || view->functions.n > 0 ||
	       view->focus.n > 0 || view->modules.n > 0 || view->ignore.n > 0 || view->gil;
}

/* Metrics belong to processes, not to stacks. */
static void check_timeline(struct argp_state *state, const struct options *options)
{
	const struct view *view = &options->view;

	if (options->report.json || options->callers.n > 0 || options->callees.n > 0 || options->report.by_total ||
	    options->report.by != REPORT_BY_FUNCTION)
		argp_error(state, "--timeline draws metrics only: drop --json, --by, --total, --callers and --callees "
				  "(probing sql prints the numbers)");
	if (selects_stacks(view))
		argp_error(state, "--timeline shows whole processes: filter by --pid, --since and --until only");
	if (options->recording && endpoint_is_process(options->recording))
		argp_error(
			state,
			"--timeline needs a recording: probing record --metrics-only --pid %s -d 60, then probing report "
			"--timeline",
			options->recording);
}

/* Rows of torch_trace belong to modules, not to samples. */
static void check_torch(struct argp_state *state, const struct options *options)
{
	const struct view *view = &options->view;
	bool is_process = options->recording && endpoint_is_process(options->recording);

	if (selects_stacks(view))
		argp_error(state, "--by torch shows modules, not samples: filter by --pid, --since and --until only");
	if (is_process &&
	    (view->live_s > 0 || view->since.type != VIEW_TIME_NONE || view->until.type != VIEW_TIME_NONE))
		argp_error(state, "--by torch shows the current rows of process %s: drop -d, --since and --until",
			   options->recording);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'n':
		options->report.max_rows = parse_rows(argument, state);
		return 0;
	case OPTION_BY:
		options->report.by = cli_parse_word(state, argument, "--by", report_by_names, REPORT_N_BY);
		options->view.label = options->report.by >= REPORT_BY_STEP && options->report.by <= REPORT_BY_RANK
					      ? report_by_names[options->report.by]
					      : NULL;
		return 0;
	case OPTION_CALLERS:
		cli_parse_name(state, argument, &options->callers);
		return 0;
	case OPTION_CALLEES:
		cli_parse_name(state, argument, &options->callees);
		return 0;
	case OPTION_JSON:
		options->report.json = true;
		return 0;
	case OPTION_TOTAL:
		options->report.by_total = true;
		return 0;
	case OPTION_TIMELINE:
		options->timeline = true;
		return 0;
	case OPTION_ASCII:
		options->is_ascii = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_parse_recording(state, argument, &options->recording);
		return 0;
	case ARGP_KEY_END:
		view_end(state, &options->view, &options->recording);
		if (options->callers.n > 0 && options->callees.n > 0)
			argp_error(state, "give either --callers or --callees");
		if ((options->callers.n > 0 || options->callees.n > 0) && options->report.by != REPORT_BY_FUNCTION)
			argp_error(state, "--callers and --callees group by function: omit --by");
		if (options->timeline)
			check_timeline(state, options);
		if (options->report.by == REPORT_BY_TORCH)
			check_torch(state, options);
		return 0;
	default:
		return view_parse(key, argument, state, &options->view);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE|PID]",
	.doc = "Print the functions, lines, modules, threads, processes or waits with the most time in a recording "
	       "(default: probing.db), or record PID and print them. Self time is spent in a function itself, total "
	       "time includes its callees.\v"
	       "Examples:\n"
	       "  probing report\n"
	       "  probing report 4242 -d 10\n"
	       "  probing report train.db -n 50 --total\n"
	       "  probing report --by line train.db\n"
	       "  probing report --callers '*.forward'\n"
	       "  probing report --by thread --json\n"
	       "  probing report --by wait\n"
	       "  probing report --by step -n 5\n"
	       "  probing report --by torch 4242\n"
	       "  probing report --timeline --since 14:05 --until 14:10\n"
	       "  probing report --function Trainer.step --threads='loader-*'\n",
};

static const char *file_of(const struct options *options)
{
	const char *recording = options->recording ?: cli_default_recording();

	return endpoint_is_process(recording) ? NULL : recording;
}

struct writing {
	const struct profile *profile;
	const struct options *options;
	const char *recording; /* NULL: a process was recorded for this alone */
};

static int write_report(const void *data, FILE *out)
{
	const struct writing *writing = data;
	const struct options *options = writing->options;
	int r;

	if (options->callers.n > 0)
		return report_neighbours(writing->profile, &options->callers, true, &options->report, out);
	if (options->callees.n > 0)
		return report_neighbours(writing->profile, &options->callees, false, &options->report, out);
	r = report_print(writing->profile, &options->report, out);
	if (r >= 0 && !options->report.json)
		nameless_print(writing->profile, &options->report, writing->recording, out);
	return r;
}

static int fail_report(const void *data, int error)
{
	const struct writing *writing = data;

	if (error == -ENODATA)
		return cli_fail(EXIT_NO_INPUT, "no function in %s has this name; probing report -n 1000 lists them",
				writing->options->recording ?: cli_default_recording());
	return cli_fail(EXIT_FAILED, "cannot write the report: %s", strerror(-error));
}

/* GPU activity and collectives describe the whole recording, so a filtered report does not show them. */
static int add_sections(const struct view *view, sqlite3 *db, struct report_options *options, struct report_gpu *gpu,
			struct report_collectives *collectives)
{
	CLEANUP(freep) char *parts = view_parts(view, db);
	int r;

	if (!db || !parts || parts[0])
		return EXIT_OK;
	r = gpu_summary(db, gpu);
	if (r < 0)
		return cli_fail(cli_status(r), "cannot read the GPU tables: %s", strerror(-r));
	options->gpu = r > 0 ? gpu : NULL;
	r = collectives_summary(db, collectives);
	if (r < 0)
		return cli_fail(cli_status(r), "cannot read the tables of Flight Recorders: %s", strerror(-r));
	options->collectives = r > 0 ? collectives : NULL;
	return EXIT_OK;
}

static int run_report(int argc, char **argv)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(profile_freep) struct profile *profile = NULL;
	CLEANUP(report_gpu_done) struct report_gpu gpu = { 0 };
	CLEANUP(report_collectives_done) struct report_collectives collectives = { 0 };
	struct options options = { 0 };
	struct held_time held;
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	options.report.show_interpreter = options.view.show_interpreter;
	options.report.columns = cli_columns(STDOUT_FILENO);
	options.report.colour = cli_colour(STDOUT_FILENO);
	if (options.timeline) {
		status = timeline_print(options.recording, &options.view, options.is_ascii);
		view_done(&options.view);
		return status;
	}
	if (options.report.by == REPORT_BY_TORCH) {
		status = torch_modules_print(options.recording, &options.view, &options.report);
		view_done(&options.view);
		return status;
	}
	options.view.with_lines = options.report.by == REPORT_BY_LINE;
	status = view_open(options.recording, &options.view, &db, &profile);
	if (status == EXIT_OK && view_held(&options.view, db, &held))
		options.report.held = &held;
	if (status == EXIT_OK)
		status = add_sections(&options.view, db, &options.report, &gpu, &collectives);
	if (status == EXIT_OK)
		options.report.lost = cli_counter(db, "lost");
	if (status == EXIT_OK)
		status = output_write("-", 0, write_report, fail_report,
				      &(struct writing){ profile, &options, file_of(&options) });
	if (status == EXIT_OK && options.report.by == REPORT_BY_MODULE && torch_modules_are_there(db))
		cli_say("--by torch shows the modules of torch\n");
	view_done(&options.view);
	glob_list_done(&options.callers);
	glob_list_done(&options.callees);
	return status;
}

const struct verb verb_report = {
	.name = "report",
	.summary = "print the functions with the most time",
	.argp = &argp,
	.pages = true,
	.run = run_report,
};
