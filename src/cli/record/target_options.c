/* SPDX-License-Identifier: MIT */
/* target_options.c - see target_options.h. */
#include "src/cli/record/target_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/backtrace_format.h"
#include "src/cli/cli.h"
#include "src/cli/record/record.h"

enum { MAX_PID = 1 << 22 }; /* proc_sys_kernel(5), pid_max */

static void check_memory(struct argp_state *state, int r)
{
	if (r == -ENOMEM)
		argp_failure(state, 1, 0, "not enough memory");
}

static void add_pids(struct argp_state *state, const char *list, struct target_options *targets)
{
	CLEANUP(glob_list_done) struct glob_list words = { 0 };
	int r;

	r = glob_list_add_list(&words, list);
	check_memory(state, r);
	if (r < 0)
		argp_error(state, "the process id must be a number from 1 to %d, not %s", MAX_PID, list);
	for (size_t i = 0; i < words.n; i++) {
		pid_t pid = cli_parse_id(state, words.words[i], "process");

		check_memory(state,
			     grow(&targets->pids, targets->n_pids, &targets->pids_allocated, sizeof *targets->pids));
		targets->pids[targets->n_pids++] = pid;
	}
}

/* Record the thread's process, and filter out its other threads. */
static void add_threads(struct argp_state *state, const char *list, struct record_options *options)
{
	struct glob_list *threads = &options->pipeline.filter.threads;
	size_t first = threads->n;

	cli_parse_list(state, list, "--tid needs a thread's id", threads);
	for (size_t i = first; i < threads->n; i++) {
		pid_t tid = cli_parse_id(state, threads->words[i], "thread"), pid = backtrace_process_of(tid);
		char text[16];

		if (pid == 0)
			argp_failure(state, EXIT_NO_INPUT, 0, "there is no thread %d", (int)tid);
		snprintf(text, sizeof text, "%d", (int)pid);
		add_pids(state, text, &options->targets);
	}
}

/* The list may be the next word, as for other options, unless that begins with a dash. */
static void parse_threads(struct argp_state *state, const char *list, struct record_options *options)
{
	if (!list && state->next < state->argc && state->argv[state->next][0] != '-')
		list = state->argv[state->next++];
	if (list)
		cli_parse_list(state, list, "--threads needs a name", &options->pipeline.filter.threads);
	else
		options->picture.by_thread = true;
}

bool target_options_take_word(struct argp_state *state, const char *word, struct record_options *options)
{
	if (word[strspn(word, "0123456789,")] != '\0' || (state->quoted > 0 && state->next > state->quoted))
		return false;
	add_pids(state, word, &options->targets);
	return true;
}

error_t target_options_parse(int key, char *argument, struct argp_state *state, struct record_options *options)
{
	struct filter_options *filter = &options->pipeline.filter;

	switch (key) {
	case 'p':
		add_pids(state, argument, &options->targets);
		return 0;
	case KEY_TARGET_COMM:
		cli_parse_list(state, argument, "--comm needs a name", &options->targets.comms);
		return 0;
	case KEY_TARGET_CMDLINE:
		cli_parse_name(state, argument, &options->targets.cmdlines);
		return 0;
	case KEY_TARGET_WAIT:
		options->targets.wait = true;
		return 0;
	case KEY_TARGET_TID:
		add_threads(state, argument, options);
		return 0;
	case KEY_TARGET_USER:
		cli_parse_list(state, argument, "--user needs a name", &options->targets.users);
		return 0;
	case KEY_TARGET_SUBPROCESSES:
	case KEY_TARGET_NO_SUBPROCESSES:
		options->targets.descendants = key == KEY_TARGET_SUBPROCESSES;
		options->capture.no_children = key == KEY_TARGET_NO_SUBPROCESSES;
		return 0;
	case KEY_TARGET_THREADS:
		parse_threads(state, argument, options);
		return 0;
	case KEY_TARGET_FUNCTION:
		cli_parse_name(state, argument, &filter->functions);
		return 0;
	case KEY_TARGET_GIL:
		filter->gil = true;
		return 0;
	case KEY_TARGET_IDLE:
		options->capture.idle = true;
		return 0;
	case KEY_TARGET_NATIVE:
	case KEY_TARGET_NO_NATIVE:
		filter->no_native = key == KEY_TARGET_NO_NATIVE;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void target_options_check(struct argp_state *state, struct record_options *options)
{
	bool asked = targets_are_asked_for(&options->targets);

	if (options->command && asked)
		argp_error(state,
			   "give either processes (--pid, --comm, --cmdline, --user), or a command, not both; -d TIME "
			   "limits the duration");
	if (!options->command && !asked)
		argp_error(state, "no target: give a PID, --comm NAME, --cmdline TEXT, --user NAME, or -- COMMAND");
	if (options->targets.wait && !targets_are_matched(&options->targets))
		argp_error(state, "--wait is for --comm, --cmdline and --user, which may find no process yet");
	if (!options->capture.idle)
		return;
	if (options->capture.source != SOURCE_AUTO && options->capture.source != SOURCE_POLL)
		argp_error(state,
			   "--source %s sees threads while they run: --idle takes --source poll; threads that "
			   "wait are shown with their native frames by --mode wall",
			   record_source_names[options->capture.source]);
	options->capture.source = SOURCE_POLL;
}
