/* SPDX-License-Identifier: MIT */
/* new_file_options.c - see new_file_options.h. */
#include "src/cli/new_file_options.h"

#include "src/cli/cli.h"

error_t new_file_parse(int key, const char *argument, struct argp_state *state, struct new_file_options *options)
{
	switch (key) {
	case 'o':
		options->out = argument;
		return 0;
	case KEY_NEW_FILE_FORCE:
		options->force = true;
		return 0;
	case KEY_CHMOD:
		options->mode = cli_parse_mode(state, argument);
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}
