/* SPDX-License-Identifier: MIT */
/* model.c - samples come in, rows come out.
 *
 * The displayed time is a window of seconds, added up at each refresh, or everything
 * since the start, to which a refresh only adds new samples. Both are added up again after
 * a change of options (view, thread, kinds of frames) and when frames
 * have got names. While it is paused the displayed cells are a copy, so that
 * all options still work on them.
 *
 * Memory is bounded by starting again: see top_is_full().
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/top/private.h"
#include "src/top/temporary.h"

enum { MAX_STACKS = 1 << 19, MAX_CELLS = 1 << 19, MAX_THREADS = 1 << 18 };

const char *const top_view_names[TOP_N_VIEWS] = {
	[TOP_FUNCTIONS] = "function", [TOP_LINES] = "line", [TOP_MODULES] = "module",
	[TOP_THREADS] = "thread",     [TOP_TREE] = "tree",
};

const char *const top_sort_names[TOP_N_SORTS] = {
	[TOP_BY_SELF] = "self",
	[TOP_BY_TOTAL] = "total",
	[TOP_BY_NAME] = "name",
};

int top_new(const struct top_options *options, uint64_t now_ns, struct top **ret)
{
	CLEANUP(top_freep) struct top *top = calloc(1, sizeof *top);
	int r;

	if (!top)
		return -ENOMEM;
	r = past_init(&top->past, now_ns);
	if (r < 0)
		return r;
	top->options = *options;
	top->counted_since_ns = now_ns;
	top->ui = (struct top_ui){
		.at = { .view = options->view, .focus = 0, .thread = SUMS_ALL_THREADS },
		.sort = options->sort,
		.show_native = !options->hide_native,
		.show_kernel = !options->hide_kernel,
		.show_interpreter = options->show_interpreter,
		.since_start = options->window_s == 0,
		.window_s = options->window_s == 0 ? 5 : options->window_s,
		.page = 1,
	};
	if (options->filter)
		snprintf(top->ui.filter, sizeof top->ui.filter, "%s", options->filter);
	*ret = TAKE(top);
	return 0;
}

void top_free(struct top *top)
{
	if (!top)
		return;
	past_done(&top->past);
	top_names_free(top->names);
	groups_done(&top->groups);
	sums_done(&top->sums);
	cells_done(&top->frozen);
	id_map_done(&top->thread_index);
	id_map_done(&top->closed);
	free(top->threads);
	free(top->rows);
	free(top->tids);
	free(top->command);
	free(top->python);
	free(top->note);
	free(top);
}

void top_freep(struct top **top)
{
	top_free(*top);
}

/* Groups, threads and stacks are renumbered: drop what refers to them. */
static void forget_numbers(struct top *top)
{
	struct place place = { top->ui.at.view, 0, SUMS_ALL_THREADS };

	groups_reset(&top->groups, top->groups.by);
	cells_done(&top->frozen);
	id_map_clear(&top->closed);
	id_map_clear(&top->thread_index);
	top->n_threads = top->n_rows = 0;
	top->ui.at = place;
	top->ui.n_back = 0;
	top->ui.has_selection = top->ui.is_paused = false;
	top->ui.selected = top->ui.scroll = 0;
	top->is_current = false;
}

int top_begin(struct top *top, uint64_t now_ns, struct store **ret)
{
	CLEANUP(store_closep) struct store *store = NULL;
	struct top_names *names;
	sqlite3 *reader;
	int r;

	r = temporary_store(&store, &reader);
	if (r < 0)
		return r;
	r = top_names_new(reader, &names);
	if (r < 0) {
		sqlite3_close(reader);
		return r;
	}
	top->begun_anew = top->names != NULL;
	top_names_free(top->names);
	top->names = names;
	past_reset(&top->past, now_ns);
	top->counted_since_ns = now_ns;
	forget_numbers(top);
	*ret = TAKE(store);
	return 0;
}

static int know_thread(struct top *top, pid_t pid, pid_t tid, uint32_t *ret)
{
	uint64_t key = ((uint64_t)(uint32_t)pid << 32 | (uint32_t)tid) + 1;
	const struct id_slot *slot = id_map_find(&top->thread_index, key);

	if (slot) {
		*ret = slot->id;
		return 0;
	}
	if (grow(&top->threads, top->n_threads, &top->threads_allocated, sizeof *top->threads) < 0 ||
	    id_map_add(&top->thread_index, key, (uint32_t)top->n_threads) < 0)
		return -ENOMEM;
	*ret = (uint32_t)top->n_threads;
	top->threads[top->n_threads++] = (struct top_thread){ pid, tid };
	return 0;
}

int top_add(struct top *top, const struct sample_row *row, uint64_t n_samples)
{
	struct cell cell = { .stack = (uint32_t)row->stack, .samples = n_samples, .weight = row->weight };
	int r;

	r = know_thread(top, row->pid, row->tid, &cell.thread);
	return r < 0 ? r : cells_add(&top->past.fresh, &cell);
}

int top_take(void *data, const struct sample_row *row)
{
	return top_add(data, row, !row->is_unsampled);
}

void top_replace(struct top *top, uint64_t since_ns)
{
	past_reset(&top->past, since_ns);
	top->counted_since_ns = since_ns;
	top->is_current = false;
}

double top_window(const struct top *top)
{
	return top->ui.since_start ? 0 : top->ui.window_s;
}

int top_absorb(struct top *top, uint64_t now_ns)
{
	int r;

	if (!top->names)
		return 0;
	r = top_names_update(top->names, &top->renamed);
	if (r < 0)
		return r;
	return past_absorb(&top->past, top_names_last_stack(top->names), now_ns);
}

bool top_is_stable(const struct top *top)
{
	return top->names && top->past.fresh.n == 0 && !top_names_are_awaited(top->names);
}

bool top_is_full(const struct top *top)
{
	return top->names && (top_names_last_stack(top->names) > MAX_STACKS || top->past.all.n > MAX_CELLS ||
			      top->n_threads > MAX_THREADS);
}

/* ---- Add up ---- */

static enum grouping grouping_of(enum top_view view)
{
	switch (view) {
	case TOP_LINES:
		return GROUP_LINES;
	case TOP_MODULES:
		return GROUP_MODULES;
	default:
		return GROUP_FUNCTIONS;
	}
}

static struct sums_options question(const struct top *top)
{
	const struct top_ui *ui = &top->ui;

	return (struct sums_options){
		.show_native = ui->show_native,
		.show_kernel = ui->show_kernel,
		.show_interpreter = ui->show_interpreter,
		.tree = ui->at.view == TOP_TREE && ui->at.focus == 0,
		.thread = ui->at.thread,
		.focus = top_group(top, ui->at.focus),
	};
}

static bool is_same(const struct sums_options *a, const struct sums_options *b)
{
	return a->show_native == b->show_native && a->show_kernel == b->show_kernel &&
	       a->show_interpreter == b->show_interpreter && a->tree == b->tree && a->thread == b->thread &&
	       a->focus == b->focus;
}

static int regroup(struct top *top, enum grouping by)
{
	if (top->groups.by != by || top->renamed) {
		groups_reset(&top->groups, by);
		top->is_current = false;
	}
	top->renamed = false;
	return groups_update(&top->groups, top->names);
}

static int add_cells(struct top *top, const struct cells *cells)
{
	return sums_add(&top->sums, cells, top_names_profile(top->names), &top->groups);
}

static int add_window(struct top *top, const struct sums_options *options)
{
	struct cells window = { 0 };
	int r;

	r = past_window(&top->past, (uint64_t)(top->ui.window_s * 1e9), top->now_ns, &window, &top->shown_ns);
	sums_reset(&top->sums, options);
	if (r >= 0)
		r = add_cells(top, &window);
	cells_done(&window);
	cells_clear(&top->past.news); /* a request for all time recomputes everything */
	top->is_current = false;
	return r;
}

static int add_all(struct top *top, const struct sums_options *options)
{
	struct past *past = &top->past;
	bool is_current = top->is_current && is_same(&top->counted, options);
	int r;

	if (!is_current)
		sums_reset(&top->sums, options);
	r = add_cells(top, is_current ? &past->news : &past->all);
	cells_clear(&past->news);
	top->counted = *options;
	top->is_current = r >= 0;
	top->shown_ns = top->now_ns > top->counted_since_ns ? top->now_ns - top->counted_since_ns : 0;
	return r;
}

static int add_frozen(struct top *top, const struct sums_options *options)
{
	sums_reset(&top->sums, options);
	top->is_current = false;
	return add_cells(top, &top->frozen);
}

static int add_up(struct top *top)
{
	struct sums_options options;
	int r;

	r = regroup(top, grouping_of(top->ui.at.view));
	if (r < 0)
		return r;
	options = question(top);
	if (top->ui.is_paused)
		return add_frozen(top, &options);
	return top->ui.since_start ? add_all(top, &options) : add_window(top, &options);
}

/* ---- Status and refresh ---- */

static int copy_text(char **to, const char *from)
{
	char *copy = strdup(from ? from : "");

	if (!copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

static int copy_status(struct top *top, const struct top_status *status)
{
	pid_t *tids = reallocarray(top->tids, status->n_tids + 1, sizeof *tids);
	int r;

	if (!tids)
		return -ENOMEM;
	top->tids = tids;
	if (status->n_tids > 0)
		memcpy(tids, status->tids, status->n_tids * sizeof *tids);
	top->n_tids = status->n_tids;
	r = copy_text(&top->command, status->command);
	if (r >= 0)
		r = copy_text(&top->python, status->python);
	if (r >= 0)
		r = copy_text(&top->note, status->note);
	if (r < 0)
		return r;
	top->status = *status;
	top->status.tids = tids;
	top->status.command = top->command;
	top->status.python = top->python;
	top->status.note = status->note ? top->note : NULL;
	return 0;
}

static int make_rows(struct top *top)
{
	int r;

	if (!top->names)
		return 0;
	r = add_up(top);
	if (r >= 0)
		r = top_list_rows(top);
	if (r >= 0)
		top_keep_selection_visible(top);
	return r;
}

int top_refresh(struct top *top, const struct top_status *status, uint64_t now_ns)
{
	int r;

	r = copy_status(top, status);
	if (r < 0 || top->ui.is_paused)
		return r;
	if (status->has_ended && top->ended_ns == 0)
		top->ended_ns = now_ns;
	top->now_ns = top->ended_ns ? top->ended_ns : now_ns;
	return make_rows(top);
}

void top_changed(struct top *top)
{
	/* If out of memory, the old rows stay; the next refresh reports it. */
	(void)make_rows(top);
}

uint32_t top_group(const struct top *top, uint64_t key)
{
	const struct id_slot *slot = key ? id_map_find(&top->groups.index, key) : NULL;

	for (uint32_t i = 0; i < GROUP_N_SPECIAL && i < top->groups.n && key != 0; i++)
		if (top->groups.items[i].key == key)
			return i;
	return slot ? slot->id : SUMS_NO_FOCUS;
}
