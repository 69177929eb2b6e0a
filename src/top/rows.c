/* SPDX-License-Identifier: MIT */
/* rows.c - from sums to the rows of a view, sorted and filtered. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "base/util.h"
#include "src/top/private.h"

/* Limit a tree to a readable number of rows, and to nodes of at least 1/1000 of the total. */
enum { MAX_TREE_ROWS = 4096, TREE_SHARE = 1000 };

static struct row *add_row(struct top *top)
{
	if (grow(&top->rows, top->n_rows, &top->rows_allocated, sizeof *top->rows) < 0)
		return NULL;
	memset(&top->rows[top->n_rows], 0, sizeof *top->rows);
	return &top->rows[top->n_rows++];
}

void row_place(const struct row *row, char *to, size_t n_bytes)
{
	to[0] = '\0';
	if (row->type == ROW_THREAD && row->is_child)
		snprintf(to, n_bytes, "process %d, thread %d", (int)row->pid, (int)row->tid);
	else if (row->type == ROW_THREAD)
		snprintf(to, n_bytes, "thread %d", (int)row->tid);
	else if (row->file && row->line > 0)
		snprintf(to, n_bytes, "%s:%d", row->file, row->line);
	else if (row->file || row->module)
		snprintf(to, n_bytes, "%s", row->file ? row->file : path_base_name(row->module));
}

static bool is_wanted(const struct top *top, const struct row *row)
{
	char place[1024];

	if (!top->ui.filter[0])
		return true;
	row_place(row, place, sizeof place);
	return strcasestr(row->name, top->ui.filter) || strcasestr(place, top->ui.filter);
}

/* ---- Order ---- */

/* In a tree, callers precede callees, so sorting by self is not possible. */
enum top_sort top_sort_in(const struct top_ui *ui)
{
	return ui->at.view == TOP_TREE && ui->at.focus == 0 && ui->sort == TOP_BY_SELF ? TOP_BY_TOTAL : ui->sort;
}

static int compare_values(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct row *left = a, *right = b;
	const struct top_ui *ui = context;
	int self = compare_values(left->self, right->self), total = compare_values(left->total, right->total);
	int order;

	switch (top_sort_in(ui)) {
	case TOP_BY_NAME:
		order = strcasecmp(left->name, right->name);
		break;
	case TOP_BY_TOTAL:
		order = total != 0 ? total : self;
		break;
	default:
		order = self != 0 ? self : total;
		break;
	}
	if (ui->is_reversed)
		order = -order;
	if (order == 0)
		order = strcmp(left->name, right->name);
	return order != 0 ? order : (left->key > right->key) - (left->key < right->key);
}

static void sort_rows(struct top *top, size_t from)
{
	if (top->n_rows > from)
		qsort_r(top->rows + from, top->n_rows - from, sizeof *top->rows, compare_rows, &top->ui);
}

/* ---- Views ---- */

static void describe(struct row *row, const struct group *group)
{
	row->name = group->name;
	row->file = group->file;
	row->module = group->module;
	row->line = group->line;
	row->kind = group->kind;
	row->role = group->role;
	row->key = group->key;
}

/* Remove the last row if it does not match the filter. */
static void filter_last(struct top *top)
{
	if (!is_wanted(top, &top->rows[top->n_rows - 1]))
		top->n_rows--;
}

static int add_group_row(struct top *top, size_t group, uint64_t self, uint64_t total)
{
	struct row *row = add_row(top);

	if (!row)
		return -ENOMEM;
	row->type = ROW_GROUP;
	row->self = self;
	row->total = total;
	describe(row, &top->groups.items[group]);
	filter_last(top);
	return 0;
}

static int list_groups(struct top *top)
{
	size_t n = MIN(top->groups.n, top->sums.n_groups);
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		if (top->sums.groups[i].total > 0)
			r = add_group_row(top, i, top->sums.groups[i].self, top->sums.groups[i].total);
	sort_rows(top, 0);
	return r;
}

static int add_title(struct top *top, const char *text)
{
	struct row *row = add_row(top);

	if (!row)
		return -ENOMEM;
	row->type = ROW_TITLE;
	row->name = text;
	return 0;
}

static int list_neighbours(struct top *top, bool callers)
{
	size_t n = MIN(top->groups.n, top->sums.n_groups), from = top->n_rows;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct sum *sum = &top->sums.groups[i];
		uint64_t value = callers ? sum->as_caller : sum->as_callee;

		if (value > 0)
			r = add_group_row(top, i, sum->self, value);
	}
	sort_rows(top, from);
	return r;
}

/* List callers, the function, and callees. For others, total is the time in common with the function. */
static int list_focus(struct top *top)
{
	uint32_t focus = top_group(top, top->ui.at.focus);
	const struct sum *sum;
	int r;

	if (focus == SUMS_NO_FOCUS || focus >= top->sums.n_groups)
		return 0;
	sum = &top->sums.groups[focus];
	r = add_title(top, "called by (total: time of the calls)");
	if (r >= 0)
		r = list_neighbours(top, true);
	if (r >= 0)
		r = add_title(top, "the function");
	if (r >= 0)
		r = add_group_row(top, focus, sum->self, sum->total);
	if (r >= 0)
		r = add_title(top, "calls (total: time of the calls)");
	return r < 0 ? r : list_neighbours(top, false);
}

static int add_thread_row(struct top *top, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct row *row = add_row(top);

	if (!row)
		return -ENOMEM;
	row->type = ROW_THREAD;
	row->self = row->total = time_ns;
	row->name = top_names_thread(top->names, pid, tid);
	row->pid = pid;
	row->tid = tid;
	row->is_child = !top->status.note && pid != top->status.pid;
	row->kind = FRAME_N_KINDS;
	row->key = ((uint64_t)(uint32_t)pid << 32 | (uint32_t)tid) + 1;
	if (!row->name[0])
		row->name = time_ns == 0 ? "[idle]" : "[thread]";
	filter_last(top);
	return 0;
}

static bool was_sampled(const struct top *top, pid_t tid)
{
	uint64_t key = ((uint64_t)(uint32_t)top->status.pid << 32 | (uint32_t)tid) + 1;
	const struct id_slot *slot = id_map_find(&top->thread_index, key);

	return slot && slot->id < top->sums.n_threads && top->sums.threads[slot->id] > 0;
}

static int list_threads(struct top *top)
{
	size_t n = MIN(top->n_threads, top->sums.n_threads);
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		if (top->sums.threads[i] > 0)
			r = add_thread_row(top, top->threads[i].pid, top->threads[i].tid, top->sums.threads[i]);
	for (size_t i = 0; top->ui.show_idle && i < top->n_tids && r >= 0; i++)
		if (!was_sampled(top, top->tids[i]))
			r = add_thread_row(top, top->status.pid, top->tids[i], 0);
	sort_rows(top, 0);
	return r;
}

/* ---- The tree ---- */

struct listing {
	struct top *top;
	struct row *nodes;     /* nodes that are large enough, in tree order */
	int32_t *row_of;       /* by node: index into nodes; -1: too small */
	int32_t *first, *next; /* by index into nodes: first child, next sibling */
	bool *is_wanted;
	size_t n;
};

static void listing_done(struct listing *listing)
{
	free(listing->nodes);
	free(listing->row_of);
	free(listing->first);
	free(listing->next);
	free(listing->is_wanted);
}

static bool is_closed(const struct top *top, uint64_t key)
{
	const struct id_slot *slot = id_map_find(&top->closed, key);

	return slot && slot->id != 0;
}

static struct row node_row(const struct top *top, const struct tree_node *node, uint64_t parent_key)
{
	struct row row = { .type = ROW_NODE, .self = node->self, .total = node->total, .depth = node->depth };

	describe(&row, &top->groups.items[node->group]);
	row.key = mix64(parent_key * 31 + row.key) | 1;
	row.has_children = node->has_children;
	row.is_open = !is_closed(top, row.key);
	return row;
}

/* Pick the nodes that get a row; a matching node includes its callers. */
static int pick_nodes(struct listing *listing)
{
	const struct sums *sums = &listing->top->sums;
	uint64_t least = sums->weight / TREE_SHARE;

	listing->nodes = calloc(sums->n_nodes + 1, sizeof *listing->nodes);
	listing->row_of = calloc(sums->n_nodes + 1, sizeof *listing->row_of);
	listing->is_wanted = calloc(sums->n_nodes + 1, sizeof *listing->is_wanted);
	if (!listing->nodes || !listing->row_of || !listing->is_wanted)
		return -ENOMEM;
	for (size_t i = 0; i < sums->n_nodes; i++) {
		const struct tree_node *node = &sums->nodes[i];
		int32_t parent = node->parent < 0 ? -1 : listing->row_of[node->parent];

		listing->row_of[i] = -1;
		if (node->total < least || (node->parent >= 0 && parent < 0))
			continue;
		listing->nodes[listing->n] = node_row(listing->top, node, parent < 0 ? 0 : listing->nodes[parent].key);
		listing->nodes[listing->n].tid = parent; /* temporary use, until the rows are made */
		listing->row_of[i] = (int32_t)listing->n++;
	}
	for (size_t i = listing->n; i-- > 0;) {
		listing->is_wanted[i] |= is_wanted(listing->top, &listing->nodes[i]);
		if (listing->is_wanted[i] && listing->nodes[i].tid >= 0)
			listing->is_wanted[listing->nodes[i].tid] = true;
	}
	return 0;
}

/* Insertion sort of children: few nodes have many. */
static int link_nodes(struct listing *listing, int32_t *ret_first)
{
	struct top_ui *ui = &listing->top->ui;

	listing->first = malloc((listing->n + 1) * sizeof *listing->first);
	listing->next = malloc((listing->n + 1) * sizeof *listing->next);
	if (!listing->first || !listing->next)
		return -ENOMEM;
	memset(listing->first, 0xff, (listing->n + 1) * sizeof *listing->first);
	*ret_first = -1;
	for (size_t i = 0; i < listing->n; i++) {
		int32_t parent = listing->nodes[i].tid;
		int32_t *place = parent < 0 ? ret_first : &listing->first[parent];

		while (*place >= 0 && compare_rows(&listing->nodes[*place], &listing->nodes[i], ui) < 0)
			place = &listing->next[*place];
		listing->next[i] = *place;
		*place = (int32_t)i;
	}
	return 0;
}

/* Emit callers before callees, depth first. */
static int walk_tree(struct listing *listing, int32_t at)
{
	struct top *top = listing->top;

	while (at >= 0 && top->n_rows < MAX_TREE_ROWS) {
		struct row *row = NULL;
		int32_t next = -1;

		if (listing->is_wanted[at]) {
			row = add_row(top);
			if (!row)
				return -ENOMEM;
			*row = listing->nodes[at];
			next = row->is_open || top->ui.filter[0] ? listing->first[at] : -1;
		}
		while (next < 0 && at >= 0) {
			next = listing->next[at];
			if (next < 0)
				at = listing->nodes[at].tid;
		}
		at = next;
	}
	return 0;
}

static int list_tree(struct top *top)
{
	CLEANUP(listing_done) struct listing listing = { .top = top };
	int32_t first;
	int r;

	r = pick_nodes(&listing);
	if (r >= 0)
		r = link_nodes(&listing, &first);
	return r < 0 ? r : walk_tree(&listing, first);
}

int top_list_rows(struct top *top)
{
	top->n_rows = 0;
	if (top->ui.at.focus != 0)
		return list_focus(top);
	switch (top->ui.at.view) {
	case TOP_THREADS:
		return list_threads(top);
	case TOP_TREE:
		return list_tree(top);
	default:
		return list_groups(top);
	}
}
