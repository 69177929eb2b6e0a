/* SPDX-License-Identifier: MIT */
/* archive.h - whole recordings: describe one, check it, and make one of several.
 *
 * Readers come from store_open_reader(); samples are read as rows of the table sample and written by
 * store_put_sample(), independent of their form in a file.
 */
#ifndef PROBING_ARCHIVE_H
#define PROBING_ARCHIVE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- Description of a recording (about.c) ---- */

/* A row of run. Strings are owned by the struct about, never NULL; "" if the file does not have them. */
struct about_run {
	int64_t run, pid, cpus, period;
	double started, ended; /* seconds since 1970; ended 0: it does not say */
	bool clean, kernel_frames;
	double hz;
	char *command, *mode, *stack_source, *python, *host, *kernel, *probing, *event, *unit;
};

enum about_part { PART_SAMPLES, PART_TREE, PART_NAMES, PART_ROWS, PART_OTHER, PART_FREE, N_PARTS };

struct about {
	struct about_run *runs;
	size_t n_runs, runs_allocated;
	int64_t schema_version;
	int64_t n_samples, n_taken, n_lost, n_dropped; /* taken, lost, dropped: -1 it does not say */
	int64_t n_processes, n_threads, n_modules, n_functions, n_frames, n_stacks, n_pauses;
	int64_t n_rows, n_rows_lost; /* of programs (row_table) */
	char *row_tables;            /* their tables: "spans, steps"; NULL: none */
	double first, last;          /* timestamps of samples; 0: there are none */
	int64_t file_bytes, log_bytes;
	int64_t part_bytes[N_PARTS];
	bool has_parts;  /* whether this SQLite has dbstat */
	bool is_written; /* a recorder has it just now */
};

extern const char *const about_part_names[N_PARTS];

/*
 * about_read - read the description of a recording.
 * @path, @is_written: results of store_is_written() before it was opened.
 * @ret: ended with about_done(), also after a failure.
 * Errors: -EBADMSG damaged; -ENOMEM; those of reading.
 */
int about_read(sqlite3 *db, const char *path, bool is_written, struct about *ret);
void about_done(struct about *about);

/* ---- Whether it is sound (check.c) ---- */

struct check_result {
	uint64_t n_wrong;
	int64_t n_samples; /* that could be read */
	bool is_verified;  /* it has a checksum, so that each value was checked */
};

/*
 * check_recording - check all of it: SQLite's own check, references between rows, each sample, the checksum.
 * @say: called with a sentence for each problem, at most some hundred. Borrowed for the call.
 * Errors: -ENOMEM, -EINTR. Damage is a result, not an error, even if it prevents reading.
 */
int check_recording(sqlite3 *db, void (*say)(void *data, const char *sentence), void *data, struct check_result *ret);

/* ---- Another one out of one or several (copy.c) ---- */

struct copy_progress {
	const char *what; /* "stacks", "samples" */
	uint64_t n_done, n_all;
};

/* How much the clock of a source's machine is ahead of a common one; all zero: that was not measured. */
struct copy_clock {
	bool is_known;
	int64_t offset_ns, error_ns; /* error_ns: its limit */
};

struct copy_options {
	bool keep_all; /* tables of others, too: where there is one source */
	/* One for each source: its times are corrected, and run has the offset. NULL: no clock was measured. */
	const struct copy_clock *clocks;
	/* Called now and then; false ends it with -ECANCELED. */
	bool (*keep_going)(void *data, const struct copy_progress *progress);
	void *data;
};

struct copy_result {
	uint64_t n_samples, n_runs, n_moved; /* the last: processes that got another number */
	char why[400];                       /* of -EDOM, -ENOTUNIQ and -EBADMSG: a sentence's end; "" none */
	size_t which;                        /* the source that this is about */
};

/*
 * copy_recordings - write a recording with all contents of the sources.
 * @path: of a file that does not exist yet; on failure the caller removes it, with SQLite's files beside it.
 *        It is complete without those when this returns 0.
 * Equal modules, functions, frames and stacks become one; rows without samples are dropped. pids.c describes
 * how processes with the same number remain distinct.
 * Errors: -EDOM the sources' weights have different units; -ENOTUNIQ too many processes of one number;
 *         -EBADMSG a source is damaged; -ECANCELED; those of writing (store.h).
 */
int copy_recordings(sqlite3 *const *sources, size_t n_sources, const char *path, const struct copy_options *options,
		    struct copy_result *ret);

#endif
