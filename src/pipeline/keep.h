/* keep.h - which samples are wanted, and which of their frames. Private. */
#ifndef PROBING_PIPELINE_KEEP_H
#define PROBING_PIPELINE_KEEP_H

#include "base/id_map.h"
#include "src/pipeline/hold.h"
#include "src/pipeline/pipeline.h"
#include "src/pipeline/thread_names.h"

struct keep_thread;

struct keep {
	const struct keep_options *options; /* borrowed */
	struct thread_names *names;         /* borrowed */
	struct keep_thread *threads;
	size_t n_threads, threads_allocated;
	struct id_map thread_index; /* tid -> index */
};

void keep_init(struct keep *keep, const struct keep_options *options, struct thread_names *names);
void keep_done(struct keep *keep);

/*
 * keep_wants_thread - by its number, by the name that the system has of it, or by Python's.
 * @runtime: of its process; NULL: none was found. Read anew as of now.
 * @time_ns: CLOCK_MONOTONIC.
 */
bool keep_wants_thread(struct keep *keep, struct py_runtime *runtime, pid_t pid, pid_t tid, uint64_t time_ns);

/* The thread has another name, has ended, or its number is another's: ask anew. */
void keep_forget_thread(struct keep *keep, pid_t tid);

/* Whether the stack, and what its thread held, are what is wanted. */
bool keep_wants_sample(const struct keep *keep, const struct stack *stack, const struct hold *hold);

/* Whether all samples are wanted. */
bool keep_wants_all(const struct keep *keep);

/* Leave out the frames that are not to be stored. */
void keep_trim(const struct keep *keep, struct stack *stack);

#endif
