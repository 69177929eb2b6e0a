/* SPDX-License-Identifier: MIT */
/* pipeline.h - from captured events to rows.
 *
 * Two threads. The capturing thread (the caller's) keeps the processes and their address spaces,
 * unwinds, stitches and interns; new rows go into a batch. Once a flush interval it hands the batch
 * to the writing thread, which puts it into the store in one transaction and then resolves symbols.
 * So neither the disk nor debug information ever delays a sample. The two share only the queue of
 * batches, and in the other direction a list of places where generated code has been replaced.
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
	uint64_t left_out;             /* samples that the filter drops; they count nowhere else */
	uint64_t nobodys;              /* samples of a process that was no more; they count nowhere else */
	uint64_t gil_ns, gil_known_ns; /* weight of samples that held the GIL, and of those with a known GIL state */
	uint64_t gc_ns, gc_known_ns;   /* the same of collecting garbage */
	uint64_t first_sample_ns;      /* CLOCK_MONOTONIC; 0: none yet */
	uint64_t dropped;              /* samples dropped by retention */
	struct symbol_limited limited; /* names that were given up; known once all is written */
	uint64_t without_stack;        /* waits that ended before they could be read, and rows of unsampled_ns */
	uint64_t unsampled_ns;         /* of weight: CPU time without a sample */
	uint64_t n_unsampled;          /* rows that hold unsampled_ns */
	/* Of recordings of waits: */
	uint64_t by_state[STATE_N];                   /* nanoseconds; they add up to each thread's time */
	uint64_t switches, switch_stacks, unknown_ns; /* see struct waits_sums */
	uint64_t task_ns, n_task_rows;                /* weight of rows of asyncio tasks, which is in no other sum */
	uint64_t n_task_reads, task_read_ns;          /* poll ticks that read them, and the time that took */
};

/* Filter of samples and threads. All zero: everything passes. */
struct filter_options {
	struct glob_list threads;   /* numbers, and globs of names; none: all */
	struct glob_list functions; /* globs of Python functions, one of which must be in the stack; none: any */
	bool gil;                   /* only of threads that hold the GIL, as far as that is known */
	bool no_native;             /* of stacks the Python frames only */
};

struct pipeline_options {
	struct filter_options filter; /* its words are borrowed for the pipeline's life */
	bool no_symbols;              /* open no file for names; pipeline_resymbolize() finds them later */
	/* Its records go into a table; borrowed, outlives the pipeline. NULL: there is none. */
	const struct tracepoint *tracepoint;
	uint64_t metrics_ns; /* period of the tables of metrics; 0: they get no rows */
	bool rows;           /* store the rows that programs write (src/rows) */
	bool is_sparse;      /* samples are sparse: search for interpreters between them, too */
	enum capture_mode mode;
	bool async;         /* put the asyncio tasks into stacks, in whose course they ran */
	bool pending_tasks; /* rows of the asyncio tasks that wait; needs a mode that follows waits */
	/* Receives each sample, in the capturing thread, instead of the file, which then has only the tree and
	 * its names: the stack of a sample is in it some time after the next flush. NULL: the file
	 * receives samples. Negative errno: returned by pipeline_event(). */
	int (*take_sample)(void *data, const struct sample_row *row);
	void *take_data;
	const uint64_t *capabilities; /* which the writing thread keeps, as bits; NULL: all */
	struct store_limits limits;   /* of the kept samples */
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
 * pipeline_read_inside - pass the layout of each found interpreter to a capture, so that frames
 * are read inside the interrupt. No effect for another source.
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
 * pipeline_join - the same for one more process, while others are recorded. No effect if it is known.
 * Returns 1 if it is new.
 */
int pipeline_join(struct pipeline *pipeline, pid_t pid);

/* Whether a process is known, and has not ended. */
bool pipeline_knows(const struct pipeline *pipeline, pid_t pid);

/* pipeline_expect - a child that is about to exec; none of its state is read yet. */
int pipeline_expect(struct pipeline *pipeline, pid_t pid);

/* Process one event. Errors: -ENOMEM, and those of the writing thread (see pipeline_error). */
int pipeline_event(struct pipeline *pipeline, const struct capture_event *event);

/* A sample that will come soon, perhaps the next: prefetches its stack. */
void pipeline_expect_sample(struct pipeline *pipeline, const struct sample *sample);

/*
 * pipeline_take - process events of a capture, until it has none for now.
 * @n, @ns: limits, so that the caller can serve something else: a very deep stack takes milliseconds.
 * Returns 1 if there may be more, 0 if not. Errors: of capture_next(), pipeline_event() and pipeline_idle().
 */
int pipeline_take(struct pipeline *pipeline, struct capture *capture, unsigned n, uint64_t ns);

/*
 * pipeline_pause, pipeline_resume - a pause begins, before the capture's, and has ended, right after
 * the capture's. Both are stored.
 * @untold: mappings, forks and execs were not reported meanwhile (see capture_resume): reads
 *          them again.
 * Errors: -ENOMEM.
 */
int pipeline_pause(struct pipeline *pipeline);
int pipeline_resume(struct pipeline *pipeline, bool untold);
/*
 * pipeline_idle - no more events up to now.
 * Reads waiting threads, if no event has their stacks. -ENOMEM.
 */
int pipeline_idle(struct pipeline *pipeline);

/* Hand over the current batch. Does not wait for the disk. */
int pipeline_flush(struct pipeline *pipeline);

/* Samples that wait to be handed over. */
size_t pipeline_pending(const struct pipeline *pipeline);

/* Whether all that was handed over is in the file. */
bool pipeline_is_written(const struct pipeline *pipeline);

/* 0, or the negative errno on which writing has stopped (-ENOSPC, -EIO). */
int pipeline_error(const struct pipeline *pipeline);

/*
 * pipeline_finish - flush, resolve all missing symbols, mark the run clean.
 * @counters: written as rows of counter, until a NULL name.
 * @error: of an earlier step, of capturing for instance; 0: none. After a failure the file keeps flushed
 *         rows, but samples are missing: no symbols are resolved any more, and the run is not marked.
 * Errors: @error, else what failed while writing.
 */
struct pipeline_counter {
	const char *name;
	uint64_t value;
};
int pipeline_finish(struct pipeline *pipeline, const struct pipeline_counter *counters, int error);

void pipeline_read_counts(const struct pipeline *pipeline, struct pipeline_counts *ret);

/* The first Python: version, or why it could not be read; "" none. Borrowed. */
const char *pipeline_python(const struct pipeline *pipeline);

/* Rows that programs wrote (rows.c). */
struct pipeline_rows {
	uint64_t n_rows;
	size_t n_rings;
	uint64_t n_lost;                /* evicted before they were read */
	size_t n_names, n_names_in_all; /* of tables */
	const char *names[8];           /* the first of them, in the order in which they were found; borrowed */
};
void pipeline_read_rows(const struct pipeline *pipeline, struct pipeline_rows *ret);

/* Failures of the processes that resolve symbols; after pipeline_finish(). */
struct pipeline_name_troubles {
	unsigned n_deaths;    /* of processes that read files */
	const char *path;     /* of the first module that one died of; NULL: none did. Borrowed. */
	bool is_of_generated; /* one died of a perf map or a jitdump */
	int filter_error;     /* why they had no filter of system calls; 0: they had */
};
void pipeline_read_name_troubles(const struct pipeline *pipeline, struct pipeline_name_troubles *ret);

/* Failures of the processes that read the ELF files of modules, so far. */
struct pipeline_cfi_troubles {
	unsigned n_deaths;
	unsigned n_unread; /* files given up: processes died of them, or none was left */
	const char *path;  /* of the first of them; NULL: none. Borrowed. */
	int filter_error;  /* why they had no filter of system calls; 0: they had */
	uint64_t n_asked;  /* requests to them */
};
void pipeline_read_cfi_troubles(const struct pipeline *pipeline, struct pipeline_cfi_troubles *ret);

/* Why a machine with a GPU driver has no rows of GPUs, or none from some time on; NULL: it has, or there is no driver. Borrowed. */
const char *pipeline_gpu_trouble(const struct pipeline *pipeline);

/* Bytes of the file as of the last write. */
int64_t pipeline_store_bytes(const struct pipeline *pipeline);

/* ---- Names for a recording that is there (resymbolize.c) ---- */

/* How far it is; strings are borrowed for the call. */
struct resymbolize_progress {
	const char *path; /* of the module */
	size_t n_done, n_places;
	long downloaded, to_download; /* from a server; to_download 0: unknown; both 0: nothing */
};

struct resymbolize_options {
	const char *sysroot; /* in front of paths; NULL: none */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	bool debuginfod;      /* ask the servers that DEBUGINFOD_URLS names */
	bool redo;            /* resolve also places that have a name and a line */
	bool force;           /* take modules without a build-id by their path, and any kernel */
	const char *kallsyms; /* the kernel's symbols; NULL: those of /proc */
	bool (*keep_going)(void *data, const struct resymbolize_progress *progress); /* false: -ECANCELED */
	void *data;
};

/* Result for a module. */
struct resymbolize_module {
	int64_t id;
	char *path, *build_id; /* build_id NULL: none stored */
	size_t n_places, n_named_before, n_named, n_lines_before, n_lines;
	/* Why no file was found: 0 it was, -ENOENT none there, -ESTALE another build only,
	 * -ENODATA no build-id to compare, -ENOEXEC, -E2BIG too large, -EACCES... */
	int error;
	bool was_searched;       /* it had places to resolve */
	char *other_build_id;    /* of the file at its path; NULL: no file there */
	char *file, *debug_file; /* sources of its names; NULL: none */
	bool is_debug_file, has_symbols, has_lines;
};

enum resymbolize_kernel {
	RESYMBOLIZE_KERNEL_FINE, /* named, or nothing to name */
	RESYMBOLIZE_KERNEL_OTHER, /* another machine or kernel was recorded, or absolute addresses before the last boot */
	RESYMBOLIZE_KERNEL_HIDDEN, /* addresses are hidden (kptr_restrict) */
};

struct resymbolize_result {
	struct resymbolize_module *modules;
	size_t n_modules, n_allocated;
	size_t n_places, n_named_before, n_named, n_lines_before, n_lines; /* native and kernel */
	size_t n_changed, n_kernel;
	size_t n_anonymous; /* unnamed places in code without a file */
	int64_t n_inlined;  /* frames added for inlined callers */
	enum resymbolize_kernel kernel;
	char recorded_host[256], recorded_kernel[256];
	int server_error; /* see symbol_search_server_error(); 0: none */
};

/*
 * pipeline_resymbolize - complete the names of a recording, in one transaction: places without a name
 * or a line, or all with redo. Never replaces a name by a less informative one.
 * @store:  opened with store_open(); not checkpointed.
 * @ret:    ended with resymbolize_result_done(), also after an error.
 * Errors: -ECANCELED; -ENOMEM; -EBADMSG; what the store reports. The file is then unchanged.
 */
int pipeline_resymbolize(struct store *store, const struct resymbolize_options *options,
			 struct resymbolize_result *ret);
void resymbolize_result_done(struct resymbolize_result *result);

#endif
