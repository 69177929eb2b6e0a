/* SPDX-License-Identifier: MIT */
/* filter.h - which samples are wanted, and which of their frames. Private. */
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

void filter_init(struct filter *keep, const struct filter_options *options, struct thread_names *names);
void filter_done(struct filter *keep);

/*
 * filter_wants_thread - by its number, by the name that the system has of it, or by Python's.
 * @runtime: of its process; NULL: none was found. Read anew as of now.
 * @time_ns: CLOCK_MONOTONIC.
 */
bool filter_wants_thread(struct filter *keep, struct py_runtime *runtime, pid_t pid, pid_t tid, uint64_t time_ns);

/* The thread has another name, has ended, or its number is another's: ask anew. */
void filter_forget_thread(struct filter *keep, pid_t tid);

/* Whether the stack, and what its thread held, are what is wanted. */
bool filter_wants_sample(const struct filter *keep, const struct stack *stack, const struct gil_state *hold);

/* Whether all samples are wanted. */
bool filter_wants_all(const struct filter *keep);

/* Leave out the frames that are not to be stored. */
void filter_trim(const struct filter *keep, struct stack *stack);

#endif
