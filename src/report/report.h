/* SPDX-License-Identifier: MIT */
/* report.h - the time of a profile as text or JSON: tables, neighbours of functions, sources. */
#ifndef PROBING_REPORT_H
#define PROBING_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/glob_list.h"
#include "src/profile/profile.h"
#include "src/report/collectives.h"
#include "src/report/gpu.h"
#include "src/report/torch.h"

/* How much time held the GIL, and how much collected garbage; nanoseconds, or samples. */
struct held_time {
	uint64_t all;
	uint64_t gil, gil_known; /* held it; is known to have held it or not */
	uint64_t gc, gc_known;
};

/*
 * report_held - one line, "80.1 % with the GIL, 3.0 % collecting garbage"; nothing if nothing is known.
 * @columns: shortens the line if it is too wide; 0: no limit.
 */
void report_held(const struct held_time *held, unsigned columns, FILE *out);

enum report_by {
	REPORT_BY_FUNCTION,
	REPORT_BY_LINE,
	REPORT_BY_MODULE,
	REPORT_BY_THREAD,
	REPORT_BY_PROCESS,
	REPORT_BY_WAIT,
	REPORT_BY_STEP, /* these three: by the profile's labels */
	REPORT_BY_SPAN,
	REPORT_BY_PHASE,
	REPORT_BY_RANK,
	REPORT_BY_TORCH, /* not of a profile: torch.h */
	REPORT_N_BY
};
extern const char *const report_by_names[REPORT_N_BY]; /* "function"... */

struct report_options {
	enum report_by by;
	bool show_interpreter;
	unsigned max_rows; /* 0: 20 */
	unsigned columns;  /* width to fit; 0: any */
	bool colour;
	bool by_total;                                /* sort by total time rather than self */
	bool json;                                    /* one JSON object instead of a table */
	const struct held_time *held;                 /* shown as well; NULL: not */
	const struct report_gpu *gpu;                 /* shown by function; NULL: not */
	const struct report_collectives *collectives; /* the same */
	uint64_t lost;                                /* lost samples of the recording; shown if there are any */
};

/*
 * report_print - self and total time, kind and place of the functions with most time; recursion counts once in total.
 * By wait: lines and the reasons of their waits. By function, of a recording with waits, the longest of these follow.
 * Errors: -ENOMEM; -EIO and others of writing.
 */
int report_print(const struct profile *profile, const struct report_options *options, FILE *out);

/*
 * report_neighbours - callers or callees of the functions of these names, with their times. A stack
 * counts once for each caller (callee) that a function has on it. So those of a recursive function
 * may add up to more than its time.
 * @names: for glob_list_match_function().
 * Errors: -ENODATA: no function in the profile matches; as report_print().
 */
int report_neighbours(const struct profile *profile, const struct glob_list *names, bool callers,
		      const struct report_options *options, FILE *out);

/* The self time of functions that nothing names: "libx.so+0x12a0". */
struct report_nameless_module {
	const char *path, *build_id; /* of the profile; build_id NULL: unknown */
	double share;                /* percent of all self time */
	bool has_lines;              /* its debug information was read */
};
struct report_nameless {
	double share;
	struct report_nameless_module *modules; /* the largest share first */
	size_t n;
};

/*
 * report_nameless - which modules lack the names of functions, and how much that matters.
 * @ret: ended with report_nameless_done(); borrows from the profile.
 * Errors: -ENOMEM.
 */
int report_nameless(const struct profile *profile, bool show_interpreter, struct report_nameless *ret);
void report_nameless_done(struct report_nameless *nameless);

/* A series of numbers over time. */
struct timeline_point {
	double seconds, value;
};
struct timeline_series {
	const char *name, *unit;
	const struct timeline_point *points; /* in order of time */
	size_t n;                            /* not 0 */
	bool is_level;                       /* drawn from its minimum; else from 0 */
};
struct timeline {
	const struct timeline_series *series;
	size_t n;
	double since, until; /* seconds */
	unsigned columns;    /* width to fit; 0: 80 */
	bool is_ascii;
};

/*
 * report_timeline - a line for each series: its name, its means as a picture of characters, its range. A blank has no number.
 * Errors: -ENOMEM; -EIO.
 */
int report_timeline(const struct timeline *timeline, FILE *out);

/* Result of searching a source. */
enum annotate_source {
	ANNOTATE_FOUND,
	ANNOTATE_NEWER,   /* found, but it has been changed since the recording began */
	ANNOTATE_MISSING, /* its lines with time are listed without their text */
};

struct annotate_options {
	const struct glob_list
		*what; /* globs of functions, or of files (their last parts suffice); none: those with most time */
	const struct glob_list *roots; /* where sources are, see source.h: folders and FROM=TO */
	unsigned max_files;            /* 0: 3 without globs, otherwise no limit */
	unsigned context;              /* lines shown around those with time */
	bool all_lines;                /* show whole files */
	bool show_interpreter, colour, json;
	unsigned columns;     /* width to fit; 0: any */
	uint64_t recorded_ns; /* CLOCK_REALTIME; 0: not known */
	/* Called for each file, before it is printed. @error: of ANNOTATE_MISSING, negative errno. May be NULL. */
	void (*tell)(void *data, const char *file, enum annotate_source what, int error);
	void *data;
};

/*
 * report_annotate - sources with self and total time beside each line, the files with the most self time first.
 * Errors: -ENODATA: no line with a source is meant; as report_print().
 */
int report_annotate(const struct profile *profile, const struct annotate_options *options, FILE *out);

#endif
