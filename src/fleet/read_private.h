/* SPDX-License-Identifier: MIT */
/* read_private.h - what the files of reading share. Private. */
#ifndef PROBING_FLEET_READ_PRIVATE_H
#define PROBING_FLEET_READ_PRIVATE_H

#include "base/id_map.h"
#include "base/interner.h"
#include "src/fleet/read.h"
#include "src/fleet/row_cursor.h"
#include "src/fleet/server.h"

enum { FLEET_MAX_ERROR = 1024 };

/* A run; its texts are owned. */
struct fleet_run {
	uint64_t run;
	char *host, *command, *mode, *unit, *event, *stack_source, *python, *kernel, *probing;
	double hz;
	uint32_t cpus;
	uint32_t started, ended; /* seconds since 1970; ended 0: it is not known */
};

struct fleet {
	struct fleet_place_to_read place;
	struct fleet_server server;
	bool may_set_readonly;  /* the user's profile does not say readonly already */
	struct fleet_run *runs; /* in the order of time */
	size_t n_runs, runs_allocated;
	bool is_some;  /* runs are a part of the job's */
	char *job;     /* as an expression */
	char *only;    /* the only job that there was when it was asked for; NULL: nobody asked */
	char *missing; /* NULL: none */
	char error[FLEET_MAX_ERROR];
};

/* fleet_fail - set the sentence; returns error. */
int fleet_fail(struct fleet *fleet, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * fleet_rows - the answer to a statement of ours, as RowBinary.
 * @sql: without FORMAT. @ret: borrows the answer until the next statement.
 */
int fleet_rows(struct fleet *fleet, const char *sql, struct row_cursor *ret);
/* fleet_finish_rows - -EBADMSG if the cursor is damaged, with a sentence. */
int fleet_finish_rows(struct fleet *fleet, const struct row_cursor *cursor);

/* A statement, printed in pieces; begin, print to out, then fleet_send() ends it. */
struct fleet_statement {
	char *sql;
	size_t n;
	FILE *out;
};
int fleet_begin(struct fleet_statement *statement); /* -ENOMEM */
int fleet_send(struct fleet *fleet, struct fleet_statement *statement, struct row_cursor *ret);
void fleet_drop(struct fleet_statement *statement); /* instead of sending */

/* ---- Rows (read_sums.c, read_names.c) ---- */

struct fleet_sum {
	uint64_t run, stack, samples, weight;
	uint64_t running; /* of fleet_fetch_rank_sums(): weight of threads that ran */
	uint32_t pid, tid;
	uint32_t last; /* of fleet_fetch_rank_sums(): the last minute with samples, in seconds since 1970 */
	int32_t rank;
	uint16_t leaf; /* the line of its innermost Python frame; 0: unknown, or not fetched */
};

/* A thread with its process. Names are owned. */
struct fleet_thread {
	uint64_t run;
	uint32_t pid, tid;
	int32_t rank;
	char *name, *process;
	uint32_t apart; /* added to pid and tid where another run has the pid */
};

struct fleet_stack {
	size_t first, n; /* in functions_of_stacks */
};

struct fleet_function {
	uint64_t function;
	uint32_t line;
	char *kind, *role, *name, *file, *module, *build_id; /* owned */
};

/* All that is fetched. Ended with fleet_answers_done(). */
struct fleet_answers {
	struct fleet_sum *sums;
	size_t n_sums, sums_allocated;
	struct fleet_thread *threads; /* by run, pid, tid */
	size_t n_threads, threads_allocated;
	struct id_map stack_of; /* id -> index into stacks */
	struct fleet_stack *stacks;
	size_t n_stacks, stacks_allocated;
	uint64_t *functions_of_stacks;
	size_t n_functions_of_stacks, functions_of_stacks_allocated;
	struct id_map function_of; /* id -> index into functions */
	struct fleet_function *functions;
	size_t n_functions, functions_allocated;
};
void fleet_answers_done(struct fleet_answers *answers);
void fleet_forget_threads(struct fleet_answers *answers); /* before they are fetched again */
int fleet_compare_threads(const void *a, const void *b);  /* by run, pid, tid */

/* fleet_are_raw - whether all shipments of the job have single samples. */
int fleet_are_raw(struct fleet *fleet, bool *ret);
/* fleet_newest - when the newest sample was taken, in ms since 1970; 0: there is none. */
int fleet_newest(struct fleet *fleet, const struct fleet_selection *selection, uint64_t *ret);
/* The following add to what the answers have. */
int fleet_fetch_samples(struct fleet *fleet, const struct fleet_selection *selection, struct fleet_answers *answers);
int fleet_fetch_sums(struct fleet *fleet, const struct fleet_selection *selection, struct fleet_answers *answers);
/* The same by rank, run and stack, in this order. */
int fleet_fetch_rank_sums(struct fleet *fleet, const struct fleet_selection *selection, struct fleet_answers *answers);
int fleet_fetch_threads(struct fleet *fleet, struct fleet_answers *answers);
/* fleet_fetch_stacks - stacks of the sums that the answers lack, and their functions. */
int fleet_fetch_stacks(struct fleet *fleet, struct fleet_answers *answers);

/* fleet_note_missing - find the shards that do not answer. */
int fleet_note_missing(struct fleet *fleet);

/* ---- Writing (read_write.c) ---- */

/* Answers as rows of a store. All zero but the first three. */
struct fleet_writer {
	struct fleet *fleet;
	const struct fleet_answers *answers;
	struct store *store;
	struct interner modules, frames,
		nodes;                /* frames: (function, line); nodes: (parent, frame) of stacks; numbers + 1 are
						   ids of rows */
	size_t n_functions, n_stacks; /* of the answers, that are written */
	int64_t *stacks;              /* by answers->stacks: the row of its innermost frame */
	struct interner variants;     /* (stack, line of its innermost Python frame) */
	int64_t *variant_stacks;      /* by variant: the row of its innermost frame */
	size_t n_variants, variants_allocated;
};
void fleet_writer_done(struct fleet_writer *writing);
/* fleet_write_names - functions and stacks that were fetched since the last call. */
int fleet_write_names(struct fleet_writer *writing);
/* fleet_write_run - the runs as one. */
int fleet_write_run(struct fleet_writer *writing, bool merge_processes, const char *version);
/* fleet_write_threads - all threads with their processes. @with_ranks: in their names, too. */
int fleet_write_threads(struct fleet_writer *writing, bool with_ranks);
/* fleet_find_stack - the row of a sum's stack; 0: none. */
int fleet_find_stack(struct fleet_writer *writing, const struct fleet_sum *sum, int64_t *ret);
/* fleet_find_rank - the first process of a run with that rank; NULL: unknown. */
const struct fleet_thread *fleet_find_rank(const struct fleet_answers *answers, uint64_t run, int32_t rank);
/* fleet_find_thread - of a sum; NULL: unknown. */
const struct fleet_thread *fleet_find_thread(const struct fleet_answers *answers, const struct fleet_sum *sum);

/* fleet_write - the answers as a recording (read_write.c). */
int fleet_write(struct fleet *fleet, const struct fleet_answers *answers, bool merge_processes, struct store *store,
		const char *version);

#endif
