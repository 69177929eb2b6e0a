/* target_options.h - the options that say whom to record, and which of the samples. */
#ifndef PROBING_CLI_TARGET_OPTIONS_H
#define PROBING_CLI_TARGET_OPTIONS_H

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

/* Rows for a list of options; what they mean is in target_options_parse(). */
#define TARGET_OPTION_ROWS                                                                                 \
	{ "pid", 'p', "PID[,PID...]", 0,                                                                   \
	  "Record these running processes and the children that they start from now on", 0 },              \
	{ "comm", KEY_TARGET_COMM, "NAME[,NAME...]", 0,                                                    \
	  "Record all processes that are called so, or whose executable is, also those that start meanwhile; globs: 'python3*'", 0 }, \
	{ "cmdline", KEY_TARGET_CMDLINE, "TEXT", 0,                                                        \
	  "The same of those with this in their command lines; a glob; several times: any of them", 0 },    \
	{ "wait", KEY_TARGET_WAIT, NULL, 0,                                                                \
	  "Where --comm, --cmdline and --user find none, wait for the first to start", 0 },                \
	{ "tid", KEY_TARGET_TID, "TID[,TID...]", 0, "Record these threads alone", 0 },                     \
	{ "user", KEY_TARGET_USER, "NAME|UID", 0,                                                          \
	  "Record all processes of this user that may be looked at; with --comm, those of them", 0 },      \
	{ "subprocesses", KEY_TARGET_SUBPROCESSES, NULL, 0,                                                \
	  "Record also the children, and their children, that are running already", 0 },                   \
	{ "no-subprocesses", KEY_TARGET_NO_SUBPROCESSES, NULL, 0,                                          \
	  "Leave children out, also of a command (default: they are followed)", 0 },                       \
	{ "threads", KEY_TARGET_THREADS, "LIST", OPTION_ARG_OPTIONAL,                                      \
	  "Only these threads: numbers, or globs of their names, Python's or the system's: 'loader-*,4243'; without a list " \
	  "as --by-thread", 0 },                                                                           \
	{ "function", KEY_TARGET_FUNCTION, "NAME", 0,                                                      \
	  "Only samples in which this Python function runs, or what it called; a glob; several times: any of them", 0 }, \
	{ "gil", KEY_TARGET_GIL, NULL, 0, "Only samples whose thread holds the GIL", 0 },                  \
	{ "idle", KEY_TARGET_IDLE, NULL, 0,                                                                \
	  "Threads that do not run, too; time is then real time, not CPU time. Takes --source poll", 0 },  \
	{ "no-native", KEY_TARGET_NO_NATIVE, NULL, 0, "Store Python frames only", 0 },                     \
	{ "native", KEY_TARGET_NATIVE, NULL, 0, "Store native frames, too (default)", 0 }

/* One option; ARGP_ERR_UNKNOWN: it is none of these. A mistake ends the process (argp_error). */
error_t target_options_parse(int key, char *argument, struct argp_state *state, struct record_options *options);

/* A word without an option: process ids, unless it stands behind "--". False: it is none. */
bool target_options_take_word(struct argp_state *state, const char *word, struct record_options *options);

/* Once all are known: whether they go together; the source that --idle needs is chosen. */
void target_options_check(struct argp_state *state, struct record_options *options);

#endif
