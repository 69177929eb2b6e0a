/* SPDX-License-Identifier: MIT */
/* blocks.c - the rows of a shipment: samples, their totals by the minute, and the stacks and functions that are new. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/fleet/ship.h"

enum { MINUTE_S = 60, MS_BITS = 27 /* of a day's milliseconds */ };

/* ---- Samples ---- */

static unsigned flags_of(const struct sample_row *row)
{
	return (unsigned)row->verdict << FLEET_VERDICT_SHIFT | (unsigned)row->end << FLEET_END_SHIFT |
	       (unsigned)row->gil << FLEET_GIL_SHIFT | (unsigned)row->gc << FLEET_GC_SHIFT |
	       (unsigned)row->state << FLEET_STATE_SHIFT;
}

/* How many samples of that thread in that millisecond came before: a part of the row's key. -ENOMEM. */
static int64_t find_number(struct blocks *blocks, const struct sample_row *row, uint64_t ms)
{
	uint64_t key = ((uint64_t)(uint32_t)row->tid << MS_BITS | ms % (SHIP_DAY_S * 1000ull)) + 1;
	struct id_slot *slot = id_map_find(&blocks->numbers, key);

	return slot ? (int64_t)++slot->id : id_map_add(&blocks->numbers, key, 0);
}

static int put_sample(struct blocks *blocks, const struct recording *recording, const struct shipment *shipment,
		      const struct sample_row *row, int32_t rank, uint64_t stack, unsigned leaf)
{
	struct native *native = &blocks->samples;
	uint64_t ms = row->time_ns / 1000000u;
	int64_t number = find_number(blocks, row, ms);
	const uint64_t numbers[] = {
		recording->feed.run.run,
		(uint64_t)(int64_t)rank,
		(uint64_t)row->pid,
		(uint64_t)row->tid,
		row->cpu,
		native->dialect == FLEET_OLD ? ms / 1000 : ms,
		ms % 1000,
		(uint64_t)number,
		stack,
		leaf,
		row->weight,
		flags_of(row),
		shipment->block,
	};

	if (number < 0)
		return (int)number;
	native_text(native, recording->job);
	native_numbers(native, numbers, N_ELEMENTS(numbers));
	native_end_row(native);
	return 0;
}

/* ---- Totals ---- */

struct total_key {
	uint64_t stack;
	uint32_t minute;
	int32_t rank;
	int8_t gil, state;
	uint8_t padding[6];
};

/*
 * The total of a key. Mostly it is that which the stack's last sample had. @last: that one's number and one more, or 0; of a
 * sample without a stack NULL.
 */
static int find_total(struct blocks *blocks, const struct total_key *key, uint32_t *last, uint32_t *ret)
{
	const void *known;
	uint32_t n;
	int r;

	if (last && *last > 0) {
		known = interner_get(&blocks->total_keys, *last - 1, &n);
		if (memcmp(known, key, sizeof *key) == 0) {
			*ret = *last - 1;
			return 0;
		}
	}
	r = interner_add(&blocks->total_keys, key, sizeof *key, ret);
	if (r >= 0 && last)
		*last = *ret + 1;
	return r;
}

static int add_total(struct blocks *blocks, const struct sample_row *row, int32_t rank, uint64_t stack, uint32_t *last)
{
	struct total_key key;
	uint32_t index;
	int r;

	memset(&key, 0, sizeof key); /* all bytes are compared */
	key.stack = stack;
	key.minute = (uint32_t)(row->time_ns / 1000000000u / MINUTE_S * MINUTE_S);
	key.rank = rank;
	key.gil = (int8_t)(row->gil == ANSWER_UNKNOWN ? -1 : row->gil == ANSWER_YES);
	key.state = (int8_t)row->state;
	r = find_total(blocks, &key, last, &index);
	if (r < 0)
		return r;
	if (r == 1) {
		r = grow(&blocks->sums, blocks->n_sums, &blocks->sums_room, sizeof *blocks->sums);
		if (r < 0)
			return r;
		blocks->sums[blocks->n_sums++] = (struct total_sum){ 0 };
	}
	blocks->sums[index].samples++;
	blocks->sums[index].weight += row->weight;
	return 0;
}

static void put_totals(struct blocks *blocks, const struct recording *recording, const struct shipment *shipment)
{
	struct native *native = &blocks->totals;

	for (uint32_t i = 0; i < blocks->n_sums; i++) {
		struct total_key key;
		uint32_t n;

		memcpy(&key, interner_get(&blocks->total_keys, i, &n), sizeof key);
		native_text(native, recording->job);
		native_number(native, key.minute);
		native_number(native, recording->feed.run.run);
		native_number(native, (uint64_t)(int64_t)key.rank);
		native_number(native, key.stack);
		native_number(native, (uint64_t)(int64_t)key.gil);
		native_number(native, (uint64_t)(int64_t)key.state);
		native_number(native, blocks->sums[i].samples);
		native_number(native, blocks->sums[i].weight);
		native_number(native, shipment->block);
		native_end_row(native);
	}
}

/* ---- Stacks and functions ---- */

static int put_function(struct blocks *blocks, struct recording *recording, uint32_t index, uint32_t week)
{
	const struct feed_function *function = &recording->feed.functions[index];
	struct native *native = &blocks->functions;
	int r = grow(&blocks->new_functions, blocks->n_new_functions, &blocks->new_functions_room, sizeof(uint32_t));

	if (r < 0)
		return r;
	blocks->new_functions[blocks->n_new_functions++] = index;
	recording->feed.functions[index].pending = week;
	native_number(native, fleet_id(&function->hash));
	native_hash(native, &function->hash);
	native_text(native, function->kind);
	native_text(native, function->role);
	native_text(native, function->name);
	native_text(native, function->file);
	native_number(native, function->line);
	native_text(native, function->module);
	native_text(native, function->build_id);
	native_number(native, day_of(realtime_ns()));
	native_end_row(native);
	return 0;
}

static int put_functions(struct blocks *blocks, struct recording *recording, uint32_t stack, uint32_t week)
{
	const struct feed *feed = &recording->feed;
	int r = 0;

	for (uint32_t at = stack; at != FEED_NONE && r == 0; at = feed->stacks[at].parent) {
		const struct feed_frame *frame = &feed->frames[feed->stacks[at].frame];

		for (size_t i = 0; i < frame->n && r == 0; i++) {
			uint32_t function = feed->parts[frame->first + i];

			if (feed->functions[function].week != week && feed->functions[function].pending != week)
				r = put_function(blocks, recording, function, week);
		}
	}
	return r;
}

static int put_stack(struct blocks *blocks, struct recording *recording, uint32_t index, uint32_t week)
{
	struct feed_stack *stack = &recording->feed.stacks[index];
	struct native *native = &blocks->stacks;
	int r = put_functions(blocks, recording, index, week);

	if (r == 0)
		r = feed_path(&recording->feed, index, &blocks->path, &blocks->n_path, &blocks->path_room);
	if (r == 0)
		r = grow(&blocks->new_stacks, blocks->n_new_stacks, &blocks->new_stacks_room, sizeof(uint32_t));
	if (r < 0)
		return r;
	blocks->new_stacks[blocks->n_new_stacks++] = index;
	stack->pending = week;
	native_number(native, fleet_id(&stack->hash));
	native_hash(native, &stack->hash);
	native_array(native, blocks->path, blocks->n_path);
	native_number(native, day_of(realtime_ns()));
	native_end_row(native);
	return 0;
}

/* ---- The shipment ---- */

static int put_row(struct blocks *blocks, struct recording *recording, const struct shipment *shipment,
		   const struct sample_row *row, uint32_t week)
{
	struct feed *feed = &recording->feed;
	uint64_t stack = 0;
	unsigned leaf = 0;
	uint32_t index, same, *last = NULL;
	int32_t rank;
	int r = feed_find_rank(feed, (uint32_t)row->pid, &rank);

	if (r == 0 && row->stack != 0) {
		r = feed_resolve(feed, row->stack, &index);
		if (r < 0)
			return r;
		same = feed->stacks[index].same;
		if (feed->stacks[same].week != week && feed->stacks[same].pending != week)
			r = put_stack(blocks, recording, same, week);
		if (r < 0)
			return r;
		stack = fleet_id(&feed->stacks[index].hash);
		leaf = feed->stacks[index].leaf;
		last = &feed->stacks[index].total;
	}
	blocks->weight += row->weight;
	blocks->n_samples++;
	if (r == 0 && shipment->is_raw)
		r = put_sample(blocks, recording, shipment, row, rank, stack, leaf);
	return r == 0 ? add_total(blocks, row, rank, stack, last) : r;
}

/* Another attempt may have left marks that never arrived. */
static void begin(struct blocks *blocks, struct recording *recording)
{
	enum fleet_dialect dialect = recording->server->dialect;

	native_begin(&blocks->samples, FLEET_SAMPLES, dialect);
	native_reserve(&blocks->samples, recording->feed.n_rows);
	native_begin(&blocks->totals, FLEET_TOTALS, dialect);
	native_begin(&blocks->stacks, FLEET_STACKS, dialect);
	native_begin(&blocks->functions, FLEET_FUNCTIONS, dialect);
	interner_done(&blocks->total_keys);
	id_map_clear(&blocks->numbers);
	blocks->n_sums = blocks->n_new_stacks = blocks->n_new_functions = 0;
	blocks->weight = blocks->n_samples = 0;
	for (size_t i = 0; i < recording->feed.n_stacks; i++)
		recording->feed.stacks[i].pending = recording->feed.stacks[i].total = 0;
	for (size_t i = 0; i < recording->feed.n_functions; i++)
		recording->feed.functions[i].pending = 0;
}

int blocks_build(struct blocks *blocks, struct recording *recording, const struct shipment *shipment, uint32_t week)
{
	const struct feed *feed = &recording->feed;
	int r = feed_hold(&recording->feed);

	if (r < 0)
		return r;
	begin(blocks, recording);
	for (size_t i = 0; i < feed->n_rows && r == 0; i++)
		if (day_of(feed->rows[i].time_ns) == shipment->day)
			r = put_row(blocks, recording, shipment, &feed->rows[i], week);
	feed_release(&recording->feed);
	if (r == 0)
		put_totals(blocks, recording, shipment);
	return r;
}

void blocks_mark(struct blocks *blocks, struct recording *recording, uint32_t week)
{
	for (size_t i = 0; i < blocks->n_new_stacks; i++)
		recording->feed.stacks[blocks->new_stacks[i]].week = week;
	for (size_t i = 0; i < blocks->n_new_functions; i++)
		recording->feed.functions[blocks->new_functions[i]].week = week;
}

void blocks_done(struct blocks *blocks)
{
	native_done(&blocks->samples);
	native_done(&blocks->totals);
	native_done(&blocks->stacks);
	native_done(&blocks->functions);
	interner_done(&blocks->total_keys);
	id_map_done(&blocks->numbers);
	free(blocks->new_stacks);
	free(blocks->new_functions);
	free(blocks->sums);
	free(blocks->path);
	*blocks = (struct blocks){ 0 };
}

/* ---- What goes before, and after ---- */

static int add_thread(struct native *native, struct recording *recording, sqlite3_stmt *row)
{
	const char *name = (const char *)sqlite3_column_text(row, 2),
		   *process = (const char *)sqlite3_column_text(row, 3);
	uint32_t pid = (uint32_t)sqlite3_column_int64(row, 0), tid = (uint32_t)sqlite3_column_int64(row, 1), ignored;
	struct fleet_bytes text = { 0 };
	int32_t rank;
	int r = feed_find_rank(&recording->feed, pid, &rank);

	name = name ? name : "";
	process = process ? process : "";
	if (r == 0)
		r = fleet_append(&text, &pid, sizeof pid);
	if (r == 0)
		r = fleet_append(&text, &tid, sizeof tid);
	if (r == 0)
		r = fleet_append(&text, name, strlen(name) + 1);
	if (r == 0)
		r = fleet_append(&text, process, strlen(process) + 1);
	if (r == 0)
		r = interner_add(&recording->threads, text.at, text.n, &ignored);
	free(text.at);
	if (r != 1)
		return r;
	native_number(native, recording->feed.run.run);
	native_number(native, pid);
	native_number(native, tid);
	native_number(native, (uint64_t)(int64_t)rank);
	native_text(native, name);
	native_text(native, process);
	native_number(native, (uint64_t)recording->feed.run.started);
	native_number(native, realtime_ns());
	native_end_row(native);
	return 0;
}

int threads_build(struct native *native, struct recording *recording, enum fleet_dialect dialect)
{
	sqlite3_stmt *rows = NULL;
	int code, r = 0;

	native_begin(native, FLEET_THREADS, dialect);
	code = sqlite3_prepare_v2(recording->feed.db,
				  "SELECT thread.pid, tid, thread.name, process.name FROM main.thread"
				  " LEFT JOIN main.process USING(pid)",
				  -1, &rows, NULL);
	while (code == SQLITE_OK && r == 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		r = add_thread(native, recording, rows);
		code = SQLITE_OK;
	}
	sqlite3_finalize(rows);
	return r < 0 ? r : code == SQLITE_DONE ? 0 : store_errno(recording->feed.db, code);
}

void run_build(struct native *native, const struct recording *recording, enum fleet_dialect dialect)
{
	const struct feed_run *run = &recording->feed.run;

	native_begin(native, FLEET_RUNS, dialect);
	native_number(native, run->run);
	native_hash(native, &run->hash);
	native_text(native, recording->job);
	native_text(native, run->host);
	native_text(native, run->command);
	native_text(native, run->mode);
	native_text(native, run->unit);
	native_text(native, run->event);
	native_text(native, run->stack_source);
	native_text(native, run->python);
	native_text(native, run->kernel);
	native_text(native, run->probing);
	native_real(native, run->hz);
	native_number(native, run->cpus);
	native_number(native, (uint64_t)run->started);
	native_number(native, (uint64_t)run->ended);
	native_number(native, realtime_ns());
	native_end_row(native);
}

void shipment_build(struct native *native, const struct recording *recording, const struct blocks *blocks,
		    const struct shipment *shipment, enum fleet_dialect dialect)
{
	native_begin(native, FLEET_SHIPMENTS, dialect);
	native_number(native, recording->feed.run.run);
	native_number(native, shipment->block);
	native_text(native, recording->job);
	native_number(native, (uint64_t)shipment->first);
	native_number(native, (uint64_t)shipment->last);
	native_number(native, shipment->day);
	native_number(native, shipment->n_samples);
	native_number(native, blocks->weight);
	native_number(native, blocks->n_sums);
	native_number(native, shipment->is_raw);
	native_number(native, realtime_ns() / 1000000000u);
	native_end_row(native);
}
