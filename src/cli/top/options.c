/* SPDX-License-Identifier: MIT */
/* options.c - the options of probing top. */
#include "src/cli/top/top.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/fleet_source.h"
#include "src/cli/new_file_options.h"
#include "src/cli/record/record.h"

enum { MAX_HZ = 20000, MAX_FRAMES = 1 << 30, MAX_ROWS = 10000 };
enum {
	KEY_ONCE = 0x300,
	KEY_SOURCE,
	KEY_NO_KERNEL,
	KEY_NO_NATIVE,
	KEY_INTERPRETER,
	KEY_FILTER,
	KEY_ROWS,
	KEY_EXIT,
	KEY_OUTPUT,
	KEY_ASYNC,
	KEY_BY,
	KEY_SORT,
	KEY_DELAY
};

/* clang-format off */
static const struct argp_option option_list[] = {
	{ "pid", 'p', "PID", 0, "Sample this process and the children it starts from now on", 0 },
	{ "delay", KEY_DELAY, "TIME", 0, "Refresh every TIME (default: 1s)", 0 },
	{ "frequency", 'F', "HZ", 0, "Samples per second of CPU time, per thread (default: 99)", 0 },
	{ "rate", 'r', "HZ", 0, "The same as --frequency", 0 },
	{ "by", KEY_BY, "WHAT", 0, "Start with this view: function (default), line, module, thread, tree", 0 },
	{ "subprocesses", 's', NULL, 0, "Include descendants that are already running", 0 },
	{ "sort", KEY_SORT, "KEY", 0, "Sort by self (default), total or name", 0 },
	{ "window", 'w', "TIME", 0, "Show the last TIME, up to 300s; 0: everything since the start (default: 5s; of a fleet 60s)", 0 },
	{ "filter", KEY_FILTER, "TEXT", 0, "Show only names and files that contain TEXT", 0 },
	{ "no-native", KEY_NO_NATIVE, NULL, 0, "Hide native and kernel frames", 0 },
	{ "interpreter-frames", KEY_INTERPRETER, NULL, 0, "Show internal frames of the interpreter", 0 },
	{ "no-kernel", KEY_NO_KERNEL, NULL, 0, "Exclude time in the kernel", 0 },
	{ "source", KEY_SOURCE, "NAME", 0,
	  "Read Python frames by bpf, wakeup, poll, agent, or auto (default); see probing record", 0 },
	{ "async", KEY_ASYNC, NULL, 0, "Add asyncio tasks to the stacks", 0 },
	{ "output", KEY_OUTPUT, "FILE", 0, "Write the command's output to FILE (default: discard it)", 0 },
	CHMOD_OPTION_ROW,
	{ "exit", KEY_EXIT, NULL, 0, "Exit when the process ends (default: stay until q)", 0 },
	{ "batch", 'b', NULL, 0, "Print plain text screens, for scripts and logs, until the process ends", 0 },
	{ "iterations", 'n', "N", 0, "Exit after N refreshes", 0 },
	{ "once", KEY_ONCE, NULL, 0, "Print one screen: --batch --iterations 1", 0 },
	{ "rows", KEY_ROWS, "N", 0, "Print N rows per screen (default: 20)", 0 },
	{ NULL, 0, NULL, 0, "Of a fleet (clickhouse://...):", 1 },
	{ "job", KEY_VIEW_JOB, "NAME", 0, "This job (default: the only one)", 1 },
	{ "host", KEY_VIEW_HOST, "LIST", 0, "Only these hosts; globs", 1 },
	{ "rank", KEY_VIEW_RANK, "LIST", 0, "Only these ranks, as 0,8-15", 1 },
	{ "where", KEY_VIEW_WHERE, "CONDITION", 0, "Only samples that match this, as 'gil = 1'", 1 },
	{ "partial", KEY_VIEW_PARTIAL, NULL, 0, "Show the others if a server does not answer", 1 },
	{ 0 },
};
/* clang-format on */

static unsigned parse_count(struct argp_state *state, const char *text, const char *what, unsigned high)
{
	double value = cli_parse_number(state, text, what, 1, high);

	if (value != (double)(unsigned)value)
		argp_error(state, "%s must be a whole number, not %s", what, text);
	return (unsigned)value;
}

static void take_word(struct argp_state *state, struct top_arguments *arguments, char *word)
{
	if (arguments->pid || arguments->address)
		argp_error(state, "one process at a time: %s? A command comes after --", word);
	if (fleet_source_is_one(word)) {
		arguments->address = word;
		return;
	}
	arguments->pid = (pid_t)cli_parse_number(state, word, "the process id", 1, 1 << 22);
}

/* The words after "--" are a command. */
static bool is_command(const struct argp_state *state)
{
	return state->quoted > 0 && state->next > state->quoted;
}

static void check(struct argp_state *state, const struct top_arguments *arguments)
{
	const struct view *view = &arguments->view;

	if ((arguments->command != NULL) + (arguments->pid != 0) + (arguments->address != NULL) > 1)
		argp_error(state, "give either a PID, a command or a fleet, not both");
	if (!arguments->command && !arguments->pid && !arguments->address)
		argp_error(state, "of which process? Give its PID, or -- COMMAND");
	if (!arguments->address && (view->job || view->ranks || view->hosts.n > 0 || view->where || view->partial))
		argp_error(state, "--job, --host, --rank, --where and --partial are for a fleet, "
				  "clickhouse://USER@HOST/DATABASE");
	if (arguments->output && !arguments->command)
		argp_error(state, "--output is for a command that top starts");
}

static int parse_show(int key, char *argument, struct argp_state *state, struct top_arguments *arguments)
{
	switch (key) {
	case KEY_BY:
		arguments->top.view = cli_parse_word(state, argument, "--by", top_view_names, TOP_N_VIEWS);
		return 0;
	case KEY_SORT:
		arguments->top.sort = cli_parse_word(state, argument, "--sort", top_sort_names, TOP_N_SORTS);
		return 0;
	case 'w':
		arguments->top.window_s = cli_parse_duration(state, argument, "the window", 0, TOP_MAX_WINDOW_S);
		arguments->has_window = true;
		return 0;
	case KEY_FILTER:
		arguments->top.filter = argument;
		return 0;
	case KEY_NO_NATIVE:
		arguments->top.hide_native = true;
		return 0;
	case KEY_INTERPRETER:
		arguments->top.show_interpreter = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int parse_run(int key, char *argument, struct argp_state *state, struct top_arguments *arguments)
{
	switch (key) {
	case KEY_DELAY:
		arguments->delay_s = cli_parse_duration(state, argument, "the delay", 0.1, 3600);
		return 0;
	case 'n':
		arguments->n_frames = parse_count(state, argument, "--iterations", MAX_FRAMES);
		return 0;
	case 'b':
		arguments->batch = true;
		return 0;
	case KEY_ONCE:
		arguments->batch = true;
		arguments->n_frames = 1;
		return 0;
	case KEY_ROWS:
		arguments->n_rows = parse_count(state, argument, "--rows", MAX_ROWS);
		return 0;
	case KEY_EXIT:
		arguments->exit = true;
		return 0;
	case KEY_CHMOD:
		arguments->mode = cli_parse_mode(state, argument);
		return 0;
	case KEY_OUTPUT:
		arguments->output = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int parse_capture(int key, char *argument, struct argp_state *state, struct top_arguments *arguments)
{
	enum { N_SOURCES = SOURCE_N };

	switch (key) {
	case 'p':
		arguments->pid = (pid_t)cli_parse_number(state, argument, "the process id", 1, 1 << 22);
		return 0;
	case 'F':
	case 'r':
		arguments->capture.hz = cli_parse_number(state, argument, "the frequency", 0.1, MAX_HZ);
		return 0;
	case KEY_SOURCE:
		arguments->capture.source = cli_parse_word(state, argument, "--source", record_source_names, N_SOURCES);
		return 0;
	case 's':
		arguments->subprocesses = true;
		return 0;
	case KEY_NO_KERNEL:
		arguments->capture.no_kernel = true;
		return 0;
	case KEY_ASYNC:
		arguments->async = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct top_arguments *arguments = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (is_command(state))
			return ARGP_ERR_UNKNOWN; /* leave it and the rest to ARGP_KEY_ARGS */
		take_word(state, arguments, argument);
		return 0;
	case ARGP_KEY_ARGS:
		arguments->command = state->argv + state->next;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		check(state, arguments);
		return 0;
	default:
		break;
	}
	if (parse_show(key, argument, state, arguments) == 0 || parse_run(key, argument, state, arguments) == 0)
		return 0;
	if (key >= KEY_VIEW_PID && key <= KEY_VIEW_PARTIAL)
		return view_parse(key, argument, state, &arguments->view);
	return parse_capture(key, argument, state, arguments);
}

/* clang-format off */
const struct argp top_argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "PID\n-- COMMAND [ARGUMENT...]\nclickhouse://USER@HOST/DATABASE",
	.doc = "Show live where a running Python program spends its time. The views have self and total time of "
	       "functions, lines, modules and threads, or the tree of calls. It never stops, writes to or signals the "
	       "program, and leaves no file behind. Of a fleet it shows the last samples that its hosts have sent "
	       "(docs/fleet.md). Press ? for the keys.\v"
	       "Examples:\n"
	       "  probing top 4242\n"
	       "  probing top 4242 --by tree --window 0 -F 499\n"
	       "  probing top -- python3 train.py --epochs 1\n"
	       "  probing top 4242 --once --no-native\n"
	       "  probing top 4242 -b --delay 10 >> top.log\n"
	       "  probing top 'clickhouse://reader@ch/prod?job=llm-7' --rank 0-7\n"
	       "\n"
	       "NO_COLOR=1 turns colours off; COLUMNS sets the width of printed screens. To keep the samples, use "
	       "probing record.",
};
/* clang-format on */
