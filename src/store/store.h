/* SPDX-License-Identifier: MIT */
/* store.h - a recording as one SQLite file.
 *
 * The writer puts rows, in transactions of its caller's making; the reader
 * hands out a read-only connection whose schema has been checked. src/catalogue/tables
 * documents the tables. Ids are given out by the caller, dense from 1.
 */
#ifndef PROBING_STORE_H
#define PROBING_STORE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sample.h"
#include "src/store/gpu.h"
#include "src/store/series.h"

#define STORE_APPLICATION_ID 0x50726f62 /* "Prob" */
#define STORE_SCHEMA_VERSION 2
#define STORE_PLAIN_VERSION 1 /* whose samples are a plain table */
#define STORE_PAGE_BYTES 4096

/* Rows. Strings are borrowed for the call; NULL becomes SQL NULL; for ids and
 * lines 0 becomes NULL. Times are CLOCK_REALTIME nanoseconds. */
struct run_row {
	uint64_t started_ns;
	const char *command, *mode, *stack_source, *host, *kernel, *probing, *python;
	pid_t pid;
	double hz;
	bool kernel_frames;
	unsigned cpus;
};
struct process_row {
	pid_t pid, parent_pid;
	const char *name, *command, *python;
	uint64_t started_ns, ended_ns;
};
struct thread_row {
	pid_t pid, tid;
	const char *name;
	uint64_t started_ns, ended_ns;
};
struct module_row {
	int64_t module;
	const char *path, *build_id;
};
struct function_row {
	int64_t function;
	const char *name, *symbol, *role, *file;
	enum frame_kind kind;
	int first_line;
	int64_t module;
};
struct frame_row {
	int64_t frame;
	enum frame_kind kind;
	int64_t function, module;
	int line;
	int column, end_line, end_column; /* from 1; 0: unknown */
	bool has_address, is_eval, without_cfi;
	uint64_t address;
	int64_t inlined_into;
};
struct stack_row {
	int64_t stack, parent, frame;
	unsigned depth;
};
struct sample_row {
	uint64_t time_ns;
	pid_t pid, tid;
	unsigned cpu;
	uint64_t weight;
	enum verdict verdict;
	enum stack_end end;
	int64_t stack;
	enum answer gil, gc;
	enum thread_state state; /* STATE_NONE becomes NULL */
};
struct total_row { /* added to what the file holds; stack 0 stays 0: nothing could be read */
	pid_t pid, tid;
	int64_t stack;
	uint64_t samples, weight;
};

/*
 * Times in a file are seconds since 1970 as REAL, which tells 2^-22 s apart (about 238 ns, until 2038).
 * store_seconds - a time (CLOCK_REALTIME, ns) in a file. store_nanoseconds - a file's time; 0: it is none.
 * store_time - the nearest time that a file keeps.
 */
double store_seconds(uint64_t time_ns);
uint64_t store_nanoseconds(double seconds);
uint64_t store_time(uint64_t time_ns);

struct store;

/*
 * store_create - make a new recording file.
 * @path: an existing file there is first renamed to PATH.old (with its -wal
 *        and -shm, replacing an older PATH.old). Must not be open in this process.
 * @ret_kept: set to true when that happened; may be NULL.
 * @ret:  ended with store_close() or store_finish().
 * Errors: what rename(2)/open(2) report; -ENOSPC; -EBUSY another recorder
 *         writes that file; -EISDIR; -ENXIO a device or the like; -EIO.
 * On failure nothing half-made is left behind and the old file is back.
 */
int store_create(const char *path, bool *ret_kept, struct store **ret);

/* store_set_mode - permissions of a recording that was created. Errors: those of fchmod(2). */
int store_set_mode(struct store *store, mode_t mode);

/* A batch is one transaction. On -ENOSPC and other errors of commit the
 * batch is rolled back and the file holds all earlier ones. */
int store_begin(struct store *store);
int store_commit(struct store *store);
void store_rollback(struct store *store);

/*
 * All: 0 or negative errno (-ENOSPC, -EDQUOT, -EFBIG, -EIO, -ENOMEM; -ESTALE the file is
 * no longer at its path; -EINVAL a row that the schema forbids). Where SQLite had to give up the whole batch,
 * the rest of its puts and its commit fail with the same error.
 */
int store_put_run(struct store *store, const struct run_row *row);
int store_put_process(struct store *store, const struct process_row *row); /* replaces that pid's row */
int store_put_thread(struct store *store, const struct thread_row *row);   /* replaces that tid's row */
int store_put_module(struct store *store, const struct module_row *row);
int store_put_function(struct store *store, const struct function_row *row);
int store_put_frame(struct store *store, const struct frame_row *row);
int store_put_stack(struct store *store, const struct stack_row *row);
int store_put_sample(struct store *store, const struct sample_row *row);
int store_put_total(struct store *store, const struct total_row *row);
struct evaluation_place_row {
	int64_t module, address;
	const char *holds;
	bool is_leaf;
	int64_t below_cfa; /* 0: in a register */
	int reg;
	int64_t agreed, tries;
};
int store_put_evaluation_place(struct store *store, const struct evaluation_place_row *row);
/* A time in which recording was paused. Put again when it ends. */
struct pause_row {
	uint64_t started_ns, ended_ns; /* CLOCK_REALTIME; ended_ns 0: it lasts */
};
int store_put_pause(struct store *store, const struct pause_row *row);
int store_put_counter(struct store *store, const char *name, int64_t value); /* insert or replace */

/* Name a frame that was put without: sets function, line and inlined_into. */
int store_name_frame(struct store *store, int64_t frame, int64_t function, int line, int64_t inlined_into);
/* What a frame is may only show with its name: a trampoline stands for a Python function. */
int store_set_frame_kind(struct store *store, int64_t frame, enum frame_kind kind);
/* Change names that are there: remove the frames that a place's code is inlined into, before it
 * is named anew; set what is known of a function (NULL: as it is). */
int store_drop_inlined(struct store *store, int64_t frame);
int store_refresh_function(struct store *store, int64_t function, const struct function_row *row);
int store_set_run_python(struct store *store, const char *python);

/* ---- What is known of runs besides (run_facts.c) ---- */

/* Column cpu_model of the run, which is there. */
int store_set_run_cpu(struct store *store, const char *model);

/* A run of a command that was measured. Values below 0 become NULL, and run 0. */
struct bench_run_row {
	int64_t run; /* its recording */
	const char *command;
	uint64_t started_ns; /* CLOCK_REALTIME */
	double wall_s, user_s, sys_s;
	int64_t max_rss_bytes;
	int exit_status;
};
int store_put_bench_run(struct store *store, const struct bench_run_row *row);

/* ---- What samples were taken at, where it was not the CPU clock (event_table.c) ---- */

/*
 * store_set_run_event - columns event, unit and period of the run, which is there.
 * @counts: weights are numbers of events, not nanoseconds.
 * @period: a sample is taken at one event of so many; 0: at a frequency.
 */
int store_set_run_event(struct store *store, const char *event, bool counts, uint64_t period);

struct field_column {
	const char *name, *type; /* INTEGER, TEXT, BLOB */
};
struct field_value {
	enum { FIELD_NULL, FIELD_INTEGER, FIELD_TEXT, FIELD_BLOB } type;
	int64_t integer;
	const void *bytes; /* borrowed for the call; text is UTF-8 */
	size_t n_bytes;
};

/*
 * store_create_fields - the table that keeps what a tracepoint tells, one at most in a recording.
 * @name: of the table. A column whose name is taken gets "_" behind it.
 * Errors: -EINVAL names that SQLite does not take; those of putting rows.
 */
int store_create_fields(struct store *store, const char *name, const struct field_column *columns, size_t n);

/* store_put_fields - a row of that table, for the sample that was put last. @values: one for each column. */
int store_put_fields(struct store *store, const struct field_value *values, size_t n);

/*
 * store_finish - commit an open batch, mark the run clean, make one file of
 * database and WAL, close. While a reader is at work the WAL stays beside the
 * file, which is no error. The store is gone afterwards, whatever is returned;
 * after -ENOSPC and the like the file and its WAL still hold every batch.
 */
int store_finish(struct store *store, uint64_t ended_ns);

/*
 * Its connection: of a recording that is being made for rows that are read from another one, of one that is being changed
 * for statements of others, which change the file at once, or within BEGIN and COMMIT. Samples go
 * through store_put_sample() in any case. Borrowed.
 */
sqlite3 *store_connection(const struct store *store);

/*
 * store_create_plain - a new database without any tables, for samples as a plain table (STORE_PLAIN_VERSION).
 * @path: of a file that is not there. Until store_close() it is worth nothing: it has no way back.
 * Errors: those of store_create().
 */
int store_create_plain(const char *path, struct store **ret);

/*
 * store_copy_table - a table of another connection's file made here, with its rows and its indexes.
 * No text of that file is run: a table of a recording is made as we know it, any other by the names and plain types
 * of its columns, its primary key and indexes over columns.
 * @keep_going: called every some thousand rows; false ends it with -ECANCELED. May be NULL.
 * Errors: -EBADMSG damaged; those of writing.
 */
int store_copy_table(sqlite3 *from, sqlite3 *to, const char *table, bool (*keep_going)(void *data, uint64_t n),
		     void *data);

/*
 * store_copy_rows - all rows of a table into one of that name elsewhere, as far as both have the columns.
 * The rest as store_copy_table().
 */
int store_copy_rows(sqlite3 *from, sqlite3 *to, const char *table, bool (*keep_going)(void *data, uint64_t n),
		    void *data);

/* Whether that is the name of a table or view that recordings have; capitals do not matter. */
bool store_is_own_name(const char *name);

/*
 * store_copy_views - all views that are not there yet: ours as we know them, those of others by a statement that can do
 * nothing but make that view. What cannot be made so is left out, with a notice.
 */
int store_copy_views(sqlite3 *from, sqlite3 *to);

/* Close without marking the run clean. NULL is fine. */
void store_close(struct store *store);
void store_closep(struct store **store);

/*
 * store_open - open a recording that is there, to change it; nobody else may while it is open.
 * Until store_commit() returns 0 nothing reaches the file, whatever happens to this process.
 * @ret: ended with store_settle() and store_close().
 * Errors: those of store_open_reader(); -EBUSY it is being recorded or changed by
 * somebody else; -EROFS.
 */
int store_open(const char *path, struct store **ret);

/* ---- Keeping only what is newest (retention.c) ---- */

struct store_limits {
	int64_t max_bytes; /* of the file and its log; 0: any */
	uint64_t keep_ns;  /* how old samples may be; 0: any */
};

static inline bool store_has_limits(const struct store_limits *limits)
{
	return limits->max_bytes > 0 || limits->keep_ns > 0;
}

struct store_space {
	int64_t used_bytes; /* of the file, the log's contents included */
	int64_t free_bytes; /* in the file, for rows to come */
	int64_t n_samples;  /* in the file */
};

/* Move the log into the file when it is so long, and shorten it then. */
int store_limit_log(struct store *store, int64_t max_bytes);
int store_read_space(struct store *store, struct store_space *ret);

/*
 * store_drop_oldest - remove samples from the oldest on, and take them off their totals. In a transaction.
 * @max: how many, @before_ns: only those before that time (CLOCK_REALTIME, UINT64_MAX: any).
 * @ret: how many there were.
 */
int store_drop_oldest(struct store *store, int64_t max, uint64_t before_ns, int64_t *ret);

/*
 * store_drop_unused - remove stacks, frames, functions, and threads and processes that have ended, that no
 * total leads to. Stacks and frames after the given ones stay. In a transaction.
 */
int store_drop_unused(struct store *store, int64_t last_stack, int64_t last_frame);
int store_each_function_id(struct store *store, void (*take)(void *data, int64_t function), void *data);

/* Make the file shorter by free space. Outside of transactions. */
int store_give_back(struct store *store, int64_t max_bytes);

/* Make one file of database and log, where there is one. The store can only be closed after. */
int store_settle(struct store *store);

/* Bytes of the file and its WAL. */
int64_t store_bytes(const struct store *store);

/*
 * store_is_written - whether a recorder, or who changes it, has the file now. To be asked before this
 * process opens it: asking drops the locks that SQLite has on it.
 */
bool store_is_written(const char *path);

/* ---- What a finished recording adds up to (checksum.c) ---- */

#define STORE_SEAL "checksum" /* the counter that holds it */
enum store_checksum {
	SEAL_NONE,   /* it does not say: it did not end cleanly, or is of an older version */
	SEAL_WHOLE,  /* all values are those of its end */
	SEAL_BROKEN, /* some are not: damaged, or changed by another program */
};
/* Say so of a recording that was made from others, when all is in it. */
int store_checksum(struct store *store);
/* Add everything up again. Errors: those of reading; -EBADMSG damage that reading runs into. */
int store_verify_checksum(sqlite3 *db, enum store_checksum *ret);

/*
 * store_open_reader - open a recording for reading only.
 * @ret:  a plain connection, read-only (query_only on); sqlite3_close() ends it.
 * Errors: -ENOENT no such file; -EISDIR; -ENXIO; -EACCES; -EBADMSG not SQLite or
 *         damaged; -EMEDIUMTYPE SQLite, but not one of ours; -EPROTONOSUPPORT
 *         a newer schema than this build knows.
 */
int store_open_reader(const char *path, sqlite3 **ret);

/*
 * store_distrust - set a connection up before the first look at a file of somebody else's, a recording or another database:
 * nothing that stands in it is run but its views, and how large, wide and deep things may be is limited. Returns
 * SQLite's code.
 */
int store_distrust(sqlite3 *db);

/*
 * store_check_schema - whether all that sqlite_schema describes is plain: tables with pages and without computed
 * columns, their indexes, views, triggers (which are never run).
 * Errors: -EMEDIUMTYPE something else; -EBADMSG damaged; -ENOMEM.
 */
int store_check_schema(sqlite3 *db);

/*
 * store_permit_attach - let a reader's connection attach further databases, to be read, as its user asks for.
 * Until then it attaches none but in memory.
 */
void store_permit_attach(sqlite3 *db);

/*
 * store_on_notice - set who hears notices: that a file of another user beside a recording is ignored, that
 * a copy is read. One for the process, set before anything is opened. @hears: may be NULL, as it is at first.
 */
void store_on_notice(void (*hears)(const char *sentence));

/* One sentence for such an error, naming path and remedy. @to: at least 256 bytes. */
void store_explain(int error, const char *path, char *to, size_t n_bytes);

/* SQLite's result code as a negative errno. */
int store_errno(sqlite3 *db, int sqlite_code);

/* ---- Reading names that are there, to complete them (places.c) ---- */

/* A place of native or kernel code as the file has it. */
struct place_row {
	int64_t frame, function, module, inlined_into; /* 0: none */
	enum frame_kind kind;
	bool has_address, is_eval;
	uint64_t address;
	int line;       /* 0: unknown */
	bool is_offset; /* its name is made of module and offset */
};

/* What the file says of its recording, as far as it decides whose kernel it was. */
struct run_names {
	char host[256], kernel[256];
	double started; /* seconds since 1970 */
};

/* All: rows go to @take, which must not change the file; a negative result ends it and is
 * returned. Strings are borrowed for the call. -EBADMSG: ids that no recorder gives out. */
int store_each_module(struct store *store, int (*take)(void *data, const struct module_row *row), void *data);
int store_each_place(struct store *store, int (*take)(void *data, const struct place_row *row), void *data);
/* Of native and kernel functions; symbol, role and file are left out. */
int store_each_function(struct store *store, int (*take)(void *data, const struct function_row *row), void *data);
int store_read_run(struct store *store, struct run_names *ret);
/* The largest frame and function there is; 0: none. */
int store_last_ids(struct store *store, int64_t *ret_frame, int64_t *ret_function);
/* Remove native and kernel functions that no frame is in any more. */
int store_drop_unused_functions(struct store *store);

/* ---- Profiles out of a file (src/profile/profile.h) ---- */

struct profile;

/*
 * profile_load - read frames, tree, totals and threads.
 * Cyclic, dangling or out-of-range references are -EBADMSG.
 */
int profile_load(sqlite3 *db, struct profile **ret);

/* Which samples are loaded. All zero: all, as totals. */
struct profile_filter {
	bool has_since, has_until;
	double since, until; /* seconds since 1970; since <= timestamp < until */
	const char *where;   /* SQL over the columns of `sample`; NULL: any */
	bool held;           /* the thread held the GIL */
	bool with_samples;   /* samples one by one, too */
};

/*
 * profile_load_view - the same of the samples alone that pass: their totals, and themselves if asked for.
 * Errors: also -ENODATA, the file does not say who held the GIL; -EINVAL, where is no condition over
 * `sample`, or fails: sqlite3_errmsg() says how.
 */
int profile_load_view(sqlite3 *db, const struct profile_filter *filter, struct profile **ret);

/*
 * profile_has_samples - whether there is a single sample in the file. Where not, it knows sums alone, and
 * nothing can be chosen by time or where.
 */
bool profile_has_samples(sqlite3 *db);

#endif
