/* SPDX-License-Identifier: MIT */
/* new_file_options.h - options for the file that a verb writes, and the message about it. */
#ifndef PROBING_CLI_NEW_FILE_OPTIONS_H
#define PROBING_CLI_NEW_FILE_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <sys/types.h>

struct new_file_options {
	const char *out; /* NULL: the verb's default */
	mode_t mode;     /* 0: default */
	bool force, quiet;
};

enum { KEY_NEW_FILE_FORCE = 0x900, KEY_CHMOD };

/* Of every verb that makes files; cli_parse_mode() reads its argument. */
#define CHMOD_OPTION_ROW                                                                                                         \
	{                                                                                                                        \
		"chmod", KEY_CHMOD, "MODE", 0,                                                                                   \
			"Set the output file's permissions, octal, minus the umask (default: those of the file it replaces, or " \
			"600)",                                                                                                  \
			0                                                                                                        \
	}

/* Rows for an argp; @out_help: help text of -o OUT, which differs. */
#define NEW_FILE_OPTION_ROWS(out_help)                                                                                 \
	{ "output", 'o', "OUT", 0, out_help, 0 },                                                                      \
		{ "force", KEY_NEW_FILE_FORCE, NULL, 0, "Replace OUT if it exists", 0 }, CHMOD_OPTION_ROW,             \
	{                                                                                                              \
		"quiet", 'q', NULL, 0, "Print errors only", 0                                                          \
	}

/* One of these; ARGP_ERR_UNKNOWN: it is none. A mistake ends the process. */
error_t new_file_parse(int key, const char *argument, struct argp_state *state, struct new_file_options *options);

#endif
