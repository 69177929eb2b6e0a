/* SPDX-License-Identifier: MIT */
/* pipeline_private.h - the parts of a pipeline, and the functions that its files share.
 *
 * process_table.c  known processes, threads and generated code, and their rows
 * samples.c  from a sample, or a wait, to a row
 * events.c   mappings, names, forks, ends; pauses
 * metrics.c  memory, CPU time and I/O of processes and of the machine; GPUs
 * rows.c     rows that programs write
 * evict.c    eviction of ended processes and threads, and of trees that have become too large
 * pipeline.c beginning and end
 */
#ifndef PROBING_PIPELINE_PRIVATE_H
#define PROBING_PIPELINE_PRIVATE_H

#include "src/pipeline/intern.h"
#include "src/pipeline/filter.h"
#include "src/pipeline/off_cpu.h"
#include "src/pipeline/pending_tasks.h"
#include "src/pipeline/pipeline.h"
#include "src/pipeline/process.h"
#include "src/pipeline/tasks.h"
#include "src/pipeline/thread_names.h"
#include "src/pipeline/wait_object.h"
#include "src/pipeline/writer.h"
#include "src/rows/rows.h"
#include "unwind/stitch/stitch.h"

struct known_thread {
	pid_t pid, tid;
	char name[THREAD_NAME_BYTES]; /* its title: see py_thread_title() */
	char comm[32];                /* the kernel's last name */
	uint64_t started_ns, ended_ns;
	uint64_t next_name_ns, name_wait_ns;  /* CLOCK_MONOTONIC: when to ask Python again, and how long after that */
	uint64_t stack_start, stack_noted_ns; /* last value passed to the capture; 0: none */
	bool is_new, has_python_name;
	bool is_fallback; /* only unsampled time of its process made it known: an older row stays */
};

/* The rings of the processes that are recorded, and of those that have just ended. */
struct followed_rows {
	struct rows_follower *followers;
	size_t n, allocated;
	size_t first;            /* the next batch begins with its rows */
	size_t n_bytes;          /* of rows in this batch */
	struct rows_place place; /* of the last folder that was found */
	uint64_t began;          /* rows_clock() of the beginning */
	int64_t last_table;      /* numbers given out */
	struct pipeline_rows counts;
	char names[N_ELEMENTS(((struct pipeline_rows *)0)->names)][RING_NAME_BYTES];
};

struct pipeline {
	struct cfi_client *cfi; /* reads the ELF files of processes' modules; outlives them */
	struct processes processes;
	struct known_thread *threads;
	size_t n_threads, threads_allocated;
	struct id_map thread_index; /* tid -> index */
	struct stitcher *stitcher;
	struct memory_stitcher *memory_stitcher; /* NULL: not needed yet */
	struct native_stack native;
	struct intern intern;
	struct task_frames tasks;
	struct pipeline_options options;
	struct filter filter;
	struct thread_names thread_names;
	struct off_cpu off_cpu;
	struct wait_objects wait_objects;
	struct pending_tasks pending;
	struct batch *batch;
	struct writer *writer;
	struct pipeline_counts counts;
	struct stale_places stale;
	struct capture *capture; /* reads frames inside the interrupt; NULL: none does */
	struct capture *source;  /* has the context switches of threads; NULL: none does */
	uint64_t n_layouts;
	uint64_t n_batches;                          /* handed over */
	uint64_t n_dropped;                          /* once the writing thread is no more */
	struct pipeline_name_troubles name_troubles; /* after the writer's end */
	size_t most_tree_bytes;                      /* renew a larger tree of stacks; 0: never */
	uint64_t paused_ns;                          /* CLOCK_MONOTONIC, since when; 0: it is not paused */
	uint64_t since_ns;        /* CLOCK_MONOTONIC; of samples of before the maps may not be those that were read */
	uint64_t lost_ns;         /* CLOCK_MONOTONIC: when a loss of records was last seen; 0: none was */
	uint64_t next_metrics_ns; /* CLOCK_MONOTONIC */
	struct metrics *metrics;  /* NULL: not asked for */
	pid_t *metric_pids;       /* of one look */
	size_t metric_pids_allocated;
	struct followed_rows rows;
	char python[64];
	int64_t to_realtime_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC at the start */
};

/* Nanoseconds since 1970 of a moment of CLOCK_MONOTONIC. */
uint64_t pipeline_to_realtime(const struct pipeline *pipeline, uint64_t monotonic);

/* ---- process_table.c. Errors: -ENOMEM. ---- */

/* A thread's key in thread_index. Threads without a number are one in each process. */
uint64_t pipeline_thread_key(pid_t pid, pid_t tid);

/* A known thread; NULL: unknown. Borrowed until another thread is added. */
struct known_thread *pipeline_find_thread(const struct pipeline *pipeline, pid_t tid);

/* The thread's index; adds a new one, or one whose number now belongs to another process. */
int pipeline_know_thread(struct pipeline *pipeline, pid_t pid, pid_t tid, uint64_t time_ns, uint32_t *ret);

/* A thread's name may have changed: updates its row. @process: its own; NULL: unknown. */
void pipeline_name_thread(struct pipeline *pipeline, const struct process *process, struct known_thread *thread,
			  uint64_t now_ns);

/* The same for all threads that are due. */
void pipeline_name_threads(struct pipeline *pipeline, uint64_t now_ns);

/* A process, also one without an event so far: its maps then come from /proc. */
int pipeline_know_process(struct pipeline *pipeline, pid_t pid, struct process **ret);

/* Its maps as /proc has them. */
int pipeline_load_space(struct pipeline *pipeline, struct process *process);

/* Add what it has mapped since. Dumps from before are known. -ENOMEM; other failures leave what was known. */
int pipeline_update_space(struct pipeline *pipeline, struct process *process);

/* A mapping that may be a JIT's dump; NULL: none. */
int pipeline_note_dump(struct pipeline *pipeline, struct process *process, const struct mapping *mapping);

/* Tell the writing thread whose generated code the frames are that were added since there were n_before. */
int pipeline_announce_new(struct pipeline *pipeline, struct program *program, size_t n_before);

/* Rows of processes and threads that are new, or have changed. */
int pipeline_put_changed(struct pipeline *pipeline);

/* Have the frames of an interpreter that was found read inside the interrupt; and no more. */
void pipeline_watch(struct pipeline *pipeline, struct process *process, uint64_t now_ns);
void pipeline_forget_watched(struct pipeline *pipeline, struct process *process);

/* ---- samples.c ---- */

int pipeline_take_sample(struct pipeline *pipeline, const struct sample *captured);
int pipeline_take_polled(struct pipeline *pipeline, const struct sample *sample);

/* CPU time that no sample was taken of. */
int pipeline_take_unsampled(struct pipeline *pipeline, const struct capture_event *event);

/* An interval of a thread's time becomes a row; for waits_new(), data is the pipeline. */
int pipeline_put_interval(void *data, const struct interval *interval);

/* ---- events.c ---- */

int pipeline_take_event(struct pipeline *pipeline, const struct capture_event *event);

/* ---- evict.c: after a batch has been handed over, or before one is ---- */

int pipeline_evict_ended(struct pipeline *pipeline);
int pipeline_renew_tree(struct pipeline *pipeline);

/* ---- metrics.c ---- */

/* Open the machine's files, and start the process that reads GPUs; before any thread starts. */
int pipeline_start_metrics(struct pipeline *pipeline);
/* Rows of what the known processes and the machine use now, where they are due. -ENOMEM. */
int pipeline_take_metrics(struct pipeline *pipeline, uint64_t now_ns);

/* ---- rows.c ---- */

/*
 * New rows of the known processes' rings. @is_last: these end now. Returns -ENOMEM, 0, or 1: the batch is full, and the
 * rest is for the next one.
 */
int pipeline_take_rows(struct pipeline *pipeline, uint64_t now_ns, bool is_last);
void pipeline_rows_done(struct pipeline *pipeline);

#endif
