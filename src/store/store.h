/* SPDX-License-Identifier: MIT */
/* store.h - a recording as one SQLite file.
 *
 * The writer puts rows, in transactions that its caller begins and ends; the reader
 * returns a read-only connection with a checked schema. src/catalogue/tables
 * documents the tables. The caller assigns ids, dense from 1.
 */
#ifndef PROBING_STORE_H
#define PROBING_STORE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sample.h"
#include "src/store/flight.h"
#include "src/store/gpu.h"
#include "src/store/program_rows.h"
#include "src/store/series.h"

#define STORE_APPLICATION_ID 0x50726f62 /* "Prob" */
#define STORE_SCHEMA_VERSION 2
#define STORE_PLAIN_VERSION 1 /* whose samples are a plain table */
#define STORE_PAGE_BYTES 4096

/* Rows. Strings are borrowed for the call; NULL becomes SQL NULL; for ids and
 * lines 0 becomes NULL. Times are CLOCK_REALTIME nanoseconds. */
struct rank_identity;
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
	const struct rank_identity *rank; /* in its distributed job; NULL: none */
	uint64_t started_ns, ended_ns;
};
struct thread_row {
	pid_t pid, tid;
	const char *name;
	uint64_t started_ns, ended_ns;
	bool is_fallback; /* an older row of that tid stays */
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
	bool is_unsampled;       /* time without a sample; in a file the stack shows that */
};
struct total_row { /* added to the file's sums; stack 0 stays 0: unreadable */
	pid_t pid, tid;
	int64_t stack;
	uint64_t samples, weight;
};

/*
 * Times in a file are seconds since 1970 as REAL, with a resolution of 2^-22 s (about 238 ns, until 2038).
 * store_seconds - a time (CLOCK_REALTIME, ns) in a file. store_nanoseconds - a file's time; 0: it is none.
 * store_time - the nearest time that a file can store.
 */
double store_seconds(uint64_t time_ns);
uint64_t store_nanoseconds(double seconds);
uint64_t store_time(uint64_t time_ns);

struct store;

/*
 * store_create - create a new recording file.
 * @path: an existing file there is first renamed to PATH.old (with its -wal
 *        and -shm, replacing an older PATH.old). Must not be open in this process.
 * @ret_kept: whether that happened; may be NULL.
 * @ret:  ended with store_close() or store_finish().
 * Errors: what rename(2)/open(2) report; -ENOSPC; -EBUSY another recorder
 *         writes that file; -EISDIR; -ENXIO a device or the like; -EIO.
 * On failure no incomplete file remains, and the old file has its name again.
 */
int store_create(const char *path, bool *ret_kept, struct store **ret);

/* store_set_mode - permissions of a new recording. Errors: those of fchmod(2). */
int store_set_mode(struct store *store, mode_t mode);

/* A batch is one transaction. On -ENOSPC and other errors of commit the
 * batch is rolled back and the file has all earlier ones. */
int store_begin(struct store *store);
int store_commit(struct store *store);
void store_rollback(struct store *store);

/*
 * All: 0 or negative errno (-ENOSPC, -EDQUOT, -EFBIG, -EIO, -ENOMEM; -ESTALE the file is
 * no longer at its path; -EINVAL a row that the schema forbids). If SQLite had to roll back the whole batch,
 * its other puts and its commit fail with the same error.
 */
int store_put_run(struct store *store, const struct run_row *row);
int store_put_process(struct store *store, const struct process_row *row); /* replaces that pid's row */
/* store_has_ranks - whether the table process has columns of hosts and ranks: files of older versions have not. */
bool store_has_ranks(sqlite3 *db);
int store_put_thread(struct store *store, const struct thread_row *row); /* replaces that tid's row; see is_fallback */
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
/* Rows of the tables of metrics, as the catalogue has them: a value for each column. */
#define METRIC_UNKNOWN INT64_MIN /* a number that becomes NULL */
struct metric_value {
	enum metric_type { METRIC_NULL, METRIC_INTEGER, METRIC_REAL, METRIC_TEXT } type;
	union {
		int64_t integer;
		double real;
		const char *text; /* borrowed */
	};
};
extern const char *const store_metric_tables[]; /* their names; NULL ends the list */
/*
 * store_put_metric - a row; the first one creates its table if that is an optional one. Put again for the same moment, the later
 * row stays. @table: of store_metric_tables. -EINVAL: it is not, or has another number of columns; -ENOENT: the file is of a version that has no such table.
 */
int store_put_metric(struct store *store, const char *table, const struct metric_value *values, size_t n);
/*
 * store_drop_metrics_before - drop their rows from before a time, but for those in one block with newer ones. In a transaction. @seconds:
 * since 1970.
 */
int store_drop_metrics_before(struct store *store, double seconds);
/*
 * store_cut_metrics - after that, drop rows from before @kept in blocks that begin before @limit, both in seconds since 1970. The limit is a
 * little earlier, so that a block is cut from time to time, not for each row. In a transaction. Errors: also -EBADMSG a block is damaged.
 */
int store_cut_metrics(struct store *store, double limit, double kept);
/* store_drop_first_metrics - drop their oldest rows, an eighth of their time. @ret: whether there were some. In a transaction. */
int store_drop_first_metrics(struct store *store, bool *ret);
/* store_drop_processes_before - drop those that had ended before a time, of a recording without samples. In a transaction. */
int store_drop_processes_before(struct store *store, double seconds);
/* store_make_metric_table - create one of them in a file that lacks it. */
int store_make_metric_table(sqlite3 *db, const char *table);
/*
 * metric_tables_attach - show all rows of these tables of the connection's recording: also those in blocks, where a recorder moves
 * the older ones. store_open_reader() does it; before catalogue_register(). Again is harmless. Returns SQLite's code.
 */
int metric_tables_attach(sqlite3 *db);
int store_put_counter(struct store *store, const char *name, int64_t value); /* insert or replace */

/* Name a frame that was put without: sets function, line and inlined_into. */
int store_name_frame(struct store *store, int64_t frame, int64_t function, int line, int64_t inlined_into);
/* A frame's kind may be known only with its name: a trampoline belongs to a Python function. */
int store_set_frame_kind(struct store *store, int64_t frame, enum frame_kind kind);
/* Change existing names: remove the inlined frames of a place, before it
 * is resolved again; set the known fields of a function (NULL: unchanged). */
int store_drop_inlined(struct store *store, int64_t frame);
int store_refresh_function(struct store *store, int64_t function, const struct function_row *row);
int store_set_run_python(struct store *store, const char *python);

/* ---- Other properties of runs (run_facts.c) ---- */

/* Column cpu_model of the run, whose row exists. */
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

/* ---- The sampled event, if it is not the CPU clock (event_table.c) ---- */

/*
 * store_set_run_event - columns event, unit and period of the run, whose row exists.
 * @counts: weights are numbers of events, not nanoseconds.
 * @period: every Nth event is sampled; 0: at a frequency.
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
 * store_create_fields - create the table for a tracepoint's fields, at most one in a recording.
 * @name: of the table. A column whose name is taken gets a "_" suffix.
 * Errors: -EINVAL invalid names; those of putting rows.
 */
int store_create_fields(struct store *store, const char *name, const struct field_column *columns, size_t n);

/* store_put_fields - a row of that table, for the sample that was put last. @values: one for each column. */
int store_put_fields(struct store *store, const struct field_value *values, size_t n);

/*
 * store_finish - commit an open batch, mark the run clean, checkpoint
 * the WAL into the database, close. With an active reader the WAL remains beside the
 * file, which is no error. The store is freed in any case;
 * after -ENOSPC and the like the file and its WAL still contain every batch.
 */
int store_finish(struct store *store, uint64_t ended_ns);

/*
 * Its connection: of a new recording for rows from another one; of a changed one for further
 * statements, which change the file at once, or within BEGIN and COMMIT. Samples need
 * store_put_sample() in any case. Borrowed.
 */
sqlite3 *store_connection(const struct store *store);

/*
 * store_create_plain - a new database without any tables, for samples as a plain table (STORE_PLAIN_VERSION).
 * @path: must not exist. Invalid until store_close(): it has no journal.
 * Errors: those of store_create().
 */
int store_create_plain(const char *path, struct store **ret);

/*
 * store_copy_table - create a table of another connection's file here, with its rows and its indexes. Executes no
 * text of that file: our own statement creates a known table of a recording. Any other table gets the names and plain
 * types of its columns, its primary key and indexes over columns.
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
 * store_copy_views - all missing views: known ones by our own statements, others by a statement that can do
 * nothing but create that view. Views for which this is impossible are skipped, with a notice.
 */
int store_copy_views(sqlite3 *from, sqlite3 *to);

/* Close without marking the run clean. NULL is fine. */
void store_close(struct store *store);
void store_closep(struct store **store);

/*
 * store_open - open an existing recording to change it, with an exclusive lock.
 * Until store_commit() returns 0 the file remains unchanged, even if this process dies.
 * @ret: ended with store_checkpoint() and store_close().
 * Errors: those of store_open_reader(); -EBUSY another process records or changes
 * it; -EROFS.
 */
int store_open(const char *path, struct store **ret);

/* ---- Retention (retention.c) ---- */

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
 * store_drop_old_rows - remove rows that programs wrote before a time (CLOCK_REALTIME); the last step before it stays.
 * store_drop_first_rows - remove their first blocks, whatever their time. @ret: how many there were.
 * In a transaction.
 */
int store_drop_old_rows(struct store *store, uint64_t before_ns);
int store_drop_first_rows(struct store *store, int64_t max, int64_t *ret);

/*
 * store_drop_unused - remove stacks, frames, functions, and ended threads and processes, that have no
 * total. Keeps stacks and frames after the given ones. In a transaction.
 */
int store_drop_unused(struct store *store, int64_t last_stack, int64_t last_frame);
int store_each_function_id(struct store *store, void (*take)(void *data, int64_t function), void *data);

/* Make the file shorter by free space. Outside of transactions. */
int store_give_back(struct store *store, int64_t max_bytes);

/* Make one file of database and log, where there is one. The store can only be closed after. */
int store_checkpoint(struct store *store);

/* Bytes of the file and its WAL. */
int64_t store_bytes(const struct store *store);

/*
 * store_is_written - whether a recorder, or another writer, has the file open. Call it before this
 * process opens the file: it releases the locks that SQLite has on it.
 */
bool store_is_written(const char *path);

/* ---- Checksum of a finished recording (checksum.c) ---- */

#define STORE_SEAL "checksum" /* name of its counter */
enum store_checksum {
	CHECKSUM_NONE,    /* the file has none: it did not end cleanly, or is of an older version */
	CHECKSUM_MATCHES, /* all values match it */
	CHECKSUM_DIFFERS, /* some are not: damaged, or changed by another program */
};
/* Say so of a recording that was made from others, when all is in it. */
int store_checksum(struct store *store);
/* Compute it again. Errors: those of reading; -EBADMSG damage that reading detects. */
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
 * store_each_sample - pass the samples of a range, both ends included, in the order of their numbers, which begin at 1.
 * @take: a result other than 0 ends it and is returned.
 * Errors: -EBADMSG damaged, or a file of STORE_PLAIN_VERSION, which has no blocks; -ENOMEM; those of reading.
 */
int store_each_sample(sqlite3 *db, int64_t first, int64_t last,
		      int (*take)(void *data, int64_t number, const struct sample_row *row), void *data);

/*
 * store_distrust - restrict a connection before the first access to a foreign file, a recording or another database:
 * it executes nothing of the file but its views, and sizes and depths are limited. Returns
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
 * store_permit_attach - let a reader's connection attach further databases for reading, at its user's request.
 * Without it, it attaches none but in memory.
 */
void store_permit_attach(sqlite3 *db);
void store_forbid_attach(sqlite3 *db); /* from then on */

/*
 * store_on_notice - set the receiver of notices: a file of another user beside a recording is ignored,
 * a copy is read. One for the process, set before anything is opened. @hears: may be NULL, the default.
 */
void store_on_notice(void (*hears)(const char *sentence));

/* One sentence for such an error, naming path and remedy. @to: at least 256 bytes. */
void store_explain(int error, const char *path, char *to, size_t n_bytes);

/* SQLite's result code as a negative errno. */
int store_errno(sqlite3 *db, int sqlite_code);

/* ---- Reading names that are there, to complete them (places.c) ---- */

/* A place of native or kernel code in the file. */
struct place_row {
	int64_t frame, function, module, inlined_into; /* 0: none */
	enum frame_kind kind;
	bool has_address, is_eval;
	uint64_t address;
	int line;       /* 0: unknown */
	bool is_offset; /* its name consists of module and offset */
};

/* Properties of a recording that identify its kernel. */
struct run_names {
	char host[256], kernel[256];
	double started; /* seconds since 1970 */
};

/* All: pass rows to @take, which must not change the file; a negative result ends it and is
 * returned. Strings are borrowed for the call. -EBADMSG: ids that no recorder assigns. */
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
	const char *label;   /* SQL of a column of `sample`, whose value totals have; NULL: they are not split */
	bool held;           /* the thread held the GIL */
	bool with_samples;   /* samples one by one, too */
	/*
	 * With samples and without the conditions above: read their blocks without SQL, and only samples with a greater number than
	 * after. They are then in the order of their numbers, which is that of the time of each thread but for few. Totals are of all
	 * samples. A file of version 1 has no blocks: it gives all samples, in the order of time.
	 */
	bool by_block;
	int64_t after;
	/* Called now and then while samples are read: how many have been, of how many (0: unknown). May be NULL. */
	void (*show)(void *data, uint64_t n_done, uint64_t n_all);
	void *show_data;
};

/*
 * profile_load_view - the same for samples that pass a filter: their totals, and themselves if requested.
 * Errors: also -ENODATA, the file has no GIL states; -ENOTSUP, samples have no such label; -EINVAL, where is
 * no condition over `sample`, or fails: sqlite3_errmsg() has the reason.
 */
int profile_load_view(sqlite3 *db, const struct profile_filter *filter, struct profile **ret);

/*
 * profile_has_samples - whether there is a single sample in the file. Where not, it knows sums alone, and
 * nothing can be chosen by time or where.
 */
bool profile_has_samples(sqlite3 *db);

#endif
