/* SPDX-License-Identifier: MIT */
/* pipeline.c - beginning and end of a pipeline; see pipeline.h and pipeline_private.h.
 *
 * Everything a batch points to (modules, codes) lives until the writer has ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock_offset.h"
#include "base/util.h"
#include "src/metrics/metrics.h"
#include "src/pipeline/cfi_client.h"
#include "src/pipeline/pipeline_private.h"
#include "src/pipeline/records.h"

/* A limit of the file also limits memory. A stack needs about the same space in both. */
static size_t most_tree_bytes(const struct store_limits *limits)
{
	enum { MAX_BYTES = 64 << 20, MIN_BYTES = 256 << 10 };

	if (limits->max_bytes == 0 && limits->keep_ns == 0)
		return 0;
	if (limits->max_bytes == 0)
		return MAX_BYTES;
	return (size_t)MAX(MIN(limits->max_bytes / 2, (int64_t)MAX_BYTES), (int64_t)MIN_BYTES);
}

static int begin_waits(struct pipeline *pipeline, enum capture_mode mode)
{
	if (mode == MODE_CPU)
		return 0;
	pipeline->off_cpu.n_cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	pipeline->off_cpu.wait_stack_reader = (struct wait_stack_reader){
		.stitcher = pipeline->stitcher,
		.native = &pipeline->native,
		.memory = &pipeline->memory_stitcher,
	};
	return waits_new(mode == MODE_WALL, pipeline_put_interval, pipeline, &pipeline->off_cpu.waits);
}

int pipeline_new(struct store *store, const struct pipeline_options *options, struct pipeline **ret)
{
	CLEANUP(pipeline_freep) struct pipeline *pipeline = NULL;
	int r;

	pipeline = calloc(1, sizeof *pipeline);
	if (!pipeline)
		return -ENOMEM;
	pipeline->options = *options;
	pipeline->most_tree_bytes = most_tree_bytes(&options->limits);
	filter_init(&pipeline->filter, &pipeline->options.filter, &pipeline->thread_names);
	pipeline->rows.began = rows_clock();
	pipeline->to_realtime_ns = clock_offset_ns(clock_gettime);
	r = cfi_client_start(CFI_CLIENT_PATIENCE_MS, &pipeline->cfi); /* before any thread starts */
	if (r >= 0 && options->metrics_ns > 0)
		r = pipeline_start_metrics(pipeline);
	if (r >= 0)
		r = processes_init(&pipeline->processes, pipeline->cfi);
	if (r >= 0)
		r = stitcher_new(&pipeline->stitcher);
	if (r >= 0)
		r = begin_waits(pipeline, options->mode);
	if (r >= 0)
		r = batch_new(&pipeline->batch);
	if (r >= 0)
		r = writer_start(store, options, &pipeline->writer);
	if (r < 0)
		return r;
	*ret = TAKE(pipeline);
	return 0;
}

static void stop_writer(struct pipeline *pipeline)
{
	if (!pipeline->writer)
		return;
	writer_stop(pipeline->writer, false);
	writer_free(TAKE(pipeline->writer));
}

void pipeline_free(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	stop_writer(pipeline);
	batch_free(pipeline->batch);
	pipeline_rows_done(pipeline);
	intern_done(&pipeline->intern);
	filter_done(&pipeline->filter);
	thread_names_done(&pipeline->thread_names);
	task_frames_done(&pipeline->tasks);
	off_cpu_done(&pipeline->off_cpu);
	wait_objects_done(&pipeline->wait_objects);
	pending_tasks_done(&pipeline->pending);
	native_stack_done(&pipeline->native);
	stitcher_free(pipeline->stitcher);
	memory_stitcher_free(pipeline->memory_stitcher);
	processes_done(&pipeline->processes);
	cfi_client_free(pipeline->cfi);
	metrics_free(pipeline->metrics);
	free(pipeline->metric_pids);
	free(pipeline->threads);
	free(pipeline->stale.places);
	id_map_done(&pipeline->thread_index);
	free(pipeline);
}

void pipeline_freep(struct pipeline **pipeline)
{
	pipeline_free(*pipeline);
}

/* ---- Frames read inside the interrupt ---- */

void pipeline_read_inside(struct pipeline *pipeline, struct capture *capture)
{
	pipeline->off_cpu.began_ns = capture_began_ns(capture);
	pipeline->off_cpu.has_switch_stacks = capture_has_switch_stacks(capture);
	pipeline->off_cpu.is_counted = capture_source(capture) == SOURCE_AGENT;
	pipeline->capture = capture_source(capture) == SOURCE_BPF || capture_source(capture) == SOURCE_AGENT ? capture
													     : NULL;
	pipeline->source = capture_source(capture) == SOURCE_WAKEUP ? capture : NULL;
}

/* One that is there: its rings have its start in their name, and may be read after its end only. */
static int add_process(struct pipeline *pipeline, pid_t pid, struct process **ret)
{
	int r = processes_add(&pipeline->processes, pid, 0, ret);

	if (r >= 0 && pipeline->options.rows)
		(*ret)->start = ring_start_time(pid);
	return r;
}

/* @since_ns: start of the threads' wait times. */
static int attach(struct pipeline *pipeline, pid_t pid, uint64_t since_ns, char *python, size_t python_bytes,
		  int *python_error)
{
	struct process *process;
	uint32_t thread;
	int r;

	r = add_process(pipeline, pid, &process);
	if (r >= 0)
		r = pipeline_load_space(pipeline, process);
	if (r >= 0)
		pipeline->since_ns = process->loaded_ns;
	if (r >= 0)
		r = process_search_python(process, monotonic_ns());
	if (r >= 0)
		r = pipeline_know_thread(pipeline, pid, pid, monotonic_ns(), &thread);
	if (r >= 0)
		r = off_cpu_find_threads(&pipeline->off_cpu, pid, since_ns);
	if (r < 0)
		return r;
	pipeline_watch(pipeline, process, monotonic_ns());
	snprintf(python, python_bytes, "%s", process->python);
	*python_error = process->python_error;
	if (process->runtime || *python_error == -ENOENT || *python_error == -EAGAIN)
		*python_error = 0;
	return 0;
}

int pipeline_attach(struct pipeline *pipeline, pid_t pid, char *python, size_t python_bytes, int *python_error)
{
	return attach(pipeline, pid, pipeline->off_cpu.began_ns, python, python_bytes, python_error);
}

bool pipeline_knows(const struct pipeline *pipeline, pid_t pid)
{
	const struct process *process = processes_find(&pipeline->processes, pid);

	return process && process->left_ns == 0;
}

int pipeline_join(struct pipeline *pipeline, pid_t pid)
{
	uint64_t since_ns = pipeline->since_ns; /* pending samples of other processes stay valid */
	char python[64];
	int r, python_error;

	if (pipeline_knows(pipeline, pid))
		return 0;
	r = attach(pipeline, pid, monotonic_ns(), python, sizeof python, &python_error);
	pipeline->since_ns = since_ns;
	return r < 0 ? r : 1;
}

int pipeline_expect(struct pipeline *pipeline, pid_t pid)
{
	struct process *process;

	return add_process(pipeline, pid, &process);
}

int pipeline_event(struct pipeline *pipeline, const struct capture_event *event)
{
	int r;

	r = off_cpu_event(&pipeline->off_cpu, event);
	return r < 0 ? r : pipeline_take_event(pipeline, event);
}

/* Find interpreters now, so that the next sample of a process can use them. */
static int look_between(struct pipeline *pipeline)
{
	struct processes *processes = &pipeline->processes;
	uint64_t now_ns = monotonic_ns();
	int r = 0;

	for (size_t i = 0; i < processes->n && r >= 0; i++) {
		if (processes->processes[i]->ended_ns != 0)
			continue;
		r = process_search_python(processes->processes[i], now_ns);
		if (r >= 0)
			pipeline_watch(pipeline, processes->processes[i], now_ns);
	}
	return r;
}

int pipeline_flush(struct pipeline *pipeline)
{
	struct batch *next;
	int r = 0;

	if (pipeline->options.is_sparse)
		r = look_between(pipeline);
	pipeline_name_threads(pipeline, monotonic_ns());
	if (r >= 0)
		r = pipeline_put_changed(pipeline);
	if (r >= 0)
		r = pipeline_take_metrics(pipeline, monotonic_ns());
	if (r >= 0)
		r = pipeline_take_rows(pipeline, monotonic_ns(), false);
	if (r < 0)
		return r;
	if (batch_is_empty(pipeline->batch))
		return pipeline_error(pipeline);
	r = writer_get_batch(pipeline->writer, &next);
	if (r < 0)
		return r;
	writer_put_batch(pipeline->writer, pipeline->batch);
	pipeline->batch = next;
	pipeline->n_batches++;
	intern_flushed(&pipeline->intern);
	r = pipeline_renew_tree(pipeline);
	if (r >= 0)
		r = pipeline_evict_ended(pipeline);
	return r < 0 ? r : pipeline_error(pipeline);
}

size_t pipeline_pending(const struct pipeline *pipeline)
{
	return pipeline->batch->n_samples;
}

bool pipeline_is_written(const struct pipeline *pipeline)
{
	return writer_written(pipeline->writer) >= pipeline->n_batches;
}

int pipeline_error(const struct pipeline *pipeline)
{
	return writer_error(pipeline->writer);
}

/* Store what the stitcher has learnt about interpreters whose functions are in the file. */
static int put_places(struct store *store, const struct pipeline *pipeline)
{
	struct stitch_place place;
	int r = 0;

	for (size_t n = 0; r >= 0 && stitcher_place(pipeline->stitcher, n, &place); n++) {
		const struct evaluation_place_row row = {
			.module = (int64_t)place.module + 1,
			.address = (int64_t)place.address,
			.holds = place.holds,
			.is_leaf = place.is_leaf,
			.below_cfa = (int64_t)place.below_cfa,
			.reg = (int)place.reg,
			.agreed = place.agreed,
			.tries = place.tries,
		};

		if (intern_knows_module(&pipeline->intern, place.module))
			r = store_put_evaluation_place(store, &row);
	}
	return r;
}

static int put_end(struct store *store, const struct pipeline *pipeline, const struct pipeline_counter *counters,
		   const char *python)
{
	struct pipeline_cfi_troubles cfi;
	int r;

	r = store_begin(store);
	if (r < 0)
		return r;
	r = put_places(store, pipeline);
	for (; counters->name && r >= 0; counters++)
		r = store_put_counter(store, counters->name, (int64_t)counters->value);
	if (r >= 0) /* complete only after the last write */
		r = store_put_counter(store, "dropped", (int64_t)pipeline->n_dropped);
	if (r >= 0 && pipeline->counts.limited.n_places > 0)
		r = store_put_counter(store, "names given up", (int64_t)pipeline->counts.limited.n_places);
	cfi_client_troubles(pipeline->cfi, &cfi);
	if (r >= 0)
		r = store_put_counter(store, "elf questions", (int64_t)cfi.n_asked);
	if (r >= 0 && cfi.n_unread > 0)
		r = store_put_counter(store, "elf files given up", (int64_t)cfi.n_unread);
	if (r >= 0 && python[0])
		r = store_set_run_python(store, python);
	if (r >= 0)
		r = store_commit(store);
	if (r < 0)
		store_rollback(store);
	return r;
}

enum { MAX_LAST_BATCHES = 256 };

/* Full rings may take many batches. A program that goes on filling them does not delay the end for ever. */
static int flush_last(struct pipeline *pipeline)
{
	int left = 1, r = 0;

	for (int i = 0; i < MAX_LAST_BATCHES && left > 0 && r >= 0; i++) {
		left = r = pipeline_take_rows(pipeline, monotonic_ns(), true);
		if (r >= 0)
			r = pipeline_flush(pipeline);
	}
	return r;
}

int pipeline_finish(struct pipeline *pipeline, const struct pipeline_counter *counters, int error)
{
	struct store *store;
	uint64_t ended_ns;
	int r, stopped;

	processes_seek_ended(&pipeline->processes);
	for (size_t i = 0; i < pipeline->n_threads; i++)
		pipeline->threads[i].next_name_ns = 0; /* read the final names */
	r = flush_last(pipeline);
	ended_ns = realtime_ns(); /* the time after this is the recorder's own: it still resolves names */
	if (error < 0)
		r = error;
	stopped = writer_stop(pipeline->writer, r >= 0);
	store = writer_take_store(pipeline->writer);
	pipeline->n_dropped = writer_dropped(pipeline->writer);
	writer_limited(pipeline->writer, &pipeline->counts.limited);
	writer_name_troubles(pipeline->writer, &pipeline->name_troubles);
	writer_free(TAKE(pipeline->writer));
	if (r >= 0)
		r = stopped;
	if (r >= 0)
		r = put_end(store, pipeline, counters, pipeline->python);
	if (r < 0) {
		store_close(store);
		return r;
	}
	return store_finish(store, ended_ns);
}

void pipeline_read_counts(const struct pipeline *pipeline, struct pipeline_counts *ret)
{
	struct waits_sums sums = { 0 };

	*ret = pipeline->counts;
	if (pipeline->off_cpu.waits)
		waits_read_sums(pipeline->off_cpu.waits, &sums);
	memcpy(ret->by_state, sums.by_state, sizeof ret->by_state);
	ret->switches = sums.n_switches;
	ret->switch_stacks = sums.n_stacks;
	ret->unknown_ns = sums.unknown_ns;
	ret->n_frames = pipeline->intern.n_frames;
	ret->n_stacks = pipeline->intern.n_stacks;
	ret->dropped = pipeline->writer ? writer_dropped(pipeline->writer) : pipeline->n_dropped;
}

void pipeline_read_name_troubles(const struct pipeline *pipeline, struct pipeline_name_troubles *ret)
{
	*ret = pipeline->name_troubles;
}

void pipeline_read_cfi_troubles(const struct pipeline *pipeline, struct pipeline_cfi_troubles *ret)
{
	cfi_client_troubles(pipeline->cfi, ret);
}

const char *pipeline_python(const struct pipeline *pipeline)
{
	return pipeline->python;
}

int64_t pipeline_store_bytes(const struct pipeline *pipeline)
{
	return pipeline->writer ? writer_bytes(pipeline->writer) : 0;
}
