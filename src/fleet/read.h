/* SPDX-License-Identifier: MIT */
/* read.h - a part of a fleet's samples as a recording.
 *
 * The servers add up samples by process, thread and stack. Only the sums, and the stacks and functions that they need, are
 * fetched; a new recording gets them as sums without times, as from an import. So every verb shows them as it shows a
 * file, and the same as of the recordings that were sent, merged.
 *
 * Invariants: 1. A server that does not answer is an error, unless fleet_place_to_read.is_partial is set; then
 * fleet_missing() names it. 2. No text is ever a part of a statement: texts are hexadecimal digits (fleet_text()),
 * numbers are printed from integers, and words of conditions come from tables of ours. Only fleet_ask() sends a
 * statement of the user. 3. A stack or a function whose row is missing is an error, as rows without their stack would
 * be less than the whole.
 */
#ifndef PROBING_FLEET_READ_H
#define PROBING_FLEET_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/glob_list.h"
#include "base/util.h"
#include "src/store/store.h"

/* Where the tables are. Strings are borrowed until fleet_close(). */
struct fleet_place_to_read {
	const char *base;            /* http://HOST:PORT or https://HOST:PORT */
	const char *user, *password; /* NULL: none */
	const char *ca_file;         /* NULL: the system's authorities */
	const char *database;
	bool is_partial;
	bool (*keep_going)(void *data); /* about once a second; false ends with -ECANCELED; may be NULL */
};

/* Which samples. All zero: all of the only job there is. Borrowed. */
struct fleet_selection {
	const char *job;
	const struct glob_list *hosts; /* globs; NULL or empty: all */
	const char *ranks;             /* "0,8-15"; NULL: all */
	bool has_since, has_until;
	double since, until;  /* seconds since 1970: since <= time < until */
	const char *where;    /* fleet_parse_where(); NULL: no condition */
	bool merge_processes; /* all processes are one, with one thread */
	bool with_lines;      /* executing lines of innermost Python frames, too, which single samples alone have */
};

struct fleet;

/*
 * fleet_open - connect, and read the server's version.
 * @ret: set after a failure, too, for fleet_error(), unless that is -ENOMEM; ended with fleet_close().
 * Errors of all: those of http_open(); -EAGAIN what passes, as a lost connection; -EACCES the server refuses the user;
 * -ENOENT it has no tables; -EPROTO it is no ClickHouse, or has other tables; -EREMOTEIO it refuses a user's statement;
 * -EKEYREJECTED its certificate; -EMSGSIZE a longer answer than expected; -EPROTONOSUPPORT its version; -EBADMSG its answer is damaged; -ENODATA nothing was selected, or rows are missing;
 * -EINVAL a part of the selection is none; -ENOMEM.
 */
int fleet_open(const struct fleet_place_to_read *place, struct fleet **ret);
void fleet_close(struct fleet *fleet);
DEFINE_CLEANUP(struct fleet *, fleet_close)

/* A sentence about the last failure. */
const char *fleet_error(const struct fleet *fleet);

/*
 * fleet_select - find the runs of a job on some hosts, instead of those found before. Of the selection, job and hosts matter.
 * Without a job it is the only one that there was at the first call.
 */
int fleet_select(struct fleet *fleet, const struct fleet_selection *selection);
/* When the first of these runs began, in seconds since 1970. */
double fleet_started(const struct fleet *fleet);

/*
 * fleet_read - fetch samples of the runs and write them into a new recording.
 * @store: without rows. @version: of this program. @ret_ended_ns: for store_finish().
 */
int fleet_read(struct fleet *fleet, const struct fleet_selection *selection, struct store *store, const char *version,
	       uint64_t *ret_ended_ns);

/* ---- Ranks ---- */

/* A function of a stack. Texts are never NULL, "": unknown; borrowed for the call. */
struct fleet_call {
	const char *kind, *role, *name, *file, *module;
};

/* What a rank did in the selected time. */
struct fleet_rank {
	int32_t rank;     /* -1: unknown; then it is a recording */
	uint32_t pid;     /* of its first process; 0: unknown */
	const char *host; /* borrowed for the call */
	double seconds;   /* how long its recordings lasted of that time */
	double cpu_s;     /* CPU time of all of its threads; negative: weights are none */
	uint64_t n_samples;
};

/* Called in this order: each stack, then each rank, and behind it each of its stacks. Negative results end it. */
struct fleet_rank_visitor {
	int (*stack)(void *data, const struct fleet_call *calls,
		     size_t n_calls); /* outermost first; numbered from 0 on */
	int (*rank)(void *data, const struct fleet_rank *rank);
	int (*samples)(void *data, size_t stack, uint64_t n); /* of the last rank, with that stack */
	void *data;
};

/*
 * fleet_read_ranks - what each rank of the runs did, added up by the servers: by totals, if these can answer.
 * Of the selection merge_processes does not matter. Samples without a stack are left out.
 */
int fleet_read_ranks(struct fleet *fleet, const struct fleet_selection *selection,
		     const struct fleet_rank_visitor *visitor);

/* ---- Live ---- */

struct fleet_live;

/* What an answer is of. */
struct fleet_live_state {
	size_t n_hosts, n_ranks; /* that have samples in it; ranks: recordings, if these have no ranks */
	uint64_t newest_ns;      /* when the newest sample was taken; 0: there is none */
	double hz;
};

/*
 * fleet_live_new - the last samples of a job, for asking again and again.
 * @fleet, @selection: borrowed; of the selection times do not matter, and where may not change.
 * @store: without rows, outside of a transaction; gets stacks, functions and threads. Borrowed.
 * Errors: -EINVAL the shippers send no single samples.
 */
int fleet_live_new(struct fleet *fleet, const struct fleet_selection *selection, struct store *store,
		   const char *version, struct fleet_live **ret);
void fleet_live_free(struct fleet_live *live);
DEFINE_CLEANUP(struct fleet_live *, fleet_live_free)

/*
 * fleet_live_ask - sums of the last seconds before the newest sample.
 * @take: gets each sum by process, thread and stack, as if it were a sample; the stack's row is in the store afterwards.
 * After an error a new one has to be made, with a new store: -EAGAIN what passes.
 */
int fleet_live_ask(struct fleet_live *live, double window_s,
		   int (*take)(void *data, const struct sample_row *row, uint64_t n_samples), void *data,
		   struct fleet_live_state *ret);

/* Shards that did not answer, in words; NULL: all did, as far as fleet_read() has asked. */
const char *fleet_missing(const struct fleet *fleet);

/*
 * fleet_ask - send a user's statement, which may change nothing, and pass on the answer.
 * @format: of ClickHouse, "JSONCompact", if the statement has none.
 * @take: gets the answer piece by piece.
 */
int fleet_ask(struct fleet *fleet, const char *sql, const char *format,
	      int (*take)(void *data, const void *bytes, size_t n_bytes), void *data);

/*
 * fleet_parse_where - a condition: COLUMN OP VALUE, several joined by AND, as an expression of SQL on the table samples.
 * Columns are those of sample and samples: pid, tid, rank, cpu, weight (numbers), gil, gc (0, 1), verdict, state (words in
 * quotes).
 * @ret: owned by the caller. @why: of -EINVAL, a sentence. Errors: -EINVAL, -ENOMEM.
 */
int fleet_parse_where(const char *text, char **ret, char *why, size_t n_why);

/* fleet_parse_ranks - "0,8-15" as an expression of SQL on the column rank. Errors: -EINVAL, -ENOMEM. */
int fleet_parse_ranks(const char *text, char **ret);

#endif
