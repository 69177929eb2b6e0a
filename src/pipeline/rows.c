/* SPDX-License-Identifier: MIT */
/* rows.c - rows that programs write, between samples; see pipeline_private.h.
 *
 * Each flush reads what the rings of the known processes got since the last one. A process that has ended is read once
 * more: its folder is still open. A process that has been forked has rings of its own, which it makes at its first row.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/pipeline/pipeline_private.h"

/* New rings are looked for so often; folders of processes that had none yet, ever less often. */
#define FIND_NS UINT64_C(900000000)
#define MAX_FIND_NS (4 * FIND_NS)

enum {
	MAX_LAST = 64, /* readings at the end: the largest ring takes fewer */
	MAX_BATCH_BYTES =
		32 << 20, /* of rows in a batch: a program with hundreds of full rings does not fill the memory */
};

/* A process that did not exist when the recording began has written no row before it. */
static int add_follower(struct pipeline *pipeline, struct process *process)
{
	struct followed_rows *rows = &pipeline->rows;
	int r;

	if (process->is_followed)
		return 0;
	process->is_followed = true;
	r = grow(&rows->followers, rows->n, &rows->allocated, sizeof *rows->followers);
	if (r >= 0)
		rows_follower_init(&rows->followers[rows->n++], process->pid, process->start,
				   process->program->started_ns != 0);
	return r;
}

static void note_name(struct followed_rows *rows, const char *name)
{
	struct pipeline_rows *counts = &rows->counts;

	for (size_t i = 0; i < counts->n_names; i++)
		if (sqlite3_stricmp(rows->names[i], name) == 0)
			return;
	counts->n_names_in_all++;
	if (counts->n_names < N_ELEMENTS(counts->names))
		memcpy(rows->names[counts->n_names++], name, RING_NAME_BYTES);
}

/* A ring gets a row with its first row, or loss. */
static int put_table(struct pipeline *pipeline, pid_t pid, struct rows_ring *ring)
{
	const struct ring_snapshot *described = &ring->described;
	struct new_row_table *table = BATCH_ADD(pipeline->batch, row_tables);

	if (!table)
		return -ENOMEM;
	table->name = malloc(RING_NAME_BYTES + described->n_columns * RING_COLUMN_BYTES);
	table->columns = calloc(described->n_columns + 1, sizeof *table->columns);
	if (!table->name || !table->columns)
		return -ENOMEM;
	memcpy(table->name, described->name, RING_NAME_BYTES);
	for (size_t i = 0; i < described->n_columns; i++) {
		char *name = table->name + RING_NAME_BYTES + i * RING_COLUMN_BYTES;

		memcpy(name, described->columns[i].name, RING_COLUMN_BYTES);
		table->columns[i] = (struct row_column_row){ name, rows_type_name(described->columns[i].type) };
	}
	ring->row_table = ++pipeline->rows.last_table;
	table->row = (struct row_table_row){
		.row_table = ring->row_table,
		.pid = pid,
		.name = table->name,
		.realtime_offset_ns = pipeline->to_realtime_ns,
		.columns = table->columns,
		.n_columns = described->n_columns,
	};
	pipeline->rows.counts.n_rings++;
	note_name(&pipeline->rows, described->name);
	return 0;
}

static int take_ring(struct pipeline *pipeline, const struct rows_follower *follower, struct rows_ring *ring)
{
	uint64_t n_lost = ring->cursor.n_lost, n_dropped = ring->dropped, n_unfit = ring->unfit;
	struct row_bytes rows = { 0 };
	struct new_rows *row = NULL;
	bool is_changed;
	int r;

	r = rows_read(follower, ring, &rows);
	is_changed = ring->cursor.n_lost != n_lost || ring->dropped != n_dropped || ring->unfit != n_unfit;
	if (r >= 0 && (rows.n_rows > 0 || is_changed)) {
		if (ring->row_table == 0)
			r = put_table(pipeline, follower->pid, ring);
		if (r >= 0)
			row = BATCH_ADD(pipeline->batch, rows);
		r = row ? r : -ENOMEM;
	}
	if (!row) {
		free(rows.at);
		return r;
	}
	*row = (struct new_rows){
		.row_table = ring->row_table,
		.rows = rows,
		.losses = { ring->cursor.n_lost, ring->dropped, ring->unfit },
		.has_new_losses = is_changed,
	};
	pipeline->rows.n_bytes += rows.n_bytes;
	pipeline->rows.counts.n_rows += rows.n_rows;
	pipeline->rows.counts.n_lost += ring->cursor.n_lost - n_lost;
	return r;
}

/* 1: the batch is full. */
static int take_all(struct pipeline *pipeline, struct rows_follower *follower)
{
	int r = 0;

	for (size_t i = 0; i < follower->n_rings && r >= 0; i++) {
		if (pipeline->rows.n_bytes >= MAX_BATCH_BYTES)
			return 1;
		r = take_ring(pipeline, follower, &follower->rings[i]);
	}
	return r;
}

static int find(struct pipeline *pipeline, struct rows_follower *follower, uint64_t now_ns)
{
	int r;

	if (now_ns < follower->next_find_ns)
		return 0;
	r = rows_find(follower, &pipeline->rows.place);
	follower->find_ns = follower->folder >= 0 || follower->find_ns == 0 ? FIND_NS
									    : MIN(2 * follower->find_ns, MAX_FIND_NS);
	follower->next_find_ns = now_ns + follower->find_ns;
	return r;
}

static bool is_running(const struct pipeline *pipeline, pid_t pid)
{
	const struct process *process = processes_find(&pipeline->processes, pid);

	return process && process->ended_ns == 0;
}

/*
 * Again while there is more than one reading takes, and once more: rows that were in flight are complete then, or lost.
 * 1: the batch is full, the rest is for the next one.
 */
static int take_last(struct pipeline *pipeline, struct rows_follower *follower)
{
	struct followed_rows *rows = &pipeline->rows;
	uint64_t n_before = UINT64_MAX;
	int r;

	r = follower->folder < 0 && !is_running(pipeline, follower->pid)
		    ? rows_find_ended(follower, &rows->place, rows->began)
		    : rows_find(follower, &rows->place);
	if (r >= 0)
		r = take_all(pipeline, follower);
	for (int i = 0; i < MAX_LAST && r == 0 && rows->counts.n_rows != n_before; i++) {
		n_before = rows->counts.n_rows;
		r = take_all(pipeline, follower);
	}
	return r;
}

/* 1: the batch is full. A process that is read to its end is not followed any more. */
static int take_process(struct pipeline *pipeline, struct rows_follower *follower, uint64_t now_ns, bool is_last)
{
	int r;

	if (!is_last && is_running(pipeline, follower->pid)) {
		r = find(pipeline, follower, now_ns);
		return r < 0 ? r : take_all(pipeline, follower);
	}
	r = take_last(pipeline, follower);
	if (r == 0) {
		rows_follower_done(follower);
		follower->pid = 0;
	}
	return r;
}

int pipeline_take_rows(struct pipeline *pipeline, uint64_t now_ns, bool is_last)
{
	struct followed_rows *rows = &pipeline->rows;
	size_t n = 0;
	int r = 0;

	if (!pipeline->options.rows || (pipeline->paused_ns != 0 && !is_last))
		return 0;
	for (size_t i = 0; i < pipeline->processes.n && r >= 0; i++)
		r = add_follower(pipeline, pipeline->processes.processes[i]);
	rows->n_bytes = 0;
	for (size_t i = 0; i < rows->n && r == 0; i++) {
		size_t place = (rows->first + i) % rows->n;

		r = take_process(pipeline, &rows->followers[place], now_ns, is_last);
		if (r > 0)
			rows->first = place + 1; /* the next batch begins with another process */
	}
	for (size_t i = 0; i < rows->n; i++)
		if (rows->followers[i].pid != 0)
			rows->followers[n++] = rows->followers[i];
	rows->n = n;
	if (is_last && r == 0)
		pipeline->options.rows = false;
	return r;
}

void pipeline_rows_done(struct pipeline *pipeline)
{
	for (size_t i = 0; i < pipeline->rows.n; i++)
		rows_follower_done(&pipeline->rows.followers[i]);
	free(pipeline->rows.followers);
	rows_place_done(&pipeline->rows.place);
}

void pipeline_read_rows(const struct pipeline *pipeline, struct pipeline_rows *ret)
{
	*ret = pipeline->rows.counts;
	for (size_t i = 0; i < ret->n_names; i++)
		ret->names[i] = pipeline->rows.names[i];
}
