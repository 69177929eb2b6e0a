/* SPDX-License-Identifier: MIT */
/* filter.h - the filter of samples, by thread, stack and GIL. Private. */
#ifndef PROBING_PIPELINE_FILTER_H
#define PROBING_PIPELINE_FILTER_H

#include "base/id_map.h"
#include "src/pipeline/gil_state.h"
#include "src/pipeline/pipeline.h"
#include "src/pipeline/thread_names.h"

struct filter_thread;

struct filter {
	const struct filter_options *options; /* borrowed */
	struct thread_names *names;           /* borrowed */
	struct filter_thread *threads;
	size_t n_threads, threads_allocated;
	struct id_map thread_index; /* tid -> index */
};

void filter_init(struct filter *filter, const struct filter_options *options, struct thread_names *names);
void filter_done(struct filter *filter);

/*
 * filter_wants_thread - by its number, its name in the system, or its name in Python.
 * @runtime: of its process; NULL: none was found. Its names are read as of now.
 * @time_ns: CLOCK_MONOTONIC.
 */
bool filter_wants_thread(struct filter *filter, struct py_runtime *runtime, pid_t pid, pid_t tid, uint64_t time_ns);

/* The thread has another name, has ended, or its number is another's: evaluate the filter again. */
void filter_forget_thread(struct filter *filter, pid_t tid);

/* Whether the stack, and the GIL state of its thread, pass the filter. */
bool filter_wants_sample(const struct filter *filter, const struct stack *stack, const struct gil_state *gil_state);

/* Whether all samples pass. */
bool filter_wants_all(const struct filter *filter);

/* Leave out the frames that are not to be stored. */
void filter_trim(const struct filter *filter, struct stack *stack);

#endif
