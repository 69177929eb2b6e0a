/* SPDX-License-Identifier: MIT */
/* writer.c - see writer.h.
 *
 * The thread has two kinds of work, in this order: a batch in the queue is
 * written in one transaction; while there is none, some of the frames without
 * a name are looked up and named in a transaction of their own.
 */
#include "src/pipeline/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/privilege.h"
#include "base/util.h"
#include "src/pipeline/symbol_writer.h"
#include "src/pipeline/records.h"
#include "src/pipeline/retention.h"

enum { NAMES_AT_ONCE = 64 };

struct writer {
	struct store *store;
	struct symbol_writer *names;
	struct records records;
	struct retention trim;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Protected by the lock. */
	struct batch *first, **last;
	struct batch *spare;
	struct stale_places stale;
	bool stopping, stop_without_names;
	/* Written by the thread, read by any. */
	_Atomic int error;
	_Atomic bool has_stale;
	_Atomic int64_t bytes;
	_Atomic uint64_t n_written, n_dropped;
	_Atomic bool wants_renewal;
	bool drops; /* reduce the thread's capabilities to these: */
	uint64_t capabilities;
};

static int put_program_rows(struct store *store, const struct new_rows *rows)
{
	int r = 0;

	if (rows->rows.n_rows > 0)
		r = store_put_row_block(store, rows->row_table, &rows->rows);
	return r < 0 || !rows->has_new_losses ? r : store_put_row_losses(store, rows->row_table, &rows->losses);
}

static int put_rows(struct store *store, struct records *records, const struct batch *batch)
{
	size_t n_records = 0;
	int r = 0;

	for (size_t i = 0; i < batch->n_processes && r >= 0; i++)
		r = store_put_process(store, &batch->processes[i].row);
	for (size_t i = 0; i < batch->n_threads && r >= 0; i++)
		r = store_put_thread(store, &batch->threads[i].row);
	for (size_t i = 0; i < batch->n_stacks && r >= 0; i++)
		r = store_put_stack(store, &batch->stacks[i]);
	for (size_t i = 0; i < batch->n_samples && r >= 0; i++) {
		r = store_put_sample(store, &batch->samples[i]);
		if (r >= 0 && n_records < batch->n_records && batch->records[n_records].sample == i)
			r = records_put(records, store, batch, &batch->records[n_records++]);
	}
	for (size_t i = 0; i < batch->n_totals && r >= 0; i++)
		r = store_put_total(store, &batch->totals[i]);
	for (size_t i = 0; i < batch->n_pauses && r >= 0; i++)
		r = store_put_pause(store, &batch->pauses[i]);
	for (size_t i = 0; i < batch->n_metrics && r >= 0; i++) {
		const struct new_metric *row = &batch->metrics[i];

		r = store_put_metric(store, row->table, &batch->metric_values[row->first], row->n);
	}
	for (size_t i = 0; i < batch->n_row_tables && r >= 0; i++)
		r = store_put_row_table(store, &batch->row_tables[i].row);
	for (size_t i = 0; i < batch->n_rows && r >= 0; i++)
		r = put_program_rows(store, &batch->rows[i]);
	return r;
}

/* Row strings may point into the batch only when its arrays no longer move. */
static void settle_strings(struct batch *batch)
{
	for (size_t i = 0; i < batch->n_processes; i++) {
		batch->processes[i].row.name = batch->processes[i].name;
		batch->processes[i].row.command = batch->processes[i].command;
		batch->processes[i].row.python = batch->processes[i].python;
		batch->processes[i].row.rank = batch->processes[i].rank;
	}
	for (size_t i = 0; i < batch->n_threads; i++)
		batch->threads[i].row.name = batch->threads[i].name;
	for (size_t i = 0; i < batch->n_metric_values; i++)
		if (batch->metric_values[i].type == METRIC_TEXT)
			batch->metric_values[i].text = batch->metric_text + batch->metric_values[i].integer;
}

static int write_batch(struct writer *writer, struct batch *batch)
{
	int r;

	settle_strings(batch);
	r = store_begin(writer->store);
	if (r < 0)
		return r;
	r = symbol_writer_put_modules(writer->names, batch->modules, batch->n_modules);
	if (r >= 0)
		r = symbol_writer_put_programs(writer->names, batch);
	if (r >= 0)
		r = symbol_writer_put_frames(writer->names, batch->frames, batch->n_frames);
	if (r >= 0)
		r = put_rows(writer->store, &writer->records, batch);
	if (r >= 0)
		r = store_commit(writer->store);
	if (r < 0)
		store_rollback(writer->store);
	return r;
}

/* Drop the oldest samples if necessary. Request a new tree once, until it comes. */
static int trim(struct writer *writer, const struct batch *batch)
{
	size_t n_rows = batch->n_samples + batch->n_stacks + batch->n_frames;
	bool asked;
	int r;

	if (batch->old_frames > 0)
		retention_renewed(&writer->trim, batch->old_stacks, batch->old_frames);
	asked = writer->trim.wants_renewal;
	r = retention_after(&writer->trim, writer->store, writer->names, n_rows, realtime_ns());
	if (writer->trim.wants_renewal && !asked)
		writer->wants_renewal = true;
	writer->n_dropped = writer->trim.n_dropped;
	return r;
}

static int name_some(struct writer *writer)
{
	int r;

	r = store_begin(writer->store);
	if (r < 0)
		return r;
	r = symbol_writer_look_up(writer->names, NAMES_AT_ONCE);
	if (r >= 0)
		r = store_commit(writer->store);
	if (r < 0) {
		store_rollback(writer->store);
		return r;
	}
	pthread_mutex_lock(&writer->lock);
	r = symbol_writer_take_stale(writer->names, &writer->stale);
	writer->has_stale = writer->stale.n > 0;
	pthread_mutex_unlock(&writer->lock);
	return r;
}

/* Wait for work. NULL: resolve names, or end if *ret_end. */
static struct batch *next_batch(struct writer *writer, bool *ret_end)
{
	struct batch *batch;

	pthread_mutex_lock(&writer->lock);
	for (;;) {
		bool can_name = !writer->error && symbol_writer_is_waiting(writer->names) &&
				!(writer->stopping && writer->stop_without_names);

		batch = writer->first;
		*ret_end = !batch && writer->stopping && !can_name;
		if (batch || can_name || *ret_end)
			break;
		pthread_cond_wait(&writer->wake, &writer->lock);
	}
	if (batch) {
		writer->first = batch->next;
		if (!writer->first)
			writer->last = &writer->first;
	}
	pthread_mutex_unlock(&writer->lock);
	return batch;
}

static void give_back(struct writer *writer, struct batch *batch)
{
	batch_clear(batch);
	pthread_mutex_lock(&writer->lock);
	if (!writer->spare)
		writer->spare = TAKE(batch);
	pthread_mutex_unlock(&writer->lock);
	batch_free(batch);
}

static void *writer_main(void *data)
{
	struct writer *writer = data;
	bool end = false;

	if (writer->drops)
		writer->error = privilege_drop(writer->capabilities);
	while (!end) {
		struct batch *batch = next_batch(writer, &end);
		int r = 0;

		if (batch && !writer->error)
			r = write_batch(writer, batch);
		if (batch && !writer->error && r >= 0)
			r = trim(writer, batch);
		else if (!batch && !end)
			r = name_some(writer);
		if (r < 0)
			writer->error = r;
		writer->bytes = store_bytes(writer->store);
		if (batch)
			give_back(writer, batch);
		writer->n_written += batch != NULL;
	}
	return NULL;
}

/* Start before any thread: see confined.h. */
static int confine_names(struct symbol_writer *names)
{
	struct name_client *client;
	int r;

	r = name_client_start(&client);
	if (r >= 0)
		symbol_writer_confine(names, client);
	return r;
}

int writer_start(struct store *store, const struct pipeline_options *options, struct writer **ret)
{
	struct writer *writer;
	int r;

	writer = calloc(1, sizeof *writer);
	if (!writer)
		return -ENOMEM;
	writer->last = &writer->first;
	r = records_init(&writer->records, store, options->tracepoint);
	if (r >= 0)
		r = retention_init(&writer->trim, store, &options->limits);
	if (r >= 0)
		r = symbol_writer_new(store, NULL, &writer->names);
	if (r >= 0)
		r = confine_names(writer->names);
	if (r < 0) {
		symbol_writer_free(writer->names);
		records_done(&writer->records);
		free(writer);
		return r;
	}
	if (options->no_symbols)
		symbol_writer_without_files(writer->names);
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->wake, NULL);
	writer->store = store;
	writer->drops = options->capabilities != NULL;
	writer->capabilities = options->capabilities ? *options->capabilities : 0;
	r = pthread_create(&writer->thread, NULL, writer_main, writer);
	if (r != 0) {
		symbol_writer_free(writer->names);
		records_done(&writer->records);
		free(writer);
		return -r;
	}
	*ret = writer;
	return 0;
}

int writer_get_batch(struct writer *writer, struct batch **ret)
{
	struct batch *batch;

	pthread_mutex_lock(&writer->lock);
	batch = TAKE(writer->spare);
	pthread_mutex_unlock(&writer->lock);
	if (!batch)
		return batch_new(ret);
	*ret = batch;
	return 0;
}

void writer_put_batch(struct writer *writer, struct batch *batch)
{
	batch->next = NULL;
	pthread_mutex_lock(&writer->lock);
	*writer->last = batch;
	writer->last = &batch->next;
	pthread_cond_signal(&writer->wake);
	pthread_mutex_unlock(&writer->lock);
}

bool writer_has_stale(const struct writer *writer)
{
	return writer->has_stale;
}

int writer_take_stale(struct writer *writer, struct stale_places *to)
{
	int r;

	pthread_mutex_lock(&writer->lock);
	r = stale_places_move(&writer->stale, to);
	writer->has_stale = false;
	pthread_mutex_unlock(&writer->lock);
	return r;
}

uint64_t writer_written(const struct writer *writer)
{
	return writer->n_written;
}

bool writer_take_renewal(struct writer *writer)
{
	return atomic_exchange(&writer->wants_renewal, false);
}

void writer_limited(const struct writer *writer, struct symbol_limited *ret)
{
	symbol_writer_limited(writer->names, ret);
}

uint64_t writer_dropped(const struct writer *writer)
{
	return writer->n_dropped;
}

int writer_error(const struct writer *writer)
{
	return writer->error;
}

int64_t writer_bytes(const struct writer *writer)
{
	return writer->bytes;
}

void writer_name_troubles(const struct writer *writer, struct pipeline_name_troubles *ret)
{
	symbol_writer_troubles(writer->names, ret);
}

int writer_stop(struct writer *writer, bool names)
{
	pthread_mutex_lock(&writer->lock);
	writer->stopping = true;
	writer->stop_without_names = !names;
	pthread_cond_signal(&writer->wake);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
	return writer->error;
}

struct store *writer_take_store(struct writer *writer)
{
	return TAKE(writer->store);
}

void writer_free(struct writer *writer)
{
	if (!writer)
		return;
	batch_free(writer->spare);
	free(writer->stale.places);
	records_done(&writer->records);
	symbol_writer_free(writer->names);
	store_close(writer->store);
	pthread_mutex_destroy(&writer->lock);
	pthread_cond_destroy(&writer->wake);
	free(writer);
}
