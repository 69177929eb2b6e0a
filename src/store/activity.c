/* SPDX-License-Identifier: MIT */
/*
 * activity.c - see activity.h.
 *
 * A thread that calls step() itself is in its own step. All others of the process are in the step that was begun last:
 * workers, and the threads in which a backward pass runs. A span is of its thread; phase is the outermost one of the
 * thread, or of the thread that begins the steps if this one never has any.
 *
 * A span whose begin was evicted is known by its end, which has its duration.
 */
#include "src/store/activity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/interner.h"
#include "base/util.h"
#include "src/store/row_block.h"
#include "src/store/store_private.h"

enum { MAX_ROWS = 1 << 24, MAX_POSITIONS = 64, MAX_OPEN = 256 };

enum kind { STEPS, SPANS, PASSES };

/* A row of steps, spans or torch_trace. */
struct row {
	uint64_t time_ns; /* of a pass: when it began */
	int32_t pid, tid; /* tid 0: unknown */
	int64_t number;   /* step, or span; of a pass the name of its stage, plus 1 */
	uint64_t order;   /* of rows of one time */
	uint64_t duration_ns;
	uint32_t name; /* of a span or a module, plus 1 */
	bool is_end;   /* of a span */
};

struct moment {
	uint64_t time_ns;
	union {
		int64_t step;
		struct {
			uint32_t span, phase; /* names, plus 1; 0: none. Of passes: module and stage */
		};
	};
};

struct timeline {
	int32_t pid, tid; /* tid 0: of the process */
	struct moment *moments;
	size_t n, allocated;
	size_t last; /* where the last search ended */
};

struct timelines {
	struct timeline *lines;
	size_t n, allocated;
	struct id_map index;
};

struct activity {
	struct timelines steps, spans;
	struct interner names;
	struct id_map steppers; /* pid -> tid of the thread that began a step last, in the order of time: the last one */
};

/* ---- Names ---- */

/* @text: a NUL ends it, too: a file's texts are foreign. @ret: plus 1. */
static int enter_name(struct activity *activity, const char *text, size_t n_text, uint32_t *ret)
{
	int r = interner_add(&activity->names, text, strnlen(text, n_text), ret);

	*ret += r >= 0;
	return MIN(r, 0);
}

/* ---- Read rows ---- */

struct ring {
	int64_t row_table, pid, offset_ns;
	int number, tid, name, phase, duration, began; /* positions of columns; -1: none */
};

struct reading {
	struct activity *activity;
	sqlite3 *db;
	const char *table;
	enum kind kind;
	struct row *rows;
	size_t n, allocated;
};

static void note_position(struct ring *ring, enum kind kind, const char *column, int position)
{
	struct {
		const char *name;
		int *to;
	} const columns[] = { { kind == SPANS ? "span" : "step", &ring->number },
			      { "tid", &ring->tid },
			      { kind == PASSES ? "module" : "name", &ring->name },
			      { kind == PASSES ? "stage" : "phase", &ring->phase },
			      { kind == PASSES ? "host_ms" : "duration_ms", &ring->duration },
			      { "began", &ring->began } };

	for (size_t i = 0; column && i < N_ELEMENTS(columns); i++)
		if (sqlite3_stricmp(column, columns[i].name) == 0)
			*columns[i].to = position;
}

static int read_ring(struct reading *reading, struct ring *ring)
{
	static const char sql[] = "SELECT position, name FROM row_column WHERE row_table = ?1";
	sqlite3_stmt *rows = NULL;
	int code;

	ring->number = ring->tid = ring->name = ring->phase = ring->duration = ring->began = -1;
	code = sqlite3_prepare_v2(reading->db, sql, -1, &rows, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(rows, 1, ring->row_table);
	while (code == SQLITE_OK && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		int position = sqlite3_column_int(rows, 0);

		if (position >= 0 && position < MAX_POSITIONS)
			note_position(ring, reading->kind, (const char *)sqlite3_column_text(rows, 1), position);
		code = SQLITE_OK;
	}
	sqlite3_finalize(rows);
	return store_read_errno(reading->db, code);
}

static const struct row_value *value_at(const struct row_block *block, int position, enum row_kind kind)
{
	return position >= 0 && (size_t)position < block->n_columns && block->values[position].kind == kind
		       ? &block->values[position]
		       : NULL;
}

static uint64_t duration_of(const struct row_value *value)
{
	return value && value->real > 0 && value->real < 1e12 ? (uint64_t)(value->real * 1e6) : 0;
}

static bool is_thread(const struct row_value *tid)
{
	return tid->integer > 0 && tid->integer <= INT32_MAX;
}

static int new_row(struct reading *reading, struct row **ret)
{
	int r;

	if (reading->n == MAX_ROWS)
		return -E2BIG;
	r = grow(&reading->rows, reading->n, &reading->allocated, sizeof *reading->rows);
	if (r >= 0)
		*ret = &reading->rows[reading->n];
	return r;
}

/* A pass of torch's module. Rows of an older probing have no thread. */
static int add_pass(struct reading *reading, const struct ring *ring, const struct row_block *block)
{
	const struct row_value *tid = value_at(block, ring->tid, ROW_INTEGER);
	const struct row_value *began = value_at(block, ring->began, ROW_REAL);
	const struct row_value *module = value_at(block, ring->name, ROW_TEXT);
	const struct row_value *stage = value_at(block, ring->phase, ROW_TEXT);
	uint32_t stage_name = 0;
	struct row *row;
	int r;

	if (!tid || !is_thread(tid) || !began || !(began->real >= 0 && began->real < 1e9) || !module || !stage ||
	    ring->pid <= 0 || ring->pid > INT32_MAX)
		return 0;
	r = new_row(reading, &row);
	if (r < 0)
		return r;
	*row = (struct row){
		.time_ns = (uint64_t)(began->real * 1e9) + (uint64_t)ring->offset_ns,
		.pid = (int32_t)ring->pid,
		.tid = (int32_t)tid->integer,
		.order = reading->n,
		.duration_ns = duration_of(value_at(block, ring->duration, ROW_REAL)),
	};
	r = enter_name(reading->activity, stage->text, stage->n_text, &stage_name);
	row->number = stage_name;
	if (r >= 0)
		r = enter_name(reading->activity, module->text, module->n_text, &row->name);
	if (r >= 0)
		reading->n++;
	return r;
}

static int add_row(struct reading *reading, const struct ring *ring, const struct row_block *block)
{
	const struct row_value *number = value_at(block, ring->number, ROW_INTEGER);
	const struct row_value *tid = value_at(block, ring->tid, ROW_INTEGER);
	const struct row_value *name = value_at(block, ring->name, ROW_TEXT);
	const struct row_value *phase = value_at(block, ring->phase, ROW_TEXT);
	struct row *row;
	int r;

	if (!number || (reading->kind == SPANS && (!phase || !tid)) || ring->pid <= 0 || ring->pid > INT32_MAX ||
	    (tid && !is_thread(tid)))
		return 0;
	r = new_row(reading, &row);
	if (r < 0)
		return r;
	*row = (struct row){
		.time_ns = block->time_ns + (uint64_t)ring->offset_ns,
		.pid = (int32_t)ring->pid,
		.tid = tid ? (int32_t)tid->integer : 0,
		.number = number->integer,
		.order = reading->n,
		.is_end = phase && phase->n_text == 3 && memcmp(phase->text, "end", 3) == 0,
		.duration_ns = duration_of(value_at(block, ring->duration, ROW_REAL)),
	};
	reading->n++;
	return name ? enter_name(reading->activity, name->text, name->n_text, &row->name) : 0;
}

static int read_block(struct reading *reading, const struct ring *ring, struct row_block *block, sqlite3_stmt *row)
{
	int r, more;

	r = row_block_open(block, sqlite3_column_blob(row, 3), (size_t)sqlite3_column_bytes(row, 3));
	while (r >= 0 && (more = row_block_next(block)) != 0)
		r = more < 0                  ? more
		    : reading->kind == PASSES ? add_pass(reading, ring, block)
					      : add_row(reading, ring, block);
	return r;
}

static int read_rows(struct reading *reading)
{
	static const char sql[] =
		"SELECT b.row_table, t.pid, t.realtime_offset_ns, b.data FROM row_table AS t JOIN row_block AS b USING (row_table)"
		" WHERE t.name = ?1 ORDER BY b.row_table, b.row_block";
	struct ring ring = { .row_table = -1 };
	struct row_block block = { 0 };
	sqlite3_stmt *blocks = NULL;
	int code, r = 0;

	code = sqlite3_prepare_v2(reading->db, sql, -1, &blocks, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(blocks, 1, reading->table, -1, SQLITE_STATIC);
	while (code == SQLITE_OK && r >= 0 && (code = sqlite3_step(blocks)) == SQLITE_ROW) {
		code = SQLITE_OK;
		if (sqlite3_column_int64(blocks, 0) != ring.row_table) {
			ring.row_table = sqlite3_column_int64(blocks, 0);
			ring.pid = sqlite3_column_int64(blocks, 1);
			ring.offset_ns = sqlite3_column_int64(blocks, 2);
			r = read_ring(reading, &ring);
		}
		if (r >= 0)
			r = read_block(reading, &ring, &block, blocks);
	}
	sqlite3_finalize(blocks);
	row_block_done(&block);
	return r < 0 ? r : store_read_errno(reading->db, code);
}

/* ---- Timelines ---- */

static uint64_t key_of(int32_t pid, int32_t tid)
{
	return ((uint64_t)(uint32_t)pid << 32 | (uint32_t)tid) + 1;
}

static struct timeline *find_line(const struct timelines *lines, int32_t pid, int32_t tid)
{
	const struct id_slot *slot = id_map_find(&lines->index, key_of(pid, tid));

	return slot ? &lines->lines[slot->id] : NULL;
}

static int get_line(struct timelines *lines, int32_t pid, int32_t tid, struct timeline **ret)
{
	int r;

	*ret = find_line(lines, pid, tid);
	if (*ret)
		return 0;
	r = grow(&lines->lines, lines->n, &lines->allocated, sizeof *lines->lines);
	if (r < 0)
		return r;
	*ret = &lines->lines[lines->n];
	**ret = (struct timeline){ .pid = pid, .tid = tid };
	return id_map_add(&lines->index, key_of(pid, tid), (uint32_t)lines->n++);
}

static int add_moment(struct timeline *line, const struct moment *moment)
{
	int r = grow(&line->moments, line->n, &line->allocated, sizeof *line->moments);

	if (r < 0)
		return r;
	line->moments[line->n++] = *moment;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->time_ns != other->time_ns)
		return one->time_ns < other->time_ns ? -1 : 1;
	return (one->order > other->order) - (one->order < other->order);
}

static int by_thread(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	if (one->tid != other->tid)
		return one->tid < other->tid ? -1 : 1;
	return by_time(a, b);
}

static int put_step(struct timelines *lines, const struct row *row, int32_t tid)
{
	struct timeline *line;
	int r = get_line(lines, row->pid, tid, &line);

	return r < 0 ? r : add_moment(line, &(struct moment){ .time_ns = row->time_ns, .step = row->number });
}

static int make_steps(struct activity *activity, const struct reading *reading)
{
	int r = 0;

	for (size_t i = 0; i < reading->n && r >= 0; i++) {
		const struct row *row = &reading->rows[i];
		struct id_slot *slot = id_map_find(&activity->steppers, (uint64_t)(uint32_t)row->pid + 1);

		r = put_step(&activity->steps, row, 0);
		if (r >= 0 && row->tid > 0)
			r = put_step(&activity->steps, row, row->tid);
		if (slot)
			slot->id = (uint32_t)row->tid;
		else if (r >= 0)
			r = id_map_add(&activity->steppers, (uint64_t)(uint32_t)row->pid + 1, (uint32_t)row->tid);
	}
	return r;
}

/* The open spans of a thread. Deeper ones than MAX_OPEN are not seen. */
struct open_spans {
	struct {
		int64_t span;
		uint32_t name;
	} spans[MAX_OPEN];
	size_t n;
};

static void change_open(struct open_spans *open, const struct row *row)
{
	size_t i = open->n;

	if (!row->is_end) {
		if (open->n < MAX_OPEN) {
			open->spans[open->n].span = row->number;
			open->spans[open->n++].name = row->name;
		}
		return;
	}
	while (i > 0 && open->spans[i - 1].span != row->number)
		i--;
	if (i == 0)
		return;
	memmove(&open->spans[i - 1], &open->spans[i], (open->n - i) * sizeof open->spans[0]);
	open->n--;
}

/* @rows: of one thread, in the order of time. */
static int make_line(struct timelines *lines, const struct row *rows, size_t n)
{
	struct open_spans open = { .n = 0 };
	struct timeline *line;
	int r;

	r = get_line(lines, rows[0].pid, rows[0].tid, &line);
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct moment moment = { .time_ns = rows[i].time_ns };

		change_open(&open, &rows[i]);
		if (open.n > 0) {
			moment.phase = open.spans[0].name;
			moment.span = open.spans[open.n - 1].name;
		}
		r = add_moment(line, &moment);
	}
	return r;
}

/* A row for the begin of each span that has an end only. */
static int add_begins(struct reading *reading)
{
	struct id_map begun = { 0 };
	size_t n = reading->n;
	int r = 0;

	/* Numbers of spans are of the process. */
	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct row *row = &reading->rows[i];
		uint64_t key = ((uint64_t)(uint32_t)row->pid << 32 ^ (uint64_t)row->number) | UINT64_C(1) << 63;
		struct row begin = *row;

		if (!row->is_end && !id_map_find(&begun, key))
			r = id_map_add(&begun, key, 0);
		if (!row->is_end || id_map_find(&begun, key))
			continue;
		begin.is_end = false;
		begin.time_ns -= MIN(begin.duration_ns, begin.time_ns);
		begin.order = 0; /* before all others of that time */
		r = grow(&reading->rows, reading->n, &reading->allocated, sizeof *reading->rows);
		if (r >= 0)
			reading->rows[reading->n++] = begin;
	}
	id_map_done(&begun);
	return r;
}

/* ---- Passes of torch's modules ---- */

/* By thread and begin. Of passes that begin at once the outer one comes first: its row was written last. */
static int by_begin(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	if (one->tid != other->tid)
		return one->tid < other->tid ? -1 : 1;
	if (one->time_ns != other->time_ns)
		return one->time_ns < other->time_ns ? -1 : 1;
	if (one->duration_ns != other->duration_ns)
		return one->duration_ns > other->duration_ns ? -1 : 1;
	return (one->order < other->order) - (one->order > other->order);
}

/* Passes that a thread is in, by their begin. Deeper ones than MAX_OPEN are not seen. */
struct open_passes {
	const struct row *rows[MAX_OPEN];
	size_t n;
};

static uint64_t end_of(const struct row *row)
{
	return row->time_ns + row->duration_ns;
}

static int put_moment(struct timeline *line, const struct open_passes *open, uint64_t time_ns)
{
	struct moment moment = { .time_ns = time_ns };

	if (open->n > 0) {
		moment.span = open->rows[open->n - 1]->name;
		moment.phase = (uint32_t)open->rows[open->n - 1]->number;
	}
	return add_moment(line, &moment);
}

/* End those that have ended at a time, one after the other: the backward passes of two branches may overlap. */
static int end_passes(struct timeline *line, struct open_passes *open, uint64_t time_ns)
{
	int r = 0;

	while (open->n > 0 && r >= 0) {
		size_t first = open->n - 1;
		uint64_t end_ns;

		for (size_t i = first; i-- > 0;)
			if (end_of(open->rows[i]) < end_of(open->rows[first]))
				first = i;
		end_ns = end_of(open->rows[first]);
		if (end_ns > time_ns)
			break;
		memmove(&open->rows[first], &open->rows[first + 1], (open->n - first - 1) * sizeof open->rows[0]);
		open->n--;
		r = put_moment(line, open, end_ns);
	}
	return r;
}

/* @rows: of one thread, in the order of by_begin(). */
static int make_line_of_passes(struct timelines *lines, const struct row *rows, size_t n)
{
	struct open_passes open = { .n = 0 };
	struct timeline *line;
	int r;

	r = get_line(lines, rows[0].pid, rows[0].tid, &line);
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = end_passes(line, &open, rows[i].time_ns);
		if (r < 0 || open.n == MAX_OPEN)
			continue;
		open.rows[open.n++] = &rows[i];
		r = put_moment(line, &open, rows[i].time_ns);
	}
	return r < 0 ? r : end_passes(line, &open, UINT64_MAX);
}

/* Calls @make for the rows of each thread, which lie together. */
static int make_lines(struct timelines *lines, const struct reading *reading,
		      int (*make)(struct timelines *lines, const struct row *rows, size_t n))
{
	int r = 0;

	for (size_t i = 0, n; i < reading->n && r >= 0; i += n) {
		for (n = 1; i + n < reading->n && reading->rows[i].pid == reading->rows[i + n].pid &&
			    reading->rows[i].tid == reading->rows[i + n].tid;)
			n++;
		r = make(lines, reading->rows + i, n);
	}
	return r;
}

static int make_spans(struct activity *activity, struct reading *reading)
{
	int r;

	r = add_begins(reading);
	if (r >= 0 && reading->n > 0)
		qsort(reading->rows, reading->n, sizeof *reading->rows, by_thread);
	return r < 0 ? r : make_lines(&activity->spans, reading, make_line);
}

static int load_passes(struct activity *activity, sqlite3 *db)
{
	struct reading passes = { .activity = activity, .db = db, .table = "torch_trace", .kind = PASSES };
	int r;

	r = read_rows(&passes);
	if (r >= 0 && passes.n > 0)
		qsort(passes.rows, passes.n, sizeof *passes.rows, by_begin);
	if (r >= 0)
		r = make_lines(&activity->spans, &passes, make_line_of_passes);
	free(passes.rows);
	return r;
}

static int load(struct activity *activity, sqlite3 *db)
{
	struct reading steps = { .activity = activity, .db = db, .table = "steps" };
	struct reading spans = { .activity = activity, .db = db, .table = "spans", .kind = SPANS };
	int r;

	r = read_rows(&steps);
	if (r >= 0 && steps.n > 0)
		qsort(steps.rows, steps.n, sizeof *steps.rows, by_time);
	if (r >= 0)
		r = make_steps(activity, &steps);
	free(steps.rows);
	if (r >= 0)
		r = read_rows(&spans);
	if (r >= 0)
		r = make_spans(activity, &spans);
	free(spans.rows);
	return r;
}

static bool has_rows(sqlite3 *db)
{
	static const char *const tables[] = { "row_table", "row_column", "row_block" };

	for (size_t i = 0; i < N_ELEMENTS(tables); i++)
		if (sqlite3_table_column_metadata(db, NULL, tables[i], NULL, NULL, NULL, NULL, NULL, NULL) != SQLITE_OK)
			return false;
	return true;
}

int64_t activity_version(sqlite3 *db)
{
	sqlite3_stmt *row = NULL;
	int64_t version = 0;

	if (sqlite3_prepare_v2(db, "SELECT max(row_block) FROM row_block", -1, &row, NULL) == SQLITE_OK &&
	    sqlite3_step(row) == SQLITE_ROW)
		version = sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	return version;
}

static int load_by(int (*loading)(struct activity *activity, sqlite3 *db), sqlite3 *db, struct activity **ret)
{
	struct activity *activity = calloc(1, sizeof *activity);
	int r = activity ? 0 : -ENOMEM;

	if (r >= 0 && has_rows(db))
		r = loading(activity, db);
	if (r < 0) {
		activity_free(activity);
		return r;
	}
	*ret = activity;
	return 0;
}

int activity_load(sqlite3 *db, struct activity **ret)
{
	return load_by(load, db, ret);
}

int activity_load_passes(sqlite3 *db, struct activity **ret)
{
	return load_by(load_passes, db, ret);
}

static void lines_done(struct timelines *lines)
{
	for (size_t i = 0; i < lines->n; i++)
		free(lines->lines[i].moments);
	free(lines->lines);
	id_map_done(&lines->index);
}

void activity_free(struct activity *activity)
{
	if (!activity)
		return;
	lines_done(&activity->steps);
	lines_done(&activity->spans);
	interner_done(&activity->names);
	id_map_done(&activity->steppers);
	free(activity);
}

/* ---- Look up ---- */

/* The last moment that is not after the time; NULL: all are. */
static const struct moment *find_moment(struct timeline *line, uint64_t time_ns)
{
	size_t low = 0, high = line->n, i = line->last;

	/* Most searches are a little later than the one before. */
	if (i > 0 && line->moments[i - 1].time_ns <= time_ns) {
		for (size_t end = MIN(i + 4, line->n); i < end && line->moments[i].time_ns <= time_ns;)
			i++;
		if (i == line->n || line->moments[i].time_ns > time_ns) {
			line->last = i;
			return &line->moments[i - 1];
		}
		low = i;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (line->moments[middle].time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	line->last = low;
	return low > 0 ? &line->moments[low - 1] : NULL;
}

static const char *name_at(const struct activity *activity, uint32_t name)
{
	uint32_t n_bytes;

	return name > 0 ? interner_get(&activity->names, name - 1, &n_bytes) : NULL;
}

/* Of the thread that begins the steps. */
static struct timeline *spans_of_stepper(const struct activity *activity, int32_t pid)
{
	const struct id_slot *slot = id_map_find(&activity->steppers, (uint64_t)(uint32_t)pid + 1);

	return slot && slot->id > 0 ? find_line(&activity->spans, pid, (int32_t)slot->id) : NULL;
}

void activity_find(struct activity *activity, int64_t pid, int64_t tid, uint64_t time_ns, struct doing *ret)
{
	struct timeline *steps = find_line(&activity->steps, (int32_t)pid, (int32_t)tid);
	struct timeline *spans = find_line(&activity->spans, (int32_t)pid, (int32_t)tid), *phases = spans;
	const struct moment *found;

	*ret = (struct doing){ .has_step = false };
	if (!steps)
		steps = find_line(&activity->steps, (int32_t)pid, 0);
	if (!spans)
		phases = spans_of_stepper(activity, (int32_t)pid);
	found = steps ? find_moment(steps, time_ns) : NULL;
	if (found) {
		ret->has_step = true;
		ret->step = found->step;
	}
	found = phases ? find_moment(phases, time_ns) : NULL;
	if (found)
		ret->phase = name_at(activity, found->phase);
	if (found && spans)
		ret->span = name_at(activity, found->span);
}

static int list_steps(const struct activity *activity, struct step_time **ret, size_t *ret_n)
{
	struct step_time *steps = NULL;
	size_t n = 0, allocated = 0;

	for (size_t i = 0; i < activity->steps.n; i++) {
		const struct timeline *line = &activity->steps.lines[i];

		for (size_t j = 0; line->tid == 0 && j < line->n; j++) {
			if (grow(&steps, n, &allocated, sizeof *steps) < 0) {
				free(steps);
				return -ENOMEM;
			}
			steps[n++] = (struct step_time){
				.pid = line->pid,
				.step = line->moments[j].step,
				.begin_ns = line->moments[j].time_ns,
				.end_ns = j + 1 < line->n ? line->moments[j + 1].time_ns : UINT64_MAX,
			};
		}
	}
	*ret = steps;
	*ret_n = n;
	return 0;
}

int store_read_steps(sqlite3 *db, struct step_time **ret, size_t *ret_n)
{
	struct activity *activity;
	int r;

	r = activity_load(db, &activity);
	if (r < 0)
		return r;
	r = list_steps(activity, ret, ret_n);
	activity_free(activity);
	return r;
}
