/* SPDX-License-Identifier: MIT */
/* sink.h - receives the importers' data: equal names, places and stacks become one row. Private.
 *
 * All: 0 or negative errno; -EBADMSG if numbers refer to nothing, or their sum overflows.
 */
#ifndef PROBING_IMPORT_SINK_H
#define PROBING_IMPORT_SINK_H

#include <string.h>

#include "base/util.h"
#include "src/import/import.h"

/* Some text of the file, borrowed; it may hold any bytes. */
struct piece {
	const char *at;
	size_t n;
};

static inline struct piece piece_of(const char *text)
{
	return (struct piece){ text, text ? strlen(text) : 0 };
}

/* A piece as a string of C; NULs become '?'. NULL: no memory. The caller's. */
char *piece_text(struct piece piece);

/* Values for the row of run; empty ones are unknown. */
struct sink_run {
	uint64_t started_ns, ended_ns; /* CLOCK_REALTIME */
	char command[1024], host[128], kernel[128], python[32], event[128];
	double hz;
	uint64_t period;
	unsigned cpus;
	bool counts; /* weights are numbers of the event, not nanoseconds */
	bool kernel_frames;
};

struct sink_frame {
	enum frame_kind kind;
	struct piece name; /* n 0: to be named by module and address */
	struct piece file, module, build_id;
	int first_line, line; /* 0: not known */
	bool has_address, without_cfi;
	uint64_t address; /* in the module's own address space */
	int64_t inlined_into;
};

struct sink_run *sink_run(struct sink *sink);

/*
 * sink_read - how much of the file is read, in a unit of the importer's own: bytes, records. To be called for each line or
 * record, whether it makes a row or not: users see the share, and may end the import. Cheap. Errors: -ECANCELED.
 * sink_write - the same of what is written after the file has been read.
 */
int sink_read(struct sink *sink, uint64_t n_done, uint64_t n_all);
int sink_write(struct sink *sink, uint64_t n_done, uint64_t n_all);

/* Set the reason of a refusal; only the first is kept. Returns error, for return statements. */
int sink_explain(struct sink *sink, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* An entry could not be parsed, and is left out. */
void sink_skip(struct sink *sink);

/* A process, a thread; its process need not be known. Names may be empty; the last one wins. */
int sink_process(struct sink *sink, pid_t pid, pid_t parent, struct piece name, struct piece command);
int sink_thread(struct sink *sink, pid_t pid, pid_t tid, struct piece name);
/* A process that is a rank of a job. @rank: NULL: it is not known. */
int sink_rank(struct sink *sink, pid_t pid, const char *name, const struct rank_identity *rank);

/* Kind of a frame by its source file's extension: FRAME_PYTHON or FRAME_NATIVE. */
enum frame_kind kind_of_file(struct piece file);

int sink_frame(struct sink *sink, const struct sink_frame *frame, int64_t *ret);
/* @parent: the stack of the caller; 0: there is none. */
int sink_stack(struct sink *sink, int64_t parent, int64_t frame, int64_t *ret);

/* Time, or numbers of the event, of a thread with a stack. @stack: 0: not known. */
int sink_total(struct sink *sink, pid_t pid, pid_t tid, int64_t stack, uint64_t samples, uint64_t weight);
/* The same with a time of its own; in any order. Fields that importers know nothing of are set here. */
int sink_sample(struct sink *sink, const struct sample_row *row);

/*
 * GPU data. Call sink_gpu() once before its rows; each kernel, copy and call is also a stack of one function, of the
 * threads "GPU activities" and "API calls" of the process.
 */
int sink_gpu(struct sink *sink, const struct gpu_trace_row *trace);
int sink_kernel(struct sink *sink, const struct gpu_kernel_row *row);
int sink_memcpy(struct sink *sink, const struct gpu_memcpy_row *row);
int sink_call(struct sink *sink, const struct gpu_call_row *row);
int sink_range(struct sink *sink, const struct gpu_range_row *row);

/* The same for a format that makes stacks itself: rows only. @ret: for gpu_put_*(); the sink's. Call sink_row() after each. */
int sink_gpu_rows(struct sink *sink, const struct gpu_trace_row *trace, struct gpu_writer **ret);
/* Rows of a Flight Recorder, of all files that become this recording. @ret: the sink's. Call sink_row() after each. */
int sink_flight(struct sink *sink, struct flight_writer **ret);
/* Count a row of a writer. @is_gpu: for the number of rows of GPUs in the final message. */
int sink_row(struct sink *sink, bool is_gpu);

#endif
