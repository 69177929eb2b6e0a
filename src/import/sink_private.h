/* SPDX-License-Identifier: MIT */
/* sink_private.h - declarations for the files of the sink. */
#ifndef PROBING_IMPORT_SINK_PRIVATE_H
#define PROBING_IMPORT_SINK_PRIVATE_H

#include "src/import/ids.h"
#include "src/import/sink.h"

struct sink {
	struct store *store;
	const struct import_input *input;
	struct import_result *result;
	bool into; /* a recording that is there: nothing but tables of GPUs */
	struct sink_run run;
	struct ids modules, functions, frames, stacks, processes, threads, totals;
	struct sink_total {
		pid_t pid, tid;
		int64_t stack;
		uint64_t samples, weight;
	} * sums; /* by the numbers of totals */
	size_t n_sums, sums_allocated;
	uint32_t *depths; /* by the numbers of stacks */
	size_t n_depths, depths_allocated;
	struct sample_row *samples;
	size_t n_samples, samples_allocated;
	uint64_t weight; /* of all */
	struct import_progress progress;
	unsigned n_reached; /* calls of sink_read() and sink_write() */
	pid_t first_pid;
	struct gpu_writer *gpu;
	struct flight_writer *flight;
	pid_t gpu_pid;
	struct piece key; /* scratch: texts with terminators */
	size_t key_allocated;
};

/* sink.c: in transactions that do not grow without bound; to be called before a row is put. */
int sink_step(struct sink *sink);

/* sink_end.c: data known only at the end: samples in order of time, sums, the run. */
int sink_end(struct sink *sink, const char *format, const char *version);

#endif
