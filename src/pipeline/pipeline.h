/* SPDX-License-Identifier: MIT */
/* pipeline.h - from captured events to rows.
 *
 * Two threads. The capturing thread (the caller's) keeps the processes and
 * their address spaces, unwinds, stitches and interns; what is new goes into a
 * batch. Once a flush interval the batch is handed to the writing thread,
 * which puts it into the store in one transaction and then looks names up,
 * so that neither the disk nor debug information is ever in the way of a
 * sample. The two share nothing but the queue of batches, and on the way back a
 * list of places where generated code has been replaced.
 */
#ifndef PROBING_PIPELINE_H
#define PROBING_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sample.h"
#include "base/glob_list.h"
#include "src/capture/capture.h"
#include "src/store/store.h"
#include "symbolize/symbolize.h"

struct pipeline;

struct pipeline_counts {
	uint64_t samples; /* rows, n_unsampled included */
	uint64_t weight;  /* of all of them */
	uint64_t by_verdict[VERDICT_N];
	uint64_t by_end[STACK_N_ENDS];
	uint64_t of_32_bit;  /* samples of 32-bit code: without a stack */
	uint64_t python_cut; /* stacks whose Python part was cut */
	uint64_t n_stacks, n_frames;
	uint64_t left_out;             /* samples that were not asked for; they count nowhere else */
	uint64_t nobodys;              /* samples of a process that was no more; they count nowhere else */
	uint64_t gil_ns, gil_known_ns; /* weight of samples that held the GIL, and of those of which that is known */
	uint64_t gc_ns, gc_known_ns;   /* the same of collecting garbage */
	uint64_t first_sample_ns;      /* CLOCK_MONOTONIC; 0: none yet */
	uint64_t dropped;              /* samples that had to go for newer ones */
	struct symbol_limited limited; /* names that were given up; known once all is written */
	uint64_t without_stack; /* waits that were over before they could be looked at, and rows of unsampled_ns */
	uint64_t unsampled_ns;  /* of weight: CPU time without a sample */
	uint64_t n_unsampled;   /* rows that hold unsampled_ns */
	/* Of recordings that tell of waiting: */
	uint64_t by_state[STATE_N];                   /* nanoseconds; they add up to each thread's time */
	uint64_t switches, switch_stacks, unknown_ns; /* see struct waits_sums */
};

/* Which samples are stored, and what of them. All zero: everything. */
struct filter_options {
	struct glob_list threads;   /* numbers, and globs of their names; none: all */
	struct glob_list functions; /* globs of Python functions, one of which must be in the stack; none: any */
	bool gil;                   /* only of threads that hold the GIL, as far as that is known */
	bool no_native;             /* of stacks the Python frames only */
};

struct pipeline_options {
	struct filter_options keep; /* its words are borrowed for the pipeline's life */
	bool no_symbols;            /* open no file for names; pipeline_resymbolize() finds them later */
	/* What its records tell goes into a table; borrowed, outlives the pipeline. NULL: there is none. */
	const struct tracepoint *tracepoint;
	bool is_seldom; /* samples may be far between: interpreters are looked for between them, too */
	enum capture_mode mode;
	bool async; /* put the asyncio tasks into stacks, in whose course they ran */
	/* Gets each sample, in the capturing thread, instead of the file, which then holds the tree and
	 * its names alone: a sample's stack stands there some time after the next flush. NULL: the file
	 * gets them. Negative errno: handed on by pipeline_event(). */
	int (*take_sample)(void *data, const struct sample_row *row);
	void *take_data;
	const uint64_t *capabilities; /* which the writing thread keeps, as bits; NULL: all */
	struct store_limits limits;   /* how much of the newest is kept */
};

/*
 * pipeline_new - start the writing thread.
 * @store: taken over on success; its run row has been put.
 */
int pipeline_new(struct store *store, const struct pipeline_options *options, struct pipeline **ret);

/* Ends the thread without marking the run as clean. NULL is fine. */
void pipeline_free(struct pipeline *pipeline);
void pipeline_freep(struct pipeline **pipeline);

/*
 * pipeline_read_inside - tell a capture of each interpreter that is found, so that frames
 * are read inside the interrupt. Nothing happens where that is not its source.
 * @capture: borrowed; outlives the pipeline.
 */
void pipeline_read_inside(struct pipeline *pipeline, struct capture *capture);

/*
 * pipeline_attach - make a running process known: its maps, its interpreter.
 * @python: receives its Python's version ("" where none was found) and
 *          @python_error why one that is there cannot be read (0: none, or fine).
 * Errors: -ESRCH, -EPERM its memory may not be read, -ENOMEM.
 */
int pipeline_attach(struct pipeline *pipeline, pid_t pid, char *python, size_t python_bytes, int *python_error);

/*
 * pipeline_join - the same of one more process, while others are recorded. Nothing happens where it is known.
 * Returns 1 where it was not.
 */
int pipeline_join(struct pipeline *pipeline, pid_t pid);

/* Whether a process is known, and has not ended. */
bool pipeline_knows(const struct pipeline *pipeline, pid_t pid);

/* pipeline_expect - a child that is about to exec; nothing is known of it yet. */
int pipeline_expect(struct pipeline *pipeline, pid_t pid);

/* Take one event. Errors: -ENOMEM, and what the writing thread met (see pipeline_error). */
int pipeline_event(struct pipeline *pipeline, const struct capture_event *event);

/* A sample that will come soon, perhaps the next: its stack is asked for before it is needed. */
void pipeline_expect_sample(struct pipeline *pipeline, const struct sample *sample);

/*
 * pipeline_pause, pipeline_resume - a pause begins, before the capture's, and has ended, right after
 * the capture's. Both are written down.
 * @untold: no event has told of mappings, forks and execs meanwhile (see capture_resume): they are
 *          read again.
 * Errors: -ENOMEM.
 */
int pipeline_pause(struct pipeline *pipeline);
int pipeline_resume(struct pipeline *pipeline, bool untold);
/*
 * pipeline_idle - all that has happened up to now has been told.
 * Threads that wait are looked at, where nothing else tells where they do. -ENOMEM.
 */
int pipeline_idle(struct pipeline *pipeline);

/* Hand over what has been gathered. Does not wait for the disk. */
int pipeline_flush(struct pipeline *pipeline);

/* Samples that wait to be handed over. */
size_t pipeline_pending(const struct pipeline *pipeline);

/* Whether all that was handed over is in the file. */
bool pipeline_is_written(const struct pipeline *pipeline);

/* 0, or the negative errno on which writing has stopped (-ENOSPC, -EIO). */
int pipeline_error(const struct pipeline *pipeline);

/*
 * pipeline_finish - flush, look up all names still missing, mark the run clean.
 * @counters: written as rows of counter, until a NULL name.
 * @error: of what led here, of capturing for instance; 0: nothing failed. After a failure the file keeps what was
 *         flushed, but samples are missing: no name is looked up any more, and the run stays without its mark.
 * Errors: @error, else what failed while writing.
 */
struct pipeline_counter {
	const char *name;
	uint64_t value;
};
int pipeline_finish(struct pipeline *pipeline, const struct pipeline_counter *counters, int error);

void pipeline_read_counts(const struct pipeline *pipeline, struct pipeline_counts *ret);

/* The Python seen first: version, or why it could not be read; "" none. Borrowed. */
const char *pipeline_python(const struct pipeline *pipeline);

/* What became of the processes in which names are found; after pipeline_finish(). */
struct pipeline_name_troubles {
	unsigned n_deaths;    /* of processes that read files */
	const char *path;     /* of the first module that one died of; NULL: none did. Borrowed. */
	bool is_of_generated; /* one died of a perf map or a jitdump */
	int filter_error;     /* why they had no filter of system calls; 0: they had */
};
void pipeline_read_name_troubles(const struct pipeline *pipeline, struct pipeline_name_troubles *ret);

/* What became of the processes that read the ELF files of modules, so far. */
struct pipeline_cfi_troubles {
	unsigned n_deaths;
	unsigned n_unread; /* files given up: processes died of them, or none was left */
	const char *path;  /* of the first of them; NULL: none. Borrowed. */
	int filter_error;  /* why they had no filter of system calls; 0: they had */
	uint64_t n_asked;  /* questions that they were asked */
};
void pipeline_read_cfi_troubles(const struct pipeline *pipeline, struct pipeline_cfi_troubles *ret);

/* Bytes of the file as of the last write. */
int64_t pipeline_store_bytes(const struct pipeline *pipeline);

/* ---- Names for a recording that is there (resymbolize.c) ---- */

/* How far it is; strings are borrowed for the call. */
struct rename_progress {
	const char *path; /* of the module */
	size_t n_done, n_places;
	long downloaded, to_download; /* from a server; to_download 0: unknown; both 0: nothing */
};

struct resymbolize_options {
	const char *sysroot; /* in front of paths; NULL: none */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	bool debuginfod;      /* ask the servers that DEBUGINFOD_URLS names */
	bool redo;            /* look up also what has a name and a line */
	bool force;           /* take modules without a build-id by their path, and any kernel */
	const char *kallsyms; /* the kernel's symbols; NULL: those of /proc */
	bool (*keep_going)(void *data, const struct rename_progress *progress); /* false: -ECANCELED */
	void *data;
};

/* What became of a module's places. */
struct rename_module {
	int64_t id;
	char *path, *build_id; /* build_id NULL: none stored */
	size_t n_places, n_named_before, n_named, n_lines_before, n_lines;
	/* Why no file was found: 0 it was, -ENOENT none there, -ESTALE another build only,
	 * -ENODATA no build-id to tell by, -ENOEXEC, -E2BIG not sane, -EACCES... */
	int error;
	bool was_searched;       /* there was something to look up */
	char *other_build_id;    /* of the file that stands at the path; NULL: none stands there */
	char *file, *debug_file; /* where its names came from; NULL: nowhere */
	bool is_debug_file, has_symbols, has_lines;
};

enum rename_kernel {
	RENAME_KERNEL_FINE,   /* named, or nothing to name */
	RENAME_KERNEL_OTHER,  /* another machine or kernel was recorded, or absolute addresses before the last boot */
	RENAME_KERNEL_HIDDEN, /* addresses are hidden (kptr_restrict) */
};

struct resymbolize_result {
	struct rename_module *modules;
	size_t n_modules, n_allocated;
	size_t n_places, n_named_before, n_named, n_lines_before, n_lines; /* native and kernel */
	size_t n_changed, n_kernel;
	size_t n_anonymous; /* unnamed places in code that no file holds */
	int64_t n_inlined;  /* frames added for inlined callers */
	enum rename_kernel kernel;
	char recorded_host[256], recorded_kernel[256];
	int server_error; /* see symbol_search_server_error(); 0: none */
};

/*
 * pipeline_resymbolize - complete the names of a recording, in one transaction: what has no name
 * or no line, or all with redo. A name never gives way to one that says less.
 * @store:  opened with store_open(); not settled.
 * @ret:    ended with resymbolize_result_done(), also after an error.
 * Errors: -ECANCELED; -ENOMEM; -EBADMSG; what the store reports. The file is then as it was.
 */
int pipeline_resymbolize(struct store *store, const struct resymbolize_options *options,
			 struct resymbolize_result *ret);
void resymbolize_result_done(struct resymbolize_result *result);

#endif
