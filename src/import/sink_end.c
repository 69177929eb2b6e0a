/* SPDX-License-Identifier: MIT */
/* sink_end.c - data known only at the end: the order of samples, sums, properties of the run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/import/sink_private.h"

static int by_time(const void *left, const void *right)
{
	const struct sample_row *one = left, *other = right;

	if (one->time_ns != other->time_ns)
		return one->time_ns < other->time_ns ? -1 : 1;
	if (one->tid != other->tid)
		return one->tid < other->tid ? -1 : 1;
	return one < other ? -1 : one > other;
}

static int put_samples(struct sink *sink)
{
	int r = 0;

	if (sink->n_samples > 0)
		qsort(sink->samples, sink->n_samples, sizeof *sink->samples, by_time);
	for (size_t i = 0; i < sink->n_samples && r >= 0; i++) {
		r = store_put_sample(sink->store, &sink->samples[i]);
		if (r >= 0)
			r = sink_step(sink);
		if (r >= 0)
			r = sink_write(sink, i + 1, sink->n_samples + sink->n_sums);
	}
	sink->result->n_timed = sink->n_samples;
	return r;
}

static int put_sums(struct sink *sink)
{
	int r = 0;

	for (size_t i = 0; i < sink->n_sums && r >= 0; i++) {
		const struct sink_total *sum = &sink->sums[i];

		r = store_put_total(sink->store, &(struct total_row){ .pid = sum->pid,
								      .tid = sum->tid,
								      .stack = sum->stack,
								      .samples = sum->samples,
								      .weight = sum->weight });
		if (r >= 0)
			r = sink_step(sink);
		if (r >= 0)
			r = sink_write(sink, sink->n_samples + i + 1, sink->n_samples + sink->n_sums);
	}
	return r;
}

/* Use the file's modification time if the data have no times. */
static void find_times(const struct sink *sink, uint64_t *ret_started, uint64_t *ret_ended)
{
	uint64_t started = sink->run.started_ns, ended = sink->run.ended_ns;

	if (sink->n_samples > 0) {
		uint64_t last = sink->samples[sink->n_samples - 1].time_ns;

		started = started > 0 ? MIN(started, sink->samples[0].time_ns) : sink->samples[0].time_ns;
		ended = MAX(ended, last);
	}
	if (started == 0)
		started = MAX(sink->input->modified_ns, 1);
	*ret_started = started;
	*ret_ended = MAX(ended, started);
}

static int put_run(struct sink *sink, const char *format, const char *version)
{
	const struct sink_run *run = &sink->run;
	const char *slash = strrchr(sink->input->name, '/');
	CLEANUP(freep) char *command = NULL;
	struct run_row row = { .mode = "imported",
			       .stack_source = format,
			       .host = run->host,
			       .kernel = run->kernel,
			       .probing = version,
			       .python = run->python[0] ? run->python : NULL,
			       .pid = sink->first_pid,
			       .hz = run->hz,
			       .kernel_frames = run->kernel_frames,
			       .cpus = run->cpus };
	uint64_t ended;
	int r;

	if (asprintf(&command, "%s", run->command[0] ? run->command : slash ? slash + 1 : sink->input->name) < 0)
		return -ENOMEM;
	row.command = command;
	find_times(sink, &row.started_ns, &ended);
	sink->result->ended_ns = ended;
	r = store_put_run(sink->store, &row);
	if (r >= 0 && (run->event[0] || run->counts))
		r = store_set_run_event(sink->store, run->event[0] ? run->event : "weight", run->counts, run->period);
	return r;
}

/* Processes and threads without times existed during the whole recording. */
static int put_times(struct sink *sink)
{
	static const char *const sql[] = {
		"UPDATE process SET started = (SELECT started FROM run) WHERE started < 1",
		"UPDATE thread SET started = (SELECT started FROM run) WHERE started < 1",
	};
	sqlite3 *db = store_connection(sink->store);
	int r = 0;

	for (size_t i = 0; i < N_ELEMENTS(sql) && r >= 0; i++)
		r = store_errno(db, sqlite3_exec(db, sql[i], NULL, NULL, NULL));
	return r;
}

int sink_end(struct sink *sink, const char *format, const char *version)
{
	int r;

	if (sink->result->n_samples == 0 && sink->result->n_gpu == 0)
		return sink_explain(sink, -ENODATA, "it contains no measurements");
	if (sink->into)
		return 0;
	r = put_samples(sink);
	if (r >= 0)
		r = put_sums(sink);
	if (r >= 0)
		r = put_run(sink, format, version);
	if (r >= 0)
		r = put_times(sink);
	if (r >= 0 && sink->n_samples > 0)
		r = store_put_counter(sink->store, "samples", (int64_t)sink->n_samples);
	if (r >= 0 && sink->result->n_skipped > 0)
		r = store_put_counter(sink->store, "skipped", (int64_t)sink->result->n_skipped);
	return r;
}
