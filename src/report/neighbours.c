/* SPDX-License-Identifier: MIT */
/* neighbours.c - callers and callees of functions.
 *
 * An edge leads from a selected function to a neighbour on a stack: the one right outside,
 * or right inside. At the beginning of a stack, or in its leaf, the edge leads to a special
 * neighbour (NOBODY). A caller's place is the line of the call: of several, the one with the most
 * time.
 */
#include <errno.h>
#include <string.h>

#include "base/id_map.h"
#include "base/text.h"
#include "base/util.h"
#include "src/report/print.h"
#include "src/report/table.h"

#define NOBODY UINT32_MAX

struct edge {
	uint32_t focus, other; /* groups; other: NOBODY for none */
	uint64_t value, samples;
	uint64_t stamp; /* number of the last counted stack */
	int32_t call;   /* frame of the caller at the call with the most value */
	uint64_t call_value;
};

/* The calls of a function from one frame of a caller. */
struct call {
	uint64_t value;
	uint64_t stamp; /* as of an edge */
};

struct neighbours {
	const struct profile *profile;
	const struct report_options *options;
	bool callers;
	struct grouping grouping;
	struct report_sums sums;
	int32_t *sum_of; /* by group: index into sums; -1: no time */
	bool *is_wanted; /* by group */
	struct id_map index;
	struct edge *edges;
	size_t n_edges, edges_allocated;
	struct id_map call_index;
	struct call *calls;
	size_t n_calls, calls_allocated;
	uint64_t stamp;
	int error;
};

static void neighbours_done(struct neighbours *self)
{
	grouping_done(&self->grouping);
	report_sums_done(&self->sums);
	free(self->sum_of);
	free(self->is_wanted);
	id_map_done(&self->index);
	free(self->edges);
	id_map_done(&self->call_index);
	free(self->calls);
}

/* ---- Add up ---- */

static int find_edge(struct neighbours *self, uint32_t focus, uint32_t other, struct edge **ret)
{
	uint64_t key = ((uint64_t)(other + 1) << 32 | focus) + 1;
	const struct id_slot *slot = id_map_find(&self->index, key);

	if (!slot) {
		if (grow(&self->edges, self->n_edges, &self->edges_allocated, sizeof *self->edges) < 0 ||
		    id_map_add(&self->index, key, (uint32_t)self->n_edges) < 0)
			return -ENOMEM;
		self->edges[self->n_edges++] = (struct edge){ .focus = focus, .other = other };
		slot = id_map_find(&self->index, key);
	}
	*ret = &self->edges[slot->id];
	return 0;
}

/* Add the call from @frame to the edge of its function. */
static int add_call(struct neighbours *self, struct edge *edge, int32_t frame, uint64_t value)
{
	uint64_t key = ((uint64_t)frame + 1) << 32 | edge->focus;
	const struct id_slot *slot = id_map_find(&self->call_index, key);
	struct call *call;

	if (!slot) {
		if (grow(&self->calls, self->n_calls, &self->calls_allocated, sizeof *self->calls) < 0 ||
		    id_map_add(&self->call_index, key, (uint32_t)self->n_calls) < 0)
			return -ENOMEM;
		self->calls[self->n_calls++] = (struct call){ 0 };
		slot = id_map_find(&self->call_index, key);
	}
	call = &self->calls[slot->id];
	if (call->stamp == self->stamp)
		return 0;
	call->stamp = self->stamp;
	call->value += value;
	if (call->value > edge->call_value) {
		edge->call = frame;
		edge->call_value = call->value;
	}
	return 0;
}

static void take_path(void *data, const int32_t *path, size_t n_path, const struct profile_total *total)
{
	struct neighbours *self = data;
	const uint32_t *of_frame = self->grouping.of_frame;

	self->stamp++;
	for (size_t i = 0; i < n_path && self->error >= 0; i++) {
		uint32_t other = NOBODY;
		struct edge *edge;

		if (!self->is_wanted[of_frame[path[i]]])
			continue;
		if (self->callers && i > 0)
			other = of_frame[path[i - 1]];
		else if (!self->callers && i + 1 < n_path)
			other = of_frame[path[i + 1]];
		self->error = find_edge(self, of_frame[path[i]], other, &edge);
		if (self->error >= 0 && self->callers && i > 0)
			self->error = add_call(self, edge, path[i - 1], whole_value(&self->sums.whole, total));
		if (self->error < 0 || edge->stamp == self->stamp)
			continue;
		edge->stamp = self->stamp;
		edge->value += whole_value(&self->sums.whole, total);
		edge->samples += total->samples;
	}
}

static int want(struct neighbours *self, const struct glob_list *names)
{
	const struct profile *profile = self->profile;
	bool any = false;

	for (size_t i = 0; i < self->sums.n_items; i++) {
		const struct profile_frame *frame = self->sums.items[i].frame;
		uint32_t group;

		if (!frame)
			continue;
		group = self->grouping.of_frame[frame - profile->frames];
		self->sum_of[group] = (int32_t)i;
		self->is_wanted[group] = glob_list_match_function(names, frame->name);
		any |= self->is_wanted[group];
	}
	return any ? 0 : -ENODATA;
}

static int add_up(struct neighbours *self, const struct glob_list *names)
{
	int r;

	r = report_sums_of_frames(self->profile, self->options->show_interpreter, order_by_function, &self->sums);
	if (r >= 0)
		r = grouping_make(self->profile, order_by_function, &self->grouping);
	if (r < 0)
		return r;
	report_sums_sort(&self->sums, true);
	self->sum_of = calloc(self->grouping.n + 1, sizeof *self->sum_of);
	self->is_wanted = calloc(self->grouping.n + 1, sizeof *self->is_wanted);
	if (!self->sum_of || !self->is_wanted)
		return -ENOMEM;
	r = want(self, names);
	if (r >= 0)
		r = paths_each(self->profile, self->options->show_interpreter, take_path, self);
	return r < 0 ? r : self->error;
}

/* ---- Order: functions by time, then the neighbours of each by time ---- */

static const struct report_sum *sum_of(const struct neighbours *self, uint32_t group)
{
	return group == NOBODY ? NULL : &self->sums.items[self->sum_of[group]];
}

static int compare_edges(const void *a, const void *b, void *context)
{
	const struct edge *left = a, *right = b;
	const struct neighbours *self = context;

	if (left->focus != right->focus)
		return self->sum_of[left->focus] < self->sum_of[right->focus] ? -1 : 1;
	if (left->value != right->value)
		return left->value > right->value ? -1 : 1;
	if (left->other == NOBODY || right->other == NOBODY)
		return left->other == NOBODY ? 1 : -1;
	return self->sum_of[left->other] < self->sum_of[right->other] ? -1 : 1;
}

/* The frame that shows the neighbour's place; NULL: there is no neighbour. */
static const struct profile_frame *frame_of(const struct neighbours *self, const struct edge *edge)
{
	if (edge->other == NOBODY)
		return NULL;
	return edge->call_value > 0 ? &self->profile->frames[edge->call] : sum_of(self, edge->other)->frame;
}

static size_t edges_of_same(const struct neighbours *self, size_t from)
{
	size_t to = from;

	while (to < self->n_edges && self->edges[to].focus == self->edges[from].focus)
		to++;
	return to - from;
}

static const char *nobody(const struct neighbours *self)
{
	return self->callers ? "[none: root of the stack]" : "[itself]";
}

static double share_of(uint64_t value, uint64_t all)
{
	return all ? 100.0 * (double)value / (double)all : 0;
}

/* ---- Table ---- */

/* @of_it: percent of the function's time. */
static int add_row(const struct neighbours *self, const struct report_sum *sum, const struct profile_frame *frame,
		   uint64_t value, double of_it, unsigned indent, struct table *table)
{
	struct table_row *row = &table->rows[table->n_rows++];

	*row = (struct table_row){
		.name = sum ? sum->name : nobody(self),
		.indent = indent,
		.shares = { whole_share(&self->sums.whole, value), of_it },
		.values = { value, value },
	};
	table_kind(frame, false, row);
	return table_place(frame, &row->place);
}

static int make_rows(const struct neighbours *self, struct table *table)
{
	size_t max = self->options->max_rows ?: REPORT_ROWS;
	int r = 0;

	table->rows = calloc(2 * self->n_edges + 1, sizeof *table->rows);
	if (!table->rows)
		return -ENOMEM;
	for (size_t i = 0; i < self->n_edges && r >= 0; i += edges_of_same(self, i)) {
		const struct report_sum *focus = sum_of(self, self->edges[i].focus);
		size_t n = edges_of_same(self, i), shown = MIN(n, max);

		r = add_row(self, focus, focus->frame, focus->total, 100, 0, table);
		for (size_t k = i; k < i + shown && r >= 0; k++)
			r = add_row(self, sum_of(self, self->edges[k].other), frame_of(self, &self->edges[k]),
				    self->edges[k].value, share_of(self->edges[k].value, focus->total), 2, table);
		table->n_more += n - shown;
	}
	return r;
}

static int print_table(const struct neighbours *self, FILE *out)
{
	CLEANUP(table_done)
	struct table table = {
		.options = self->options,
		.whole = &self->sums.whole,
		.times = { { "total", true }, { "of it", false } },
		.name_head = self->callers ? "function, its callers" : "function, its callees",
		.has_kind = true,
	};
	int r;

	r = make_rows(self, &table);
	if (r < 0)
		return r;
	table_put_whole(self->options, &self->sums.whole, out);
	table_put(&table, out);
	return 0;
}

/* ---- JSON ---- */

static void put_edge(struct json *json, const struct neighbours *self, const struct edge *edge)
{
	const struct report_sum *focus = sum_of(self, edge->focus), *other = sum_of(self, edge->other);

	to_json_object(json);
	print_json_frame(json, frame_of(self, edge), other ? other->name : NULL);
	print_json_time(json, &self->sums.whole, "total", edge->value);
	print_json_percent(json, "of_it", share_of(edge->value, focus->total));
	to_json_put_integer(json, "samples", (int64_t)edge->samples);
	to_json_object_end(json);
}

static void put_focus(struct json *json, const struct neighbours *self, size_t first)
{
	const struct report_sum *focus = sum_of(self, self->edges[first].focus);
	size_t n = edges_of_same(self, first), shown = MIN(n, self->options->max_rows ?: REPORT_ROWS);

	to_json_object(json);
	print_json_frame(json, focus->frame, focus->name);
	print_json_time(json, &self->sums.whole, "self", focus->self);
	print_json_time(json, &self->sums.whole, "total", focus->total);
	to_json_put_array(json, self->callers ? "callers" : "callees");
	for (size_t i = first; i < first + shown; i++)
		put_edge(json, self, &self->edges[i]);
	to_json_array_end(json);
	to_json_put_integer(json, "left_out", (int64_t)(n - shown));
	to_json_object_end(json);
}

static int print_json(const struct neighbours *self, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	int r;

	r = print_json_begin(&self->sums.whole, &json);
	if (r < 0)
		return r;
	to_json_put_array(&json, "functions");
	for (size_t i = 0; i < self->n_edges; i += edges_of_same(self, i))
		put_focus(&json, self, i);
	to_json_array_end(&json);
	to_json_object_end(&json);
	return to_json_finish(&json, out);
}

int report_neighbours(const struct profile *profile, const struct glob_list *names, bool callers,
		      const struct report_options *options, FILE *out)
{
	CLEANUP(neighbours_done)
	struct neighbours self = {
		.profile = profile,
		.options = options,
		.callers = callers,
	};
	int r;

	r = add_up(&self, names);
	if (r < 0)
		return r;
	qsort_r(self.edges, self.n_edges, sizeof *self.edges, compare_edges, &self);
	r = options->json ? print_json(&self, out) : print_table(&self, out);
	return r < 0 ? r : text_finish(out);
}
