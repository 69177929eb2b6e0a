/* SPDX-License-Identifier: MIT */
/* view.h - the displayed part of a recording: options that all verbs with stacks share.
 *
 * A verb puts VIEW_OPTION_ROWS into its list of options, passes other options to
 * view_parse(), and opens the recording by view_open(). The resulting profile contains only
 * that part, so that the verb need not handle these options.
 */
#ifndef PROBING_CLI_VIEW_H
#define PROBING_CLI_VIEW_H

#include <argp.h>
#include <stdbool.h>

#include "base/glob_list.h"
#include "src/cli/cli.h"
#include "src/export/export.h"
#include "src/profile/profile.h"
#include "src/report/report.h"
#include "src/store/store.h"

/* ---- view_time.c ---- */

/* All zero: none was given. */
struct view_time {
	enum { VIEW_TIME_NONE, VIEW_TIME_OFFSET, VIEW_TIME_MOMENT, VIEW_TIME_OF_DAY } type;
	const char *text; /* as it was given; borrowed */
	double seconds;   /* since the recording's start, since 1970, since midnight */
};

/*
 * view_time_parse - "12.5", "90s", "2m", "1h", since the start; "14:05", "14:05:30.5" of the day when the recording
 * began, "2026-03-01 14:05", with T for the space, both local time unless a Z follows the date's; a number from
 * 10^9 on means seconds since 1970. Errors: -EINVAL any other text.
 */
int view_time_parse(const char *text, struct view_time *ret);

/* view_time_resolve - in seconds since 1970. @started: when the recording began, likewise. */
double view_time_resolve(const struct view_time *time, double started);

/* ---- view.c, view_title.c ---- */

/* All zero: everything. Ended with view_done(). */
struct view {
	struct view_time since, until;
	const char *where;          /* SQL over the columns of `sample`; borrowed */
	struct glob_list pids;      /* numbers */
	struct glob_list processes; /* numbers, and globs of names */
	struct glob_list threads;   /* numbers, and globs of names */
	struct glob_list functions; /* stacks begin there */
	struct glob_list focus;     /* stacks through these, as they are */
	struct glob_list modules;   /* stacks through code of these files */
	struct glob_list ignore;    /* no stacks through these */
	bool gil;                   /* samples that held it */
	bool no_native;             /* Python frames only */
	bool show_interpreter;      /* the interpreter's own functions, too */
	bool full_paths;            /* not the shortest ends of paths that are unique */
	bool by_thread;             /* show threads separately; if the verb can */
	bool merge_processes;       /* show processes as one */
	char *chosen;               /* of -p, until view_end(); an argument */
	double live_s;              /* how long a process is recorded; 0: DEFAULT_LIVE_S */
	bool lines, inverted;       /* form of a tree: struct export_options */
	double min_share;
	bool counts;       /* numbers of samples instead of weights */
	bool can_split;    /* whether it can: set before parsing */
	const char *label; /* SQL of a column of sample: totals are split by it; NULL: they are not. Set before opening */
	/* Values of the label become the outermost frames of stacks, and this one where there is none; NULL: they do not. */
	const char *label_none;
	const char *by; /* the label in a word, for the title; NULL: none */
	/* Of a fleet instead of a recording (fleet_source.h): */
	const char *job, *ranks; /* NULL: the only one, all; borrowed */
	struct glob_list hosts;  /* globs */
	bool partial;            /* show the others if a server does not answer */
	bool with_lines;         /* load lines, too: set before opening */
	bool with_samples;       /* load single samples, too, if there are any: set before opening */
	bool quiet;              /* no line of progress: set before opening */
};

enum {
	KEY_VIEW_PID = 0x500,
	KEY_VIEW_PROCESS,
	KEY_VIEW_THREADS,
	KEY_VIEW_BY_THREAD,
	KEY_VIEW_FUNCTION,
	KEY_VIEW_FOCUS,
	KEY_VIEW_MODULE,
	KEY_VIEW_IGNORE,
	KEY_VIEW_SINCE,
	KEY_VIEW_UNTIL,
	KEY_VIEW_WHERE,
	KEY_VIEW_GIL,
	KEY_VIEW_NATIVE,
	KEY_VIEW_NO_NATIVE,
	KEY_VIEW_INTERPRETER,
	KEY_VIEW_FULL_PATHS,
	KEY_VIEW_LINES,
	KEY_VIEW_INVERTED,
	KEY_VIEW_MIN_SHARE,
	KEY_VIEW_COUNTS,
	KEY_VIEW_MERGE,
	KEY_VIEW_JOB,
	KEY_VIEW_HOST,
	KEY_VIEW_RANK,
	KEY_VIEW_PARTIAL,
	KEY_VIEW_LIVE = 'd',
	KEY_VIEW_CHOSEN = 'p',
};

/* clang-format off */
#define VIEW_OPTION_ROWS                                                                                   \
	{ "since", KEY_VIEW_SINCE, "TIME", OPTION_FILTER,                                                              \
	  "Only samples from TIME on: seconds after the start, 90s, 2m, a time of day, or a date with time", 0 }, \
	{ "until", KEY_VIEW_UNTIL, "TIME", OPTION_FILTER, "Only samples before TIME", 0 },                             \
	{ "where", KEY_VIEW_WHERE, "SQL", OPTION_FILTER,                                                               \
	  "Only samples that match this SQL condition on the columns of sample, e.g. --where='cpu = 3'", 0 }, \
	{ "pid", KEY_VIEW_PID, "LIST", OPTION_FILTER, "Only these processes", 0 },                                     \
	{ "process", KEY_VIEW_PROCESS, "LIST", OPTION_FILTER, "Only these processes: PIDs or globs of names", 0 },     \
	{ "threads", KEY_VIEW_THREADS, "LIST", OPTION_ARG_OPTIONAL | OPTION_FILTER,                                        \
	  "Only these threads: TIDs or globs of names, as --threads='busy-*,4243'", 0 },                   \
	{ "function", KEY_VIEW_FUNCTION, "NAME", OPTION_FILTER,                                                        \
	  "Only stacks through this function, with it as the root; a glob (repeatable)", 0 },              \
	{ "focus", KEY_VIEW_FOCUS, "NAME", OPTION_FILTER,                                                              \
	  "Only stacks through this function, with their callers; a glob (repeatable)", 0 },               \
	{ "module", KEY_VIEW_MODULE, "NAME", OPTION_FILTER,                                                            \
	  "Only stacks through this library or source file; a glob of its path or of its end (repeatable)", 0 }, \
	{ "ignore", KEY_VIEW_IGNORE, "NAME", OPTION_FILTER, "Drop stacks through this function; a glob (repeatable)", 0 }, \
	{ "gil", KEY_VIEW_GIL, NULL, OPTION_FILTER, "Only samples of the thread that held the GIL", 0 },               \
	{ "no-native", KEY_VIEW_NO_NATIVE, NULL, OPTION_FILTER, "Hide native and kernel frames", 0 },                  \
	{ "native", KEY_VIEW_NATIVE, NULL, OPTION_FILTER, "Show native frames (default)", 0 },                         \
	{ "interpreter-frames", KEY_VIEW_INTERPRETER, NULL, OPTION_FILTER,                                             \
	  "Show internal frames of the interpreter", 0 },                                                  \
	{ "native-all", KEY_VIEW_INTERPRETER, NULL, OPTION_ALIAS | OPTION_FILTER, NULL, 0 },                               \
	{ "full-paths", KEY_VIEW_FULL_PATHS, NULL, OPTION_FILTER,                                                      \
	  "Show full paths of files (default: the shortest unique end of each path)", 0 },                 \
	{ "job", KEY_VIEW_JOB, "NAME", OPTION_FILTER, "Of a fleet (clickhouse://...): this job", 0 },                  \
	{ "host", KEY_VIEW_HOST, "LIST", OPTION_FILTER, "Of a fleet: only these hosts; globs", 0 },                    \
	{ "rank", KEY_VIEW_RANK, "LIST", OPTION_FILTER, "Of a fleet: only these ranks, as 0,8-15", 0 },                \
	{ "partial", KEY_VIEW_PARTIAL, NULL, OPTION_FILTER, "Of a fleet: show the rest if a server does not answer", 0 }
/* clang-format on */

/* For verbs that make a tree: passed on by view_export(). */
/* clang-format off */
#define VIEW_TREE_ROWS                                                                                     \
	{ "lines", KEY_VIEW_LINES, NULL, 0, "Split functions by line", 0 },                                \
	{ "inverted", KEY_VIEW_INVERTED, NULL, 0,                                                          \
	  "Bottom-up: leaves at the root", 0 },                                                            \
	{ "min-share", KEY_VIEW_MIN_SHARE, "PERCENT", 0,                                                   \
	  "Hide frames below PERCENT of the total; their time counts for their caller", 0 },       \
	{ "counts", KEY_VIEW_COUNTS, NULL, 0, "Count samples instead of adding up their time", 0 }
/* clang-format on */

/* For verbs that also show processes, by PID instead of a recording. They call view_end(). */
/* clang-format off */
#define VIEW_LIVE_ROW                                                                                      \
	{ NULL, KEY_VIEW_CHOSEN, "PID", 0, "Without FILE: same as a bare PID; with FILE: same as --pid", 0 },   \
	{ "duration", KEY_VIEW_LIVE, "TIME", 0, "With a PID: record for TIME (default: 5s)", 0 }
/* clang-format on */

/* For verbs that can show threads separately. */
/* clang-format off */
#define VIEW_SPLIT_ROW                                                                                     \
	{ "merge-processes", KEY_VIEW_MERGE, NULL, 0, "Merge processes into one tree", 0 },                \
	{ "by-thread", KEY_VIEW_BY_THREAD, NULL, 0, "Split by thread (also --threads without a list)", 0 }
/* clang-format on */

void view_done(struct view *view);

/* One option; ARGP_ERR_UNKNOWN: it is none of these. A mistake ends the process (argp_error). */
error_t view_parse(int key, char *argument, struct argp_state *state, struct view *view);

/*
 * view_end - at the end of the options (ARGP_KEY_END): -p names a process of the recording, or, without a recording, the
 * process to record. @recording: as the arguments named it; NULL: not.
 */
void view_end(struct argp_state *state, struct view *view, const char **recording);

/*
 * view_open - the displayed part of a recording, as a profile.
 * @path: NULL: probing.db in this folder; a number: a process, which is recorded first.
 * Returns 0, or prints a message and returns an exit status: as cli_open_recording(); it has no samples
 * (EXIT_BAD_DATA); no sample matches the filter (EXIT_NO_INPUT);
 * a filter by time or where needs SQL or single samples, and there is no SQL, or there
 * are only sums (EXIT_BAD_DATA).
 */
int view_open(const char *path, const struct view *view, sqlite3 **ret_db, struct profile **ret);

/*
 * view_parts - the displayed part in words: "threads loader-*; GIL held"; "": all of it. Owned by the caller; NULL: no memory.
 * @db: of the recording; NULL: several.
 */
char *view_parts(const struct view *view, sqlite3 *db);

/*
 * view_title - the command of the recording, and, in brackets, the displayed part: "train.py (threads loader-*; GIL
 * held)". Owned by the caller; NULL: both are unknown, or no memory.
 */
char *view_title(const struct view *view, sqlite3 *db);

/* view_export - set the exporter's options of the view. Others remain unchanged. */
void view_export(const struct view *view, struct export_options *options);

/* view_fail_export - the sentence for an exporter's error; for return statements. @path: of the recording, or NULL. */
int view_fail_export(const char *path, const struct exporter *exporter, int error);

/* view_held - how much of a recording's time held the GIL. False: only a part of it is shown, or it is unknown. */
bool view_held(const struct view *view, sqlite3 *db, struct held_time *ret);

/* ---- view_by.c: --by ---- */

enum { KEY_VIEW_BY = 0xd00 };

#define VIEW_BY_ROW                                                                                                         \
	{                                                                                                                   \
		"by", KEY_VIEW_BY, "WHAT", 0,                                                                               \
			"Group stacks by what the program did: step, span, phase, or, of torch, module, stage (forward or " \
			"backward), or torch: both; or by rank of the distributed job",                                     \
			0                                                                                                   \
	}

/* view_by_parse - the option. An unknown word ends the process (argp_error). */
void view_by_parse(struct argp_state *state, const char *argument, struct view *view);

/* view_by_check - 0, or prints that the format cannot group stacks and returns an exit status. */
int view_by_check(const struct view *view, const struct exporter *exporter);

/* ---- view_filter.c: a profile in memory is filtered, for view.c ---- */

/* view_filter - drop totals and samples outside the view. The tree remains unchanged. -ENOMEM. */
int view_filter(struct profile *profile, const struct view *view);

#endif
