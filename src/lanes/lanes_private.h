/* SPDX-License-Identifier: MIT */
/* lanes_private.h - the parts of struct lanes. Private.
 *
 * All times are CLOCK_REALTIME in ns. Intervals of a thread are in the order of time, and do not overlap.
 */
#ifndef PROBING_LANES_PRIVATE_H
#define PROBING_LANES_PRIVATE_H

#include "base/sample.h"
#include "src/lanes/lanes.h"
#include "src/profile/profile.h"

enum { MAX_LEVEL = 50, SHARE_ALL = 255 }; /* the widest column: 13 days */

/* ---- calls.c: names, and paths of them ---- */

enum name_kind {
	NAME_PYTHON,
	NAME_BUILTIN,
	NAME_NATIVE,
	NAME_KERNEL,
	NAME_TASK,
	NAME_WAIT,
	NAME_GROUP,
	NAME_EVENT,
	NAME_N_KINDS
};

struct name {
	char *text, *file; /* file: "" unknown */
	enum name_kind kind;
};

/* A call by its caller; 0 is the root: no call. Callers come before their callees. */
struct call {
	uint32_t parent, name;
	uint32_t depth; /* 0: the root */
};

struct calls {
	struct name *names;
	size_t n_names, names_allocated;
	uint32_t *name_slots; /* hash table; index + 1 */
	size_t n_name_slots;
	struct call *calls;
	size_t n, allocated;
	uint32_t *slots;
	size_t n_slots;
};

/* All: -ENOMEM, -EOVERFLOW. */
int lane_calls_init(struct calls *calls);
int lane_calls_name(struct calls *calls, enum name_kind kind, const char *text, const char *file, uint32_t *ret);
int lane_calls_enter(struct calls *calls, uint32_t parent, uint32_t name, uint32_t *ret);
void lane_calls_done(struct calls *calls);
/* The outermost calls down to one; at most max. Returns how many. */
uint32_t lane_calls_path(const struct calls *calls, uint32_t call, uint32_t *path, uint32_t max);

/* ---- columns.c: intervals folded to columns ---- */

/* The time that one sample stands for. There may be millions. */
struct __attribute__((packed, aligned(4))) interval {
	uint64_t start_ns;
	uint64_t length_ns : 56, state : 4, gil : 2, gc : 2;
	uint32_t call;
};

struct column {
	uint32_t call;                  /* 0: none */
	uint32_t n;                     /* samples that begin in it */
	uint8_t state;                  /* enum thread_state, of most of its time */
	uint8_t running, held, covered; /* shares of its time, of SHARE_ALL: on a CPU, with the GIL, known at all */
};

struct level {
	struct column *columns;
	uint64_t first; /* index of the first: its time >> the level */
	size_t n;
};

struct lane_thread {
	int32_t pid, tid;
	char *name, *process;
	struct interval *items;
	size_t n, allocated;
	unsigned first_level, n_levels; /* 0: none were made */
	struct level levels[MAX_LEVEL + 1];
};

static inline uint64_t interval_end(const struct interval *item)
{
	return item->start_ns + item->length_ns;
}

/* columns_make - build the levels of a thread again. -ENOMEM. */
int columns_make(struct lane_thread *thread, const struct calls *calls);
/* columns_fold - n columns of 2^level ns, from an index on. -ENOMEM. */
int columns_fold(const struct lane_thread *thread, const struct calls *calls, unsigned level, uint64_t first, size_t n,
		 struct column *ret);
void columns_drop(struct lane_thread *thread);

/* ---- events.c: what programs and GPUs did, by rows of their own ---- */

struct event {
	uint64_t start_ns, end_ns; /* UINT64_MAX: not yet */
	uint32_t name;
	uint32_t row;
};

struct event_lane {
	const char *kind;
	char *title;
	int32_t pid, tid;
	struct event *items; /* by start_ns */
	uint64_t *reach;     /* the latest end of all up to this one */
	size_t n, allocated;
	uint32_t n_rows;
};

/* ---- curves.c ---- */

struct curve_point {
	uint64_t time_ns;
	double value;
};

struct curve {
	char *name;
	const char *unit;
	struct curve_point *points;
	size_t n, allocated;
};

/* ---- lanes.c ---- */

struct lanes {
	sqlite3 *db;
	struct calls calls;
	struct lane_thread **threads; /* by pid and tid */
	size_t n_threads, threads_allocated;
	struct event_lane *events;
	size_t n_events, events_allocated;
	struct curve *curves;
	size_t n_curves, curves_allocated;
	uint64_t started_ns;       /* the recording's start */
	uint64_t begin_ns, end_ns; /* of all that is known; equal: nothing */
	uint64_t n_samples;
	int64_t last_sample;              /* its number */
	int64_t version;                  /* of the file's data */
	uint64_t read_ns, took_ns;        /* when it was read, and how long that took: CLOCK_MONOTONIC */
	uint64_t whole_ns, whole_took_ns; /* the same of the last time that all samples were read */
	char *unit, *command;             /* NULL: nanoseconds; unknown */
	bool is_live;
	bool is_cut; /* there are more events than are kept */
};

int lanes_load_samples(struct lanes *lanes, int64_t after);
int lanes_load_events(struct lanes *lanes);
int lanes_load_curves(struct lanes *lanes);
void lanes_drop_events(struct lanes *lanes);
void lanes_drop_curves(struct lanes *lanes);
/* One that is known reaches from begin_ns to end_ns. */
void lanes_reach(struct lanes *lanes, uint64_t begin_ns, uint64_t end_ns);

#endif
