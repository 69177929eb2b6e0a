/* SPDX-License-Identifier: MIT */
/*
 * write.c - an answer as JSON.
 *
 * Slices are flat lists of whole numbers: first column, number of columns, and what the list is about. Names are those that the answer
 * uses, by their place in it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "src/lanes/lanes_private.h"

enum { SHARE_STEPS = 16, COLUMN_DIGITS = 9, VALUE_DIGITS = 6 };

struct numbers {
	int64_t *at;
	size_t n, allocated;
};

struct writing {
	struct lanes *lanes;
	const struct lanes_query *query;
	struct json *json;
	unsigned level;
	uint64_t first; /* index of the first column */
	size_t n;       /* columns */
	struct lane_thread **shown;
	size_t n_shown;
	struct column *columns; /* n of each shown thread */
	bool *is_chosen;        /* by shown thread */
	uint32_t *place_of;     /* by name: its place in the answer plus 1; 0: unused */
	uint32_t *used;         /* names, by place */
	size_t n_used;
	struct numbers rows[LANES_MAX_DEPTH];
};

static int add(struct numbers *numbers, int64_t a, int64_t b, int64_t c, int64_t d)
{
	while (numbers->allocated < numbers->n + 4) {
		int r = grow(&numbers->at, numbers->allocated, &numbers->allocated, sizeof *numbers->at);

		if (r < 0)
			return r;
	}
	numbers->at[numbers->n++] = a;
	numbers->at[numbers->n++] = b;
	numbers->at[numbers->n++] = c;
	numbers->at[numbers->n++] = d;
	return 0;
}

static void put_numbers(struct writing *writing, struct numbers *numbers)
{
	to_json_array(writing->json);
	for (size_t i = 0; i < numbers->n; i++)
		to_json_integer(writing->json, numbers->at[i]);
	to_json_array_end(writing->json);
	numbers->n = 0;
}

static uint32_t place_of(struct writing *writing, uint32_t name)
{
	if (writing->place_of[name] == 0) {
		writing->used[writing->n_used++] = name;
		writing->place_of[name] = (uint32_t)writing->n_used;
	}
	return writing->place_of[name] - 1;
}

/* ---- Range ---- */

static int64_t since_start(const struct lanes *lanes, uint64_t time_ns)
{
	return (int64_t)(time_ns - lanes->started_ns);
}

static uint64_t at_time(const struct lanes *lanes, bool has, int64_t after_ns, uint64_t otherwise)
{
	int64_t time = (int64_t)lanes->started_ns + after_ns;

	return !has ? otherwise : time < 1 ? 1 : (uint64_t)time;
}

/* The widest columns that are not wider than a pixel. A wish beyond all data gives columns without any. */
static void choose_columns(struct writing *writing)
{
	const struct lanes *lanes = writing->lanes;
	const struct lanes_query *query = writing->query;
	uint64_t since = at_time(lanes, query->has_since, query->since_ns, lanes->begin_ns);
	uint64_t until = at_time(lanes, query->has_until, query->until_ns, lanes->end_ns);

	until = MAX(until, since + 1);
	while (writing->level < MAX_LEVEL && UINT64_C(2) << writing->level <= (until - since) / query->pixels)
		writing->level++;
	writing->first = since >> writing->level;
	writing->n = (size_t)(((until - 1) >> writing->level) - writing->first + 1);
	writing->n = MIN(writing->n, 2 * (size_t)query->pixels + 2);
}

/* ---- Threads ---- */

static int by_samples(const void *a, const void *b)
{
	const struct lane_thread *left = *(struct lane_thread *const *)a, *right = *(struct lane_thread *const *)b;

	if (left->n != right->n)
		return left->n > right->n ? -1 : 1;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

static int by_ids(const void *a, const void *b)
{
	const struct lane_thread *left = *(struct lane_thread *const *)a, *right = *(struct lane_thread *const *)b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

static bool is_named(const struct lanes_query *query, int32_t tid)
{
	for (size_t i = 0; i < query->n_threads; i++)
		if (query->threads[i] == tid)
			return true;
	return false;
}

/* The busiest ones, by pid and tid. */
static int choose_threads(struct writing *writing)
{
	const struct lanes *lanes = writing->lanes;
	const struct lanes_query *query = writing->query;
	CLEANUP(freep) struct lane_thread **sorted = calloc(lanes->n_threads + 1, sizeof(struct lane_thread *));

	writing->shown = calloc(lanes->n_threads + 1, sizeof(struct lane_thread *));
	writing->is_chosen = calloc(lanes->n_threads + 1, sizeof *writing->is_chosen);
	if (!sorted || !writing->shown || !writing->is_chosen)
		return -ENOMEM;
	memcpy(sorted, lanes->threads, lanes->n_threads * sizeof(struct lane_thread *));
	qsort(sorted, lanes->n_threads, sizeof(struct lane_thread *), by_samples);
	writing->n_shown = MIN(lanes->n_threads, (size_t)LANES_MAX_THREADS);
	memcpy(writing->shown, sorted, writing->n_shown * sizeof(struct lane_thread *));
	qsort(writing->shown, writing->n_shown, sizeof(struct lane_thread *), by_ids);
	for (size_t i = 0; i < writing->n_shown; i++) {
		writing->is_chosen[i] = is_named(query, writing->shown[i]->tid);
		for (size_t j = 0; !query->has_threads && j < LANES_DEFAULT_CHOSEN && j < writing->n_shown; j++)
			writing->is_chosen[i] |= sorted[j] == writing->shown[i];
	}
	return 0;
}

static int fold_threads(struct writing *writing)
{
	int r = 0;

	writing->columns = calloc(writing->n_shown * writing->n + 1, sizeof *writing->columns);
	if (!writing->columns)
		return -ENOMEM;
	for (size_t i = 0; i < writing->n_shown && r >= 0; i++)
		r = columns_fold(writing->shown[i], &writing->lanes->calls, writing->level, writing->first, writing->n,
				 &writing->columns[i * writing->n]);
	return r;
}

/* The slices that are open at a column, callers first. */
struct stack_rows {
	uint32_t call[LANES_MAX_DEPTH];
	size_t begin[LANES_MAX_DEPTH];
	uint64_t n[LANES_MAX_DEPTH];
	uint32_t depth;
};

static int close_rows(struct writing *writing, struct stack_rows *open, uint32_t depth, size_t end)
{
	const struct calls *calls = &writing->lanes->calls;
	int r = 0;

	while (open->depth > depth && r >= 0) {
		uint32_t row = --open->depth;

		r = add(&writing->rows[row], (int64_t)open->begin[row], (int64_t)(end - open->begin[row]),
			place_of(writing, calls->calls[open->call[row]].name), (int64_t)open->n[row]);
	}
	return r;
}

/* @ret: the number of rows that there would be without a limit. */
static int fold_rows(struct writing *writing, const struct column *columns, uint32_t *ret)
{
	const struct calls *calls = &writing->lanes->calls;
	uint32_t path[LANES_MAX_DEPTH], n, shared;
	struct stack_rows open = { .depth = 0 };
	int r = 0;

	*ret = 0;
	for (size_t i = 0; i < writing->n && r >= 0; i++) {
		n = lane_calls_path(calls, columns[i].call, path, writing->query->depth);
		*ret = MAX(*ret, calls->calls[columns[i].call].depth);
		for (shared = 0; shared < n && shared < open.depth && open.call[shared] == path[shared]; shared++)
			;
		r = close_rows(writing, &open, shared, i);
		for (; open.depth < n; open.depth++) {
			open.call[open.depth] = path[open.depth];
			open.begin[open.depth] = i;
			open.n[open.depth] = 0;
		}
		for (uint32_t row = 0; row < open.depth; row++)
			open.n[row] += columns[i].n;
	}
	return r < 0 ? r : close_rows(writing, &open, 0, writing->n);
}

static int put_rows(struct writing *writing, const struct column *columns)
{
	uint32_t deepest, n_rows;
	int r = fold_rows(writing, columns, &deepest);

	if (r < 0)
		return r;
	n_rows = MIN(deepest, writing->query->depth);
	to_json_put_integer(writing->json, "depth", deepest);
	to_json_put_array(writing->json, "rows");
	for (uint32_t i = 0; i < n_rows; i++)
		put_numbers(writing, &writing->rows[i]);
	to_json_array_end(writing->json);
	return 0;
}

static int64_t steps_of(uint8_t share)
{
	return (share * SHARE_STEPS + SHARE_ALL - 1) / SHARE_ALL;
}

/* Columns that are equal in both values are one. */
static int put_strip(struct writing *writing, const char *name, const struct column *columns, bool is_held)
{
	struct numbers *numbers = &writing->rows[0];
	int r = 0;

	for (size_t i = 0, end; i < writing->n && r >= 0; i = end) {
		int64_t share = steps_of(is_held ? columns[i].held : columns[i].covered);

		for (end = i + 1; end < writing->n; end++)
			if (steps_of(is_held ? columns[end].held : columns[end].covered) != share ||
			    (!is_held && columns[end].state != columns[i].state))
				break;
		if (share > 0)
			r = add(numbers, (int64_t)i, (int64_t)(end - i), is_held ? 0 : columns[i].state, share);
	}
	to_json_key(writing->json, name);
	put_numbers(writing, numbers);
	return r;
}

static int put_thread(struct writing *writing, size_t i)
{
	const struct lane_thread *thread = writing->shown[i];
	const struct column *columns = &writing->columns[i * writing->n];
	int r;

	to_json_object(writing->json);
	to_json_put_integer(writing->json, "pid", thread->pid);
	to_json_put_integer(writing->json, "tid", thread->tid);
	to_json_put_string(writing->json, "name", thread->name);
	to_json_put_string(writing->json, "process", thread->process);
	to_json_put_integer(writing->json, "samples", (int64_t)thread->n);
	r = put_strip(writing, "states", columns, false);
	if (r >= 0)
		r = put_strip(writing, "held", columns, true);
	if (r >= 0 && writing->is_chosen[i])
		r = put_rows(writing, columns);
	to_json_object_end(writing->json);
	return r;
}

/* The thread of a process, by place in the answer, that held the GIL longest in a column; -1: none held it. */
static int64_t holder(const struct writing *writing, size_t first, size_t end, size_t column, uint8_t *ret_held)
{
	int64_t best = -1;

	*ret_held = 0;
	for (size_t i = first; i < end; i++) {
		uint8_t held = writing->columns[i * writing->n + column].held;

		if (held > *ret_held) {
			*ret_held = held;
			best = (int64_t)i;
		}
	}
	return best;
}

static int put_gil_of(struct writing *writing, size_t first, size_t end)
{
	struct numbers *numbers = &writing->rows[0];
	int64_t last = -1, last_share = 0;
	size_t begin = 0;
	int r = 0;

	for (size_t i = 0; i <= writing->n && r >= 0; i++) {
		uint8_t held = 0;
		int64_t now = i < writing->n ? holder(writing, first, end, i, &held) : -1;
		int64_t share = steps_of(held);

		if (i < writing->n && i > 0 && now == last && share == last_share)
			continue;
		if (last >= 0)
			r = add(numbers, (int64_t)begin, (int64_t)(i - begin), last, last_share);
		begin = i;
		last = now;
		last_share = share;
	}
	if (numbers->n > 0) {
		to_json_object(writing->json);
		to_json_put_integer(writing->json, "pid", writing->shown[first]->pid);
		to_json_key(writing->json, "slices");
		put_numbers(writing, numbers);
		to_json_object_end(writing->json);
	}
	return r;
}

static int put_gil(struct writing *writing)
{
	int r = 0;

	to_json_put_array(writing->json, "gil");
	for (size_t i = 0, end; i < writing->n_shown && r >= 0; i = end) {
		for (end = i + 1; end < writing->n_shown && writing->shown[end]->pid == writing->shown[i]->pid; end++)
			;
		r = put_gil_of(writing, i, end);
	}
	to_json_array_end(writing->json);
	return r;
}

/* ---- Events ---- */

/* The first one that may reach beyond a time. */
static size_t first_event(const struct event_lane *lane, uint64_t time_ns)
{
	size_t low = 0, high = lane->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lane->reach[middle] > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Events of a row in one column are one slice, with the name of the longest. */
static int fold_event(struct writing *writing, const struct event *event, uint64_t *longest)
{
	struct numbers *numbers = &writing->rows[event->row];
	uint64_t end_ns = MIN(event->end_ns, (writing->first + writing->n) << writing->level);
	uint64_t from = MAX(event->start_ns >> writing->level, writing->first) - writing->first;
	uint64_t to = ((end_ns - 1) >> writing->level) + 1 - writing->first;
	int64_t *last = numbers->n > 0 ? &numbers->at[numbers->n - 4] : NULL;
	uint64_t length = event->end_ns - event->start_ns;

	if (!last || (int64_t)from >= last[0] + last[1]) {
		*longest = length;
		return add(numbers, (int64_t)from, (int64_t)(to - from), place_of(writing, event->name), 1);
	}
	if (to - from > 1 && last[1] > 1) { /* two long ones meet in a column */
		*longest = length;
		return add(numbers, last[0] + last[1], MAX((int64_t)to - last[0] - last[1], INT64_C(1)),
			   place_of(writing, event->name), 1);
	}
	if (length > *longest) {
		*longest = length;
		last[2] = place_of(writing, event->name);
	}
	last[1] = MAX(last[1], (int64_t)to - last[0]);
	last[3]++;
	return 0;
}

static int put_event_lane(struct writing *writing, const struct event_lane *lane)
{
	uint64_t begin_ns = writing->first << writing->level, end_ns = (writing->first + writing->n) << writing->level;
	uint64_t longest[LANES_MAX_DEPTH] = { 0 };
	int r = 0;

	for (size_t i = first_event(lane, begin_ns); i < lane->n && lane->items[i].start_ns < end_ns && r >= 0; i++)
		if (lane->items[i].end_ns > begin_ns)
			r = fold_event(writing, &lane->items[i], &longest[lane->items[i].row]);
	to_json_object(writing->json);
	to_json_put_string(writing->json, "kind", lane->kind);
	to_json_put_string(writing->json, "title", lane->title);
	to_json_put_integer(writing->json, "pid", lane->pid);
	to_json_put_integer(writing->json, "tid", lane->tid);
	to_json_put_integer(writing->json, "events", (int64_t)lane->n);
	to_json_put_array(writing->json, "rows");
	for (uint32_t i = 0; i < lane->n_rows; i++)
		put_numbers(writing, &writing->rows[i]);
	to_json_array_end(writing->json);
	to_json_object_end(writing->json);
	return r;
}

/* ---- Curves ---- */

static size_t first_point(const struct curve *curve, uint64_t time_ns)
{
	size_t low = 0, high = curve->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (curve->points[middle].time_ns >= time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* As exact as a picture needs: printing all digits of a double takes most of an answer's time. */
static void put_rounded(struct writing *writing, double value, int digits)
{
	char text[40];

	to_json_digits(writing->json, text, (size_t)snprintf(text, sizeof text, "%.*g", digits, value));
}

static void put_point(struct writing *writing, const struct curve_point *point)
{
	double columns = (double)(int64_t)(point->time_ns - (writing->first << writing->level)) /
			 (double)(UINT64_C(1) << writing->level);

	put_rounded(writing, columns, COLUMN_DIGITS);
	put_rounded(writing, point->value, VALUE_DIGITS);
}

static uint64_t column_of(const struct writing *writing, const struct curve *curve, size_t i)
{
	return curve->points[i].time_ns >> writing->level;
}

/* From the point before the range to the one behind it. Of several in a column, the least and the greatest. */
static void put_points(struct writing *writing, const struct curve *curve)
{
	uint64_t end_ns = (writing->first + writing->n) << writing->level;
	size_t i = first_point(curve, writing->first << writing->level);

	for (i -= i > 0; i < curve->n;) {
		size_t least = i, greatest = i, next = i + 1;

		for (; next < curve->n && column_of(writing, curve, next) == column_of(writing, curve, i); next++) {
			if (curve->points[next].value < curve->points[least].value)
				least = next;
			if (curve->points[next].value > curve->points[greatest].value)
				greatest = next;
		}
		put_point(writing, &curve->points[MIN(least, greatest)]);
		if (least != greatest)
			put_point(writing, &curve->points[MAX(least, greatest)]);
		if (curve->points[i].time_ns >= end_ns)
			break;
		i = next;
	}
}

static void put_curve(struct writing *writing, const struct curve *curve)
{
	double top = 0;

	for (size_t i = 0; i < curve->n; i++)
		top = MAX(top, curve->points[i].value);
	to_json_object(writing->json);
	to_json_put_string(writing->json, "name", curve->name);
	to_json_put_string(writing->json, "unit", curve->unit);
	to_json_put_number(writing->json, "top", top);
	to_json_put_array(writing->json, "points");
	put_points(writing, curve);
	to_json_array_end(writing->json);
	to_json_object_end(writing->json);
}

/* ---- The answer ---- */

static void put_names(struct writing *writing)
{
	static const char *const kinds[NAME_N_KINDS] = {
		[NAME_PYTHON] = "python", [NAME_BUILTIN] = "builtin", [NAME_NATIVE] = "native",
		[NAME_KERNEL] = "kernel", [NAME_TASK] = "task",       [NAME_WAIT] = "wait",
		[NAME_GROUP] = "none",    [NAME_EVENT] = "event",
	};

	to_json_put_array(writing->json, "names");
	for (size_t i = 0; i < writing->n_used; i++) {
		const struct name *name = &writing->lanes->calls.names[writing->used[i]];

		to_json_array(writing->json);
		to_json_string(writing->json, name->text);
		to_json_string(writing->json, name->file);
		to_json_string(writing->json, kinds[name->kind]);
		to_json_array_end(writing->json);
	}
	to_json_array_end(writing->json);
}

static void put_head(struct writing *writing)
{
	const struct lanes *lanes = writing->lanes;
	struct json *json = writing->json;

	to_json_put_integer(json, "version", 1);
	to_json_put_fixed(json, "started", lanes->started_ns, 9);
	to_json_put_integer(json, "begin_ns", since_start(lanes, lanes->begin_ns));
	to_json_put_integer(json, "end_ns", since_start(lanes, lanes->end_ns));
	to_json_put_integer(json, "first_ns", since_start(lanes, writing->first << writing->level));
	to_json_put_integer(json, "column_ns", (int64_t)(UINT64_C(1) << writing->level));
	to_json_put_integer(json, "columns", (int64_t)writing->n);
	to_json_put_integer(json, "samples", (int64_t)lanes->n_samples);
	to_json_put_text(json, "unit", lanes->unit);
	to_json_put_text(json, "command", lanes->command);
	to_json_put_bool(json, "live", lanes->is_live);
	to_json_put_bool(json, "cut", lanes->is_cut);
	to_json_put_integer(json, "omitted_threads", (int64_t)(lanes->n_threads - writing->n_shown));
	to_json_put_array(json, "states");
	to_json_string(json, "running");
	for (int i = STATE_RUNNING; i < STATE_N; i++)
		to_json_string(json, thread_state_name((enum thread_state)i));
	to_json_array_end(json);
}

static int put_answer(struct writing *writing)
{
	const struct lanes *lanes = writing->lanes;
	int r = 0;

	to_json_object(writing->json);
	put_head(writing);
	to_json_put_array(writing->json, "threads");
	for (size_t i = 0; i < writing->n_shown && r >= 0; i++)
		r = put_thread(writing, i);
	to_json_array_end(writing->json);
	if (r >= 0)
		r = put_gil(writing);
	to_json_put_array(writing->json, "events");
	for (size_t i = 0; i < lanes->n_events && r >= 0; i++)
		r = put_event_lane(writing, &lanes->events[i]);
	to_json_array_end(writing->json);
	to_json_put_array(writing->json, "curves");
	for (size_t i = 0; i < lanes->n_curves; i++)
		put_curve(writing, &lanes->curves[i]);
	to_json_array_end(writing->json);
	put_names(writing);
	to_json_object_end(writing->json);
	return r;
}

static void writing_done(struct writing *writing)
{
	free(writing->shown);
	free(writing->columns);
	free(writing->is_chosen);
	free(writing->place_of);
	free(writing->used);
	for (size_t i = 0; i < LANES_MAX_DEPTH; i++)
		free(writing->rows[i].at);
}

int lanes_write(struct lanes *lanes, const struct lanes_query *query, FILE *out)
{
	CLEANUP(to_json_done) struct json json;
	CLEANUP(writing_done) struct writing writing = { .lanes = lanes, .query = query, .json = &json };
	int r, end;

	to_json_keep(NULL, &json);
	choose_columns(&writing);
	writing.place_of = calloc(lanes->calls.n_names + 1, sizeof *writing.place_of);
	writing.used = calloc(lanes->calls.n_names + 1, sizeof *writing.used);
	r = writing.place_of && writing.used ? choose_threads(&writing) : -ENOMEM;
	if (r >= 0)
		r = fold_threads(&writing);
	if (r >= 0)
		r = put_answer(&writing);
	if (r < 0)
		return r;
	end = to_json_finish(&json, out);
	return end;
}
