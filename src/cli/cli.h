/* SPDX-License-Identifier: MIT */
/* cli.h - verbs, exit statuses, and messages for errors.
 *
 * A verb is a const descriptor in verb_<name>.c and one word in meson.build,
 * which generates the table of all verbs. Help and manual print the texts
 * of the descriptor.
 */
#ifndef PROBING_CLI_H
#define PROBING_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/new_file.h"

/* "0.1.0" */
extern const char cli_version[];

/* Documented by cli_help; a new one gets its line in help.c. */
enum exit_status {
	EXIT_OK = 0,
	EXIT_FAILED = 1,      /* any other failure; stderr has a sentence */
	EXIT_REGRESSED = 2,   /* of check: a rule is broken */
	EXIT_CANNOT_TELL = 3, /* of check: too few runs, another machine, other versions */
	EXIT_USAGE = 64,      /* wrong arguments */
	EXIT_BAD_DATA = 65,   /* a damaged or foreign database, a mistake in SQL */
	EXIT_NO_INPUT = 66,   /* no such file or process */
	EXIT_NO_OUTPUT = 73,  /* the output cannot be made */
	EXIT_IO = 74,         /* disk full, or another error while writing */
	EXIT_NOT_PERMITTED = 77,
	EXIT_NOT_EXECUTABLE = 126, /* of record -- CMD */
	EXIT_NOT_FOUND = 127,      /* of record -- CMD */
};

/* What each status means, for help and manual; ends with a NULL meaning. */
struct exit_meaning {
	enum exit_status status;
	const char *meaning;
};
extern const struct exit_meaning cli_exit_statuses[];

struct verb {
	const char *name;
	const char *aliases;             /* space separated; NULL none */
	const char *summary;             /* one line for the list of verbs */
	const struct argp *argp;         /* its options and their help: what cli_parse() gets */
	bool pages;                      /* prints text for people: long text goes through the pager (pager.h) */
	const char *target;              /* the option before a process' id, "--pid"; NULL: it is an argument */
	const struct verb *const *below; /* its own verbs, which its first argument names; ends with NULL; NULL: none */
	/* argv[0] is "probing <verb>"; returns an exit status. */
	int (*run)(int argc, char **argv);
};

enum { VERB_COLUMNS = 12 };              /* of the names in lists of verbs */
extern const struct verb *const verbs[]; /* ends with NULL */
const struct verb *verb_find(const char *name);
/* The same in another list, as struct verb's below. */
const struct verb *verb_find_in(const struct verb *const *list, const char *name);
/* "report", or "cluster report"; NULL: there is none. */
const struct verb *verb_of_words(const char *words);

/* The verbs near a mistyped one, "flamegraph or report"; "" none. */
void verb_suggest(const char *typed, char *to, size_t n_bytes);

/* Print the options that choose samples: "probing help filters". */
void cli_help_filters(void);

/* The list of verbs and exit statuses: the output of "probing --help". */
void cli_help(FILE *out);

/*
 * cli_parse - argp_parse with the options of every verb (-h, --help, --usage).
 * Help goes to stdout and ends the process with 0, a usage error to stderr and
 * ends it with EXIT_USAGE.
 * @argp:  has no children of its own.
 * @flags: ARGP_IN_ORDER if the words from the first argument on belong to another command.
 */
void cli_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input);

/*
 * An option's argument as a number from low to high, as one of n words (its index; together below 128
 * bytes), as the id of a "process" or "thread". Anything else ends the process with a usage error.
 * @what: its name in the sentence: "the duration", "--sort".
 */
double cli_parse_number(struct argp_state *state, const char *text, const char *what, double low, double high);
unsigned cli_parse_word(struct argp_state *state, const char *text, const char *what, const char *const *words,
			unsigned n);
/* A length of time in seconds: "90", "500ms", "2m", "1h" (duration.h); from low to high. */
double cli_parse_duration(struct argp_state *state, const char *text, const char *what, double low, double high);
/* A size in bytes, from low to high: "512M", "2G". */
uint64_t cli_parse_bytes(struct argp_state *state, const char *text, const char *what, uint64_t low, uint64_t high);
pid_t cli_parse_id(struct argp_state *state, const char *argument, const char *what);

/* The PID of a verb for one process: a second one is a usage error, and so is a missing one at the end. */
void cli_take_pid(struct argp_state *state, const char *argument, pid_t *pid);
void cli_require_pid(struct argp_state *state, pid_t pid);

/* Permissions of a new file, "644": the owner reads and writes, others may read; a usage error else. */
mode_t cli_parse_mode(struct argp_state *state, const char *argument);

/* Add one name, or the names of a list with commas; an empty list is a usage error, @what. */
struct glob_list;
void cli_parse_name(struct argp_state *state, const char *name, struct glob_list *to);
/* FOLDER or FROM=TO of --source-root; a usage error where there is no such folder. */
void cli_parse_source_root(struct argp_state *state, const char *root, struct glob_list *to);
void cli_parse_list(struct argp_state *state, const char *list, const char *what, struct glob_list *to);

/* The recording of a verb that takes one: a second is a usage error. */
void cli_parse_recording(struct argp_state *state, const char *path, const char **recording);

/* A flag of options that "probing help filters" explains: the help of their verbs only lists their names. argp ignores it. */
enum { OPTION_FILTER = 0x1000 };

/* The options of all verbs, ended with an empty row: for the suggestions and the manual. */
extern const struct argp_option cli_common_options[];

/* Help, or a list to read, follows on standard output: fit it to the terminal, and start the pager. */
void cli_begin_help(void);

/* --color and --no-pager before the verb: the words that are left; a wrong one ends the process with a usage error. */
int cli_take_common(int argc, char **argv);

/* For an argp with its own help filter, which passes unchanged texts to it. */
char *cli_help_filter(int key, const char *text, void *input);

/*
 * cli_say - a message, or a part of one, on stderr. Escapes terminal controls (\x1b, \u202e), except for a
 * line end at the end of @format: names in messages are foreign.
 */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "probing: <sentence>" on stderr, as cli_say() has it; returns status, for return statements. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of a text of several lines, the first one a sentence. */
int cli_fail_lines(int status, const char *lines);

/* The exit status that fits a negative errno. */
int cli_status(int error);

/* The value of COLUMNS; else the columns of the terminal at fd; 0: no limit. */
unsigned cli_columns(int fd);

/* Of --color: auto is what the environment says (NO_COLOR, CLICOLOR_FORCE), else whether fd is a terminal with colours. */
enum cli_colour_choice { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };
void cli_choose_colour(enum cli_colour_choice wanted);
bool cli_colour(int fd);

/* Standard output is about to become a pipe to a pager: the two functions above go on to answer for its terminal. */
void cli_keep_terminal(void);

/*
 * cli_open_recording - store_open_reader with a message on failure.
 * @path: NULL: probing.db in this folder.
 * Returns 0, or prints a message and returns an exit status.
 */
struct sqlite3;
int cli_open_recording(const char *path, struct sqlite3 **ret);

/*
 * cli_default_recording - the recording that is meant where none is named: probing.db in this folder, or in
 * PROBING_DATA_DIR. One that is no folder ends the process with a sentence.
 */
const char *cli_default_recording(void);

/* Whether PROBING_LOGLEVEL selects errors alone. An unknown level ends the process with a message. */
bool cli_is_quiet(void);

/* A recording's counter of that name; 0 also if it has none. */
uint64_t cli_counter(struct sqlite3 *db, const char *name);

struct profile;
/* All samples of a profile, those without a stack included. */
uint64_t cli_count_samples(const struct profile *profile);
/* Of a recording without any samples: why, as the end of a sentence. */
const char *cli_why_empty(struct sqlite3 *db, const struct profile *profile);

/*
 * An output file that appears only when it is complete (base/new_file.h). "-" is stdout. A path that exists and is no
 * regular file (a pipe, /dev/null) is written directly. A symbolic link remains, and its target is replaced.
 */
struct output { /* must not move while it is open */
	FILE *file;
	const char *path;           /* as given */
	int fd;                     /* borrowed */
	int error;                  /* of the first write that failed; 0: none */
	char *buffer;               /* the file's */
	uint64_t n_written, n_sent; /* bytes; of them, those handed to the disk */
	struct new_file new;
};
int output_open(struct output *output, const char *path, mode_t mode); /* as new_file_open() */
int output_finish(struct output *output);                              /* flush, sync, rename */
void output_abandon(struct output *output); /* leaves nothing behind; harmless after a finish or a failed open */

/*
 * output_write - write a complete output. Returns 0, or prints a message and returns an exit status.
 * @path: "-" is stdout.
 * @mode: of the file, as in new_file_open().
 * @put: writes it; 0 or a negative errno.
 * @fail: prints a message for errors of put itself, and returns the exit status.
 */
typedef int output_put(const void *data, FILE *out);
typedef int output_fail(const void *data, int error);
int output_write(const char *path, mode_t mode, output_put *put, output_fail *fail, const void *data);

/* Print a message for an output that cannot be created or written; none if the reader has closed the
 * pipe (EPIPE). Returns EXIT_IO, and cli_fail_open EXIT_NO_OUTPUT unless the disk is full; for return statements. */
int cli_fail_open(const char *path, int error);
int cli_fail_write(const char *path, int error);

#endif
