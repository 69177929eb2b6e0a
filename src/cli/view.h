/* view.h - which part of a recording is shown: the options that all verbs share that show stacks.
 *
 * A verb puts VIEW_OPTION_ROWS into its list of options, hands what it does not know itself to
 * view_parse(), and opens the recording by view_open(). The profile that comes back holds what is
 * to be shown and nothing else, so that the verb need not know of any of this.
 */
#ifndef PROBING_CLI_VIEW_H
#define PROBING_CLI_VIEW_H

#include <argp.h>
#include <stdbool.h>

#include "base/words.h"
#include "src/report/report.h"
#include "src/store/store.h"

/* All zero: everything. Ended with view_done(). */
struct view {
	struct words pids;      /* numbers */
	struct words threads;   /* numbers, and globs of names */
	struct words functions; /* stacks begin there */
	struct words focus;     /* stacks through these, as they are */
	bool gil;               /* samples that held it */
	bool no_native;         /* Python frames only */
	bool show_interpreter;  /* the interpreter's own functions, too */
	bool by_thread;         /* told apart; where the verb can */
	bool can_split;         /* whether it can: set before parsing */
};

enum {
	KEY_VIEW_PID = 0x500,
	KEY_VIEW_THREADS,
	KEY_VIEW_BY_THREAD,
	KEY_VIEW_FUNCTION,
	KEY_VIEW_FOCUS,
	KEY_VIEW_GIL,
	KEY_VIEW_NATIVE,
	KEY_VIEW_NO_NATIVE,
	KEY_VIEW_INTERPRETER,
};

#define VIEW_OPTION_ROWS                                                                                   \
	{ "pid", KEY_VIEW_PID, "LIST", 0, "Only these processes", 0 },                                     \
	{ "threads", KEY_VIEW_THREADS, "LIST", OPTION_ARG_OPTIONAL,                                        \
	  "Only these threads: numbers, or globs of their names; written --threads='busy-*,4243'", 0 },    \
	{ "function", KEY_VIEW_FUNCTION, "NAME", 0,                                                        \
	  "Only what runs in this function, as if it were the start; a glob; several times: any of them", 0 }, \
	{ "focus", KEY_VIEW_FOCUS, "NAME", 0, "Only stacks through this function, as they are", 0 },       \
	{ "gil", KEY_VIEW_GIL, NULL, 0, "Only samples whose thread held the GIL", 0 },                     \
	{ "no-native", KEY_VIEW_NO_NATIVE, NULL, 0, "Show Python frames alone", 0 },                       \
	{ "native", KEY_VIEW_NATIVE, NULL, 0, "Show native frames, too (default)", 0 },                    \
	{ "interpreter-frames", KEY_VIEW_INTERPRETER, NULL, 0,                                             \
	  "Show the interpreter's own functions too", 0 },                                                 \
	{ "native-all", KEY_VIEW_INTERPRETER, NULL, OPTION_ALIAS, NULL, 0 }

/* Where a verb can tell threads apart. */
#define VIEW_SPLIT_ROW                                                                                     \
	{ "by-thread", KEY_VIEW_BY_THREAD, NULL, 0, "Split by thread; so does --threads without a list", 0 }

void view_done(struct view *view);

/* One option; ARGP_ERR_UNKNOWN: it is none of these. A mistake ends the process (argp_error). */
error_t view_parse(int key, char *argument, struct argp_state *state, struct view *view);

/*
 * view_open - a recording's profile with what is to be shown.
 * @path: NULL: probing.db in this folder.
 * Returns 0, or an exit status after having said why: as cli_open_profile(); nothing in it is of what
 * was asked for (EXIT_NO_INPUT).
 */
int view_open(const char *path, const struct view *view, sqlite3 **ret_db, struct profile **ret);

/* view_held - how much of a recording's time held the GIL. False: a part of it is shown, or it does not tell. */
bool view_held(const struct view *view, sqlite3 *db, struct held_time *ret);

#endif
