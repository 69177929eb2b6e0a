/* target_options.c - see target_options.h. */
#include "src/cli/target_options.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/record_options.h"

enum { MOST_PID = 1 << 22 }; /* proc_sys_kernel(5), pid_max */

static void check_memory(struct argp_state *state, int r)
{
	if (r == -ENOMEM)
		argp_failure(state, 1, 0, "not enough memory");
}

static void add_pids(struct argp_state *state, const char *list, struct target_options *targets)
{
	CLEANUP(words_done) struct words words = { 0 };
	int r;

	r = words_add_list(&words, list);
	check_memory(state, r);
	if (r < 0)
		argp_error(state, "the process id must be a number from 1 to %d, not %s", MOST_PID, list);
	for (size_t i = 0; i < words.n; i++) {
		pid_t pid = cli_parse_id(state, words.words[i], "process");

		check_memory(state, grow(&targets->pids, targets->n_pids, &targets->pids_allocated,
					 sizeof *targets->pids));
		targets->pids[targets->n_pids++] = pid;
	}
}

error_t target_options_parse(int key, char *argument, struct argp_state *state, struct record_options *options)
{
	struct keep_options *keep = &options->pipeline.keep;

	switch (key) {
	case 'p':
		add_pids(state, argument, &options->targets);
		return 0;
	case KEY_TARGET_COMM:
		cli_parse_list(state, argument, "--comm wants a name", &options->targets.comms);
		return 0;
	case KEY_TARGET_USER:
		cli_parse_list(state, argument, "--user wants a name", &options->targets.users);
		return 0;
	case KEY_TARGET_SUBPROCESSES:
	case KEY_TARGET_NO_SUBPROCESSES:
		options->targets.descendants = key == KEY_TARGET_SUBPROCESSES;
		options->capture.no_children = key == KEY_TARGET_NO_SUBPROCESSES;
		return 0;
	case KEY_TARGET_THREADS:
		cli_parse_list(state, argument, "--threads wants a name", &keep->threads);
		return 0;
	case KEY_TARGET_FUNCTION:
		cli_parse_name(state, argument, &keep->functions);
		return 0;
	case KEY_TARGET_GIL:
		keep->gil = true;
		return 0;
	case KEY_TARGET_IDLE:
		options->capture.idle = true;
		return 0;
	case KEY_TARGET_NATIVE:
	case KEY_TARGET_NO_NATIVE:
		keep->no_native = key == KEY_TARGET_NO_NATIVE;
		return 0;
	case KEY_TARGET_NONBLOCKING: /* nothing is ever stopped */
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void target_options_check(struct argp_state *state, struct record_options *options)
{
	bool asked = targets_are_asked_for(&options->targets);

	if (options->command && asked)
		argp_error(state, "give either --pid, --comm or --user, or a command, not both");
	if (!options->command && !asked)
		argp_error(state, "what to record? Give --pid PID, --comm NAME, --user NAME, or -- COMMAND");
	if (!options->capture.idle)
		return;
	if (options->capture.source != SOURCE_AUTO && options->capture.source != SOURCE_POLL)
		argp_error(state, "--source %s sees threads while they run: --idle takes --source poll; threads that "
				  "wait are shown with their native frames by --mode wall",
			   record_source_names[options->capture.source]);
	options->capture.source = SOURCE_POLL;
}
