/* SPDX-License-Identifier: MIT */
/* target_options.h - the options that select processes to record, and filter samples. */
#ifndef PROBING_CLI_RECORD_TARGET_OPTIONS_H
#define PROBING_CLI_RECORD_TARGET_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

struct record_options;

enum {
	KEY_TARGET_COMM = 0x400,
	KEY_TARGET_CMDLINE,
	KEY_TARGET_WAIT,
	KEY_TARGET_TID,
	KEY_TARGET_USER,
	KEY_TARGET_SUBPROCESSES,
	KEY_TARGET_NO_SUBPROCESSES,
	KEY_TARGET_THREADS,
	KEY_TARGET_FUNCTION,
	KEY_TARGET_GIL,
	KEY_TARGET_IDLE,
	KEY_TARGET_NATIVE,
	KEY_TARGET_NO_NATIVE,
};

/* Rows for a list of options; target_options_parse() handles them. */
/* clang-format off */
#define TARGET_OPTION_ROWS                                                                                 \
	{ "pid", 'p', "PID[,PID...]", 0,                                                                   \
	  "Record these processes and the children they start from now on", 0 },                           \
	{ "comm", KEY_TARGET_COMM, "NAME[,NAME...]", 0,                                                    \
	  "Record all processes with this name or executable, also those that start later; globs such as 'python3*'", 0 }, \
	{ "cmdline", KEY_TARGET_CMDLINE, "TEXT", 0,                                                        \
	  "Record all processes whose command line matches, also those that start later; a glob (repeatable)", 0 }, \
	{ "wait", KEY_TARGET_WAIT, NULL, 0,                                                                \
	  "Wait for the first match of --comm, --cmdline or --user if there is none yet", 0 },             \
	{ "tid", KEY_TARGET_TID, "TID[,TID...]", 0, "Record only these threads", 0 },                      \
	{ "user", KEY_TARGET_USER, "NAME|UID", 0,                                                          \
	  "Record all accessible processes of this user; narrows --comm and --cmdline", 0 },               \
	{ "subprocesses", KEY_TARGET_SUBPROCESSES, NULL, 0,                                                \
	  "Include descendants that are already running", 0 },                                             \
	{ "no-subprocesses", KEY_TARGET_NO_SUBPROCESSES, NULL, 0,                                          \
	  "Do not follow children (default: follow them)", 0 },                                            \
	{ "threads", KEY_TARGET_THREADS, "LIST", OPTION_ARG_OPTIONAL,                                      \
	  "Keep only these threads: TIDs or globs of names, as --threads='loader-*,4243'; without a list, as " \
	  "--by-thread", 0 },                                                                              \
	{ "function", KEY_TARGET_FUNCTION, "NAME", 0,                                                      \
	  "Keep only samples with this Python function in the stack; a glob (repeatable)", 0 },            \
	{ "gil", KEY_TARGET_GIL, NULL, 0, "Keep only samples of the thread that holds the GIL", 0 },       \
	{ "idle", KEY_TARGET_IDLE, NULL, 0,                                                                \
	  "Include idle threads (wall-clock time; uses --source poll)", 0 },                               \
	{ "no-native", KEY_TARGET_NO_NATIVE, NULL, 0, "Do not store native frames", 0 },                   \
	{ "native", KEY_TARGET_NATIVE, NULL, 0, "Store native frames (default)", 0 }
/* clang-format on */

/* One option; ARGP_ERR_UNKNOWN: it is none of these. A mistake ends the process (argp_error). */
error_t target_options_parse(int key, char *argument, struct argp_state *state, struct record_options *options);

/* A positional word: process ids, unless it comes after "--". False: it is none. */
bool target_options_take_word(struct argp_state *state, const char *word, struct record_options *options);

/* After all options: whether they are compatible; chooses the source for --idle. */
void target_options_check(struct argp_state *state, struct record_options *options);

#endif
