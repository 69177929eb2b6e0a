/* SPDX-License-Identifier: MIT */
/*
 * html_sums.c - times of each thread in each box and in each function; see html_page.h.
 *
 * Totals are sorted by thread, the heaviest thread first, and added up in arrays over all boxes and all functions, from
 * which one thread's sums are copied before the next one's begin. Functions are summed over the whole tree, not over
 * drawn boxes: sums of functions are right even if their boxes are omitted.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/export/fold_order.h"
#include "src/export/html_page.h"

enum { MAX_THREADS = 200, MAX_CELLS = 200000 }; /* beyond these, the lightest threads share a row */

struct summing {
	const struct profile *profile;
	const struct fold_places *places;
	const struct html_boxes *boxes;
	bool inverted;
	struct html_sums sums;
	uint32_t *thread_of;             /* total -> thread of the profile; n_threads: it has no row */
	uint32_t *by_thread;             /* totals, sorted by the rank of their threads */
	uint32_t *order;                 /* threads of the profile, heaviest first */
	size_t *first;                   /* by thread: start in by_thread; one more marks the end */
	uint64_t *weights;               /* by thread */
	struct html_cell *cells;         /* by box, for the current thread */
	struct html_function *functions; /* by label, for the current thread */
	uint32_t *touched_boxes, *touched_labels;
	size_t n_boxes, n_labels; /* used ones */
	size_t cells_allocated, functions_allocated;
	uint32_t *mark; /* by label: last total that contained it, + 1 */
};

static void summing_done(struct summing *self)
{
	html_sums_done(&self->sums);
	free(self->thread_of);
	free(self->by_thread);
	free(self->order);
	free(self->first);
	free(self->weights);
	free(self->cells);
	free(self->functions);
	free(self->touched_boxes);
	free(self->touched_labels);
	free(self->mark);
}

void html_sums_done(struct html_sums *sums)
{
	free(sums->threads);
	free(sums->cells);
	free(sums->functions);
	free(sums->part_of);
	*sums = (struct html_sums){ 0 };
}

static uint64_t value_of(const struct summing *self, const struct profile_total *total)
{
	return self->boxes->drawn.by_weight ? total->weight : total->samples;
}

static const struct profile_total *total_at(const struct summing *self, size_t place)
{
	return &self->profile->totals[self->places->order[place]];
}

/* ---- Threads ---- */

static int compare_threads(const void *a, const void *b)
{
	const struct profile_thread *left = *(const struct profile_thread *const *)a,
				    *right = *(const struct profile_thread *const *)b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return (left->tid > right->tid) - (left->tid < right->tid);
}

static uint32_t find_thread(const struct summing *self, const struct profile_thread **sorted,
			    const struct profile_total *total)
{
	const struct profile_thread sought = { .pid = total->pid, .tid = total->tid }, *key = &sought, **found = NULL;

	if (self->profile->n_threads > 0)
		found = bsearch(&key, sorted, self->profile->n_threads, sizeof *sorted, compare_threads);
	return found ? (uint32_t)(*found - self->profile->threads) : (uint32_t)self->profile->n_threads;
}

static int heavier(const void *a, const void *b, void *context)
{
	const uint64_t *weights = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (weights[left] != weights[right])
		return weights[left] > weights[right] ? -1 : 1;
	return (left > right) - (left < right);
}

/* Counting sort by thread. */
static int sort_places(struct summing *self)
{
	size_t n_threads = self->profile->n_threads + 1, n = self->profile->n_totals;
	CLEANUP(freep) const struct profile_thread **sorted = NULL;
	CLEANUP(freep) size_t *next = calloc(n_threads + 1, sizeof *next);
	int r;

	r = fold_sort_threads(self->profile, &sorted);
	if (r < 0 || !next)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		self->thread_of[i] = find_thread(self, sorted, total_at(self, i));
		self->first[self->thread_of[i] + 1]++;
		self->weights[self->thread_of[i]] += value_of(self, total_at(self, i));
	}
	for (size_t i = 0; i < n_threads; i++) {
		self->first[i + 1] += self->first[i];
		next[i] = self->first[i];
		self->order[i] = (uint32_t)i;
	}
	for (size_t i = 0; i < n; i++)
		self->by_thread[next[self->thread_of[i]]++] = (uint32_t)i;
	qsort_r(self->order, n_threads, sizeof *self->order, heavier, self->weights);
	return 0;
}

/* ---- Sums of one thread ---- */

static void add_self(struct summing *self, uint32_t box, const struct profile_total *total)
{
	struct html_cell *cell = &self->cells[box];

	if (total->samples == 0 && value_of(self, total) == 0)
		return;
	if (cell->samples == 0 && cell->value == 0)
		self->touched_boxes[self->n_boxes++] = box;
	cell->value += value_of(self, total);
	cell->samples += total->samples;
}

static struct html_function *touch_label(struct summing *self, uint32_t label)
{
	struct html_function *function = &self->functions[label];

	if (function->total == 0 && function->self == 0)
		self->touched_labels[self->n_labels++] = label;
	return function;
}

/*
 * Whether a label is a row in the table of functions: functions and time without a stack, but no processes or threads.
 */
static bool is_listed(const struct call_tree *tree, uint32_t label)
{
	const struct label *it = &tree->labels.items[label];

	return it->kind != LABEL_GROUP || it->function != 0 || label == tree->no_stack;
}

/* Add to each function on the stack once; self goes to the leaf, which is the root of an inverted tree. */
static void add_functions(struct summing *self, size_t place, uint32_t node, uint64_t value)
{
	const struct call_tree *tree = self->boxes->tree;
	uint32_t leaf = UINT32_MAX;
	bool is_first = true;

	if (value == 0)
		return;
	for (uint32_t at = node; at != 0; at = tree->nodes[at].parent) {
		uint32_t label = tree->nodes[at].label;
		bool is_function = is_listed(tree, label);

		if (is_function && (is_first || self->inverted))
			leaf = label;
		is_first = false;
		if (!is_function || self->mark[label] == place + 1)
			continue;
		self->mark[label] = (uint32_t)place + 1;
		touch_label(self, label)->total += value;
	}
	if (leaf != UINT32_MAX)
		self->functions[leaf].self += value;
}

static void add_thread(struct summing *self, uint32_t thread)
{
	for (size_t i = self->first[thread]; i < self->first[thread + 1]; i++) {
		uint32_t place = self->by_thread[i], node = self->places->node_of[place];
		const struct profile_total *total = total_at(self, place);

		add_self(self, self->boxes->box_of[node], total);
		add_functions(self, place, node, value_of(self, total));
	}
	self->sums.part_of[thread] = (uint32_t)self->sums.n_threads - 1;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

/* Append the current thread's sums to the result. */
static int take(struct summing *self)
{
	struct html_sums *sums = &self->sums;
	struct html_thread *thread = &sums->threads[sums->n_threads - 1];

	qsort(self->touched_boxes, self->n_boxes, sizeof *self->touched_boxes, compare_numbers);
	for (size_t i = 0; i < self->n_boxes; i++) {
		struct html_cell *cell = &self->cells[self->touched_boxes[i]];

		if (grow(&sums->cells, sums->n_cells, &self->cells_allocated, sizeof *sums->cells) < 0)
			return -ENOMEM;
		cell->box = self->touched_boxes[i];
		sums->cells[sums->n_cells++] = *cell;
		*cell = (struct html_cell){ 0 };
	}
	for (size_t i = 0; i < self->n_labels; i++) {
		struct html_function *function = &self->functions[self->touched_labels[i]];

		if (grow(&sums->functions, sums->n_functions, &self->functions_allocated, sizeof *sums->functions) < 0)
			return -ENOMEM;
		function->label = self->touched_labels[i];
		sums->functions[sums->n_functions++] = *function;
		*function = (struct html_function){ 0 };
	}
	thread->n_cells = self->n_boxes;
	thread->n_functions = self->n_labels;
	self->n_boxes = self->n_labels = 0;
	return 0;
}

static int sum_up(struct summing *self)
{
	size_t n_threads = self->profile->n_threads + 1;
	int r = 0;

	for (size_t i = 0; i < n_threads && r >= 0; i++) {
		bool is_one = self->sums.n_threads < MAX_THREADS - 1 && self->sums.n_cells < MAX_CELLS;
		uint32_t thread = self->order[i];

		if (self->first[thread] == self->first[thread + 1])
			continue;
		self->sums.threads[self->sums.n_threads++] = (struct html_thread){
			.thread = is_one && thread < self->profile->n_threads ? &self->profile->threads[thread] : NULL,
		};
		add_thread(self, thread);
		while (!is_one && ++i < n_threads)
			add_thread(self, self->order[i]);
		r = take(self);
	}
	return r;
}

int html_sums_init(const struct profile *profile, const struct fold_places *places, const struct html_boxes *boxes,
		   bool inverted, struct html_sums *ret)
{
	size_t n_threads = profile->n_threads + 1, n_labels = boxes->tree->labels.n_items;
	CLEANUP(summing_done)
	struct summing self = {
		.profile = profile,
		.places = places,
		.boxes = boxes,
		.inverted = inverted,
		.sums = { .threads = calloc(MAX_THREADS, sizeof(struct html_thread)),
			  .part_of = calloc(n_threads, sizeof(uint32_t)) },
		.thread_of = calloc(profile->n_totals + 1, sizeof(uint32_t)),
		.by_thread = calloc(profile->n_totals + 1, sizeof(uint32_t)),
		.order = calloc(n_threads, sizeof(uint32_t)),
		.first = calloc(n_threads + 1, sizeof(size_t)),
		.weights = calloc(n_threads, sizeof(uint64_t)),
		.cells = calloc(boxes->n, sizeof(struct html_cell)),
		.functions = calloc(n_labels + 1, sizeof(struct html_function)),
		.touched_boxes = calloc(boxes->n, sizeof(uint32_t)),
		.touched_labels = calloc(n_labels + 1, sizeof(uint32_t)),
		.mark = calloc(n_labels + 1, sizeof(uint32_t)),
	};
	int r;

	if (!self.sums.threads || !self.sums.part_of || !self.thread_of || !self.by_thread || !self.order ||
	    !self.first || !self.weights || !self.cells || !self.functions || !self.touched_boxes ||
	    !self.touched_labels || !self.mark)
		return -ENOMEM;
	r = sort_places(&self);
	if (r >= 0)
		r = sum_up(&self);
	if (r < 0)
		return r;
	*ret = self.sums;
	self.sums = (struct html_sums){ 0 };
	return 0;
}

size_t html_sums_find(const struct html_sums *sums, uint32_t thread, uint32_t box)
{
	size_t part = sums->part_of[thread], low = 0, high;

	for (size_t i = 0; i < part; i++)
		low += sums->threads[i].n_cells;
	high = low + sums->threads[part].n_cells;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sums->cells[middle].box == box)
			return middle;
		if (sums->cells[middle].box < box)
			low = middle + 1;
		else
			high = middle;
	}
	return SIZE_MAX;
}
