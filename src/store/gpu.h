/* SPDX-License-Identifier: MIT */
/* gpu.h - rows of GPU activity that other programs measured: tables gpu_* and torch_*, only in files with such rows. */
#ifndef PROBING_STORE_GPU_H
#define PROBING_STORE_GPU_H

#include <stdbool.h>
#include <stdint.h>

struct store;

/* Strings are borrowed for the call, NULL becomes SQL NULL; so does GPU_UNKNOWN in numbers. */
#define GPU_UNKNOWN INT64_MIN

struct gpu_trace_row {
	const char *format, *file, *command;
	int64_t pid;
	uint64_t started_ns; /* CLOCK_REALTIME; 0: not known */
};

/* Common columns: one activity, or in summaries all activities of one name. */
struct gpu_span {
	const char *name;
	int64_t calls, duration_ns, min_ns, max_ns;
	int64_t start_ns; /* since its trace began */
};
struct gpu_place {
	const char *device;
	int64_t context, stream, correlation;
};
struct gpu_kernel_row {
	struct gpu_span span;
	int64_t grid[3], block[3], registers, static_shared_bytes, dynamic_shared_bytes;
	struct gpu_place place;
};
struct gpu_memcpy_row {
	struct gpu_span span;
	const char *kind, *source, *destination;
	int64_t bytes;
	struct gpu_place place;
};
struct gpu_call_row {
	struct gpu_span span;
	int64_t pid, tid, result, correlation;
};
struct gpu_range_row {
	struct gpu_span span;
	int64_t pid, tid;
	const char *domain;
};

struct gpu_idle_row {
	const char *device;
	int64_t start_ns, gap_ns, duration_ns; /* of the gap, and the part of this function */
	const char *function, *python, *next;
	bool launched; /* the next work was, before the gap began */
	int64_t pid, tid;
};
/* Traces of torch.profiler; times as in gpu_span. */
struct torch_op_row {
	const char *name, *kind, *python, *shapes;
	int64_t start_ns, duration_ns, self_ns, gpu_ns, step, sequence, pid, tid;
};
struct torch_memory_row {
	int64_t time_ns, bytes, allocated_bytes, reserved_bytes, address, pid, tid;
	const char *device, *op;
};
struct torch_step_row {
	int64_t number, start_ns, duration_ns, gpu_busy_ns, pid, tid;
};

/* gpu_make_tables - where they are not. In a transaction. */
int gpu_make_tables(struct store *store);

struct gpu_writer;

/*
 * gpu_writer_new - create missing tables, and a row for a trace. In a transaction.
 * @store: borrowed. @ret: ended with gpu_writer_free(), before the store is closed.
 * Errors: those of putting rows.
 */
int gpu_writer_new(struct store *store, const struct gpu_trace_row *trace, struct gpu_writer **ret);
void gpu_writer_free(struct gpu_writer *writer);

/* Rows of that trace; errors as of store_put_*(). */
int gpu_put_kernel(struct gpu_writer *writer, const struct gpu_kernel_row *row);
int gpu_put_memcpy(struct gpu_writer *writer, const struct gpu_memcpy_row *row);
int gpu_put_call(struct gpu_writer *writer, const struct gpu_call_row *row);
int gpu_put_range(struct gpu_writer *writer, const struct gpu_range_row *row);
int gpu_put_idle(struct gpu_writer *writer, const struct gpu_idle_row *row);
int gpu_put_op(struct gpu_writer *writer, const struct torch_op_row *row);
int gpu_put_memory(struct gpu_writer *writer, const struct torch_memory_row *row);
int gpu_put_step(struct gpu_writer *writer, const struct torch_step_row *row);

#endif
