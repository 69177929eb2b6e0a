/* SPDX-License-Identifier: MIT */
/* kineto.h - a trace of torch.profiler in memory. Private to its importer. */
#ifndef PROBING_IMPORT_KINETO_H
#define PROBING_IMPORT_KINETO_H

#include "src/import/ids.h"
#include "src/import/sink.h"

enum kineto_kind {
	KINETO_PYTHON,     /* a Python function, or a builtin that one called */
	KINETO_ANNOTATION, /* record_function(), and the profiler's steps */
	KINETO_OP,
	KINETO_CALL, /* of the CUDA runtime or driver */
	KINETO_LAST_OF_HOST = KINETO_CALL,
	KINETO_KERNEL,
	KINETO_COPY,
	KINETO_FILL,
	KINETO_MEMORY, /* an allocation: a moment */
};

struct kineto_event {
	int64_t start_ns, end_ns;
	int64_t self_ns;               /* without what it called; of the GPU: all */
	int64_t gpu_ns;                /* of an operation: work that it launched itself */
	int64_t correlation, sequence; /* GPU_UNKNOWN: none */
	int64_t stack;                 /* of the sink; 0: not yet */
	uint32_t name, text;           /* numbers of texts; of an operation its shapes, 0: unknown */
	uint32_t thread;               /* index into threads, of a GPU: a stream */
	int32_t parent;                /* the event around it, of work on a GPU its launch; -1: none */
	int32_t operation;             /* the innermost operation or annotation around it; -1: none */
	uint32_t python;               /* text of the innermost Python function, or its own; 0: none */
	uint32_t detail;               /* index into details, of KINETO_KERNEL ... KINETO_MEMORY */
	enum kineto_kind kind;
};

struct kineto_thread {
	int64_t pid, tid; /* of the file: of work on a GPU the device and the stream */
	bool is_gpu;
	pid_t sink_pid, sink_tid;
	size_t first, n;                  /* its events, in order of time */
	size_t first_segment, n_segments; /* times with a known stack, in order */
};

struct kineto_detail {
	int64_t device, context, stream, bytes;
	int64_t grid[3], block[3], registers, shared_bytes;
	int64_t allocated, reserved, address, device_type;
};

/* A time in which a thread of the host was in one event and in none within it. */
struct kineto_segment {
	int64_t start_ns, end_ns;
	int32_t event;
};

struct kineto {
	struct sink *sink;
	const struct import_input *input;
	uint64_t n_bytes; /* of the unpacked file */
	struct gpu_writer *writer;
	struct ids text_ids, thread_ids;
	char **texts; /* by number, from 1 */
	size_t n_texts, texts_allocated;
	struct kineto_event *events;
	size_t n_events, events_allocated;
	struct kineto_thread *threads;
	size_t n_threads, threads_allocated;
	struct kineto_detail *details;
	size_t n_details, details_allocated;
	struct kineto_segment *segments;
	size_t n_segments, segments_allocated;
	uint32_t *launches; /* events of KINETO_CALL with a correlation, by that */
	size_t n_launches;
	uint32_t *steps; /* events that are steps of the profiler, by start */
	size_t n_steps;
	uint32_t *work; /* events on GPUs, by device and start */
	size_t n_work;
	struct kineto_device {
		int64_t id;
		char name[160]; /* "NVIDIA H100 (0)" */
	} * devices;
	size_t n_devices, devices_allocated;
	struct kineto_name {
		int64_t pid, tid;
		uint32_t text;
	} * names; /* of threads of the host */
	size_t n_names, names_allocated;
	int64_t base_ns;           /* of baseTimeNanoseconds; 0: not there */
	int64_t first_ns, last_ns; /* of all events */
	uint64_t started_ns;       /* CLOCK_REALTIME of first_ns */
};

static inline const char *kineto_text(const struct kineto *kineto, uint32_t number)
{
	return number > 0 ? kineto->texts[number - 1] : NULL;
}

/* kineto_step_of - the number in "ProfilerStep#3"; -1: it is another name. */
int64_t kineto_step_of(const char *name);

/* The name of an event in sums over all steps: "ProfilerStep" for each of these. */
static inline const char *kineto_common_name(const struct kineto *kineto, uint32_t number)
{
	const char *name = kineto_text(kineto, number);

	return kineto_step_of(name) >= 0 ? "ProfilerStep" : name;
}

/* "NVIDIA H100 (0)", or "0" for a GPU that the file does not describe. @to: for the second case. */
const char *kineto_device(const struct kineto *kineto, int64_t id, char to[24]);

static inline bool kineto_is_on_gpu(enum kineto_kind kind)
{
	return kind == KINETO_KERNEL || kind == KINETO_COPY || kind == KINETO_FILL;
}

/* kineto_tree.c: order the events, find what is within what, and make stacks and samples. */
int kineto_tree(struct kineto *kineto);

/* kineto_segment_at - the first time of a thread that ends behind that moment, or the end of its times. */
size_t kineto_segment_at(const struct kineto *kineto, const struct kineto_thread *thread, int64_t time_ns);

/* kineto_rows.c: rows of gpu_* and torch_*. After kineto_tree(). */
int kineto_rows(struct kineto *kineto);

/* kineto_idle.c: rows of gpu_idle and torch_step, for which time on GPUs is added up. */
int kineto_idle(struct kineto *kineto);

#endif
