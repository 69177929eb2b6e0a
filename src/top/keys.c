/* SPDX-License-Identifier: MIT */
/* keys.c - actions of the keys. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/top/private.h"

static const double windows_s[] = { 1, 2, 5, 10, 30, 60, 120, TOP_MAX_WINDOW_S };

/* ---- Selection ---- */

static bool is_selectable(const struct top *top, size_t row)
{
	return row < top->n_rows && top->rows[row].type != ROW_TITLE;
}

/* The nearest selectable row, first below, then above. */
static size_t nearest(const struct top *top, size_t row)
{
	for (size_t i = row; i < top->n_rows; i++)
		if (is_selectable(top, i))
			return i;
	for (size_t i = MIN(row, top->n_rows); i-- > 0;)
		if (is_selectable(top, i))
			return i;
	return 0;
}

void top_keep_selection_visible(struct top *top)
{
	struct top_ui *ui = &top->ui;

	for (size_t i = 0; ui->has_selection && i < top->n_rows; i++)
		if (is_selectable(top, i) && top->rows[i].key == ui->selected_key) {
			/* A function may be both caller and callee: then keep the position. */
			if (is_selectable(top, ui->selected) && top->rows[ui->selected].key == ui->selected_key)
				break;
			ui->selected = i;
			break;
		}
	ui->selected = ui->has_selection ? nearest(top, MIN(ui->selected, top->n_rows)) : nearest(top, 0);
	if (ui->selected < ui->scroll)
		ui->scroll = ui->selected;
	if (ui->selected >= ui->scroll + ui->page)
		ui->scroll = ui->selected - ui->page + 1;
	if (ui->scroll + ui->page > top->n_rows)
		ui->scroll = top->n_rows > ui->page ? top->n_rows - ui->page : 0;
	/* Show the titles above the first selectable row. */
	if (!ui->has_selection || ui->selected == nearest(top, 0))
		ui->scroll = 0;
}

static void select_row(struct top *top, size_t row)
{
	struct top_ui *ui = &top->ui;

	if (top->n_rows == 0)
		return;
	ui->selected = nearest(top, MIN(row, top->n_rows - 1));
	ui->selected_key = top->rows[ui->selected].key;
	ui->has_selection = true;
	top_keep_selection_visible(top);
}

static void select_before(struct top *top, size_t n)
{
	size_t row = top->ui.selected > n ? top->ui.selected - n : 0;

	while (row > 0 && !is_selectable(top, row))
		row--;
	select_row(top, row);
}

static void drop_selection(struct top *top)
{
	top->ui.has_selection = false;
	top->ui.selected = top->ui.scroll = 0;
}

static bool move(struct top *top, uint32_t key)
{
	struct top_ui *ui = &top->ui;

	switch (key) {
	case TOP_KEY_UP:
	case 'k':
		select_before(top, 1);
		return true;
	case TOP_KEY_DOWN:
	case 'j':
		select_row(top, ui->selected + 1);
		return true;
	case TOP_KEY_PAGE_UP:
		select_before(top, ui->page);
		return true;
	case TOP_KEY_PAGE_DOWN:
		select_row(top, ui->selected + ui->page);
		return true;
	case TOP_KEY_HOME:
	case 'g':
		drop_selection(top);
		return true;
	case TOP_KEY_END:
	case 'G':
		select_row(top, top->n_rows);
		return true;
	default:
		return false;
	}
}

/* ---- Places ---- */

static void go(struct top *top, struct place place)
{
	top->ui.at = place;
	drop_selection(top);
	top_changed(top);
}

static void go_on(struct top *top, struct place place)
{
	struct top_ui *ui = &top->ui;

	if (ui->n_back == TOP_MAX_BACK)
		memmove(ui->back, ui->back + 1, --ui->n_back * sizeof *ui->back);
	ui->back[ui->n_back++] = ui->at;
	go(top, place);
}

static void go_back(struct top *top)
{
	struct top_ui *ui = &top->ui;

	if (ui->n_back > 0) {
		go(top, ui->back[--ui->n_back]);
	} else if (ui->filter[0]) {
		ui->filter[0] = '\0';
		top_changed(top);
	}
}

/* Show another view of the same thread. */
static void show(struct top *top, enum top_view view)
{
	struct place place = { view, 0, view == TOP_THREADS ? SUMS_ALL_THREADS : top->ui.at.thread };

	top->ui.n_back = 0;
	if (place.thread != SUMS_ALL_THREADS)
		top->ui.back[top->ui.n_back++] = (struct place){ TOP_THREADS, 0, SUMS_ALL_THREADS };
	go(top, place);
}

static int fold(struct top *top, uint64_t key)
{
	struct id_slot *slot = id_map_find(&top->closed, key);

	if (!slot)
		return id_map_add(&top->closed, key, 1);
	slot->id = !slot->id;
	return 0;
}

static void open_thread(struct top *top, const struct row *row)
{
	const struct id_slot *slot = id_map_find(&top->thread_index, row->key);

	if (slot)
		go_on(top, (struct place){ TOP_FUNCTIONS, 0, slot->id });
}

static void enter(struct top *top)
{
	const struct row *row;

	if (!is_selectable(top, top->ui.selected))
		return;
	row = &top->rows[top->ui.selected];
	switch (row->type) {
	case ROW_NODE:
		top->ui.selected_key = row->key;
		top->ui.has_selection = true;
		(void)fold(top, row->key); /* if out of memory, it stays unfolded */
		top_changed(top);
		break;
	case ROW_THREAD:
		open_thread(top, row);
		break;
	case ROW_GROUP:
		if (row->key != top->ui.at.focus)
			go_on(top, (struct place){ top->ui.at.view, row->key, top->ui.at.thread });
		break;
	case ROW_TITLE:
		break;
	}
}

/* ---- Options of the view ---- */

static int freeze(struct top *top)
{
	uint64_t window_ns = (uint64_t)(top->ui.window_s * 1e9), ns;

	cells_done(&top->frozen);
	if (top->ui.since_start)
		return cells_add_all(&top->frozen, &top->past.all);
	return past_window(&top->past, window_ns, top->now_ns, &top->frozen, &ns);
}

static void pause_or_go_on(struct top *top)
{
	if (top->ui.is_paused)
		cells_done(&top->frozen);
	else if (freeze(top) < 0)
		return;
	top->ui.is_paused = !top->ui.is_paused;
	top_changed(top);
}

static void change_window(struct top *top, int by)
{
	struct top_ui *ui = &top->ui;
	size_t n = 0;

	while (n + 1 < N_ELEMENTS(windows_s) && windows_s[n] < ui->window_s)
		n++;
	if (by > 0 && windows_s[n] <= ui->window_s && n + 1 < N_ELEMENTS(windows_s))
		n++;
	else if (by < 0 && n > 0)
		n--;
	ui->window_s = windows_s[n];
	ui->since_start = false;
}

static enum top_action reset(struct top *top, uint64_t now_ns)
{
	past_reset(&top->past, now_ns);
	top->counted_since_ns = top->now_ns = now_ns;
	top->ended_ns = top->ended_ns ? now_ns : 0;
	top->begun_anew = false;
	top->is_current = false;
	top->ui.is_paused = false;
	cells_done(&top->frozen);
	top_changed(top);
	return TOP_RESET;
}

static bool toggle(struct top *top, uint32_t key)
{
	struct top_ui *ui = &top->ui;

	switch (key) {
	case 'n':
		ui->show_native = !ui->show_native;
		break;
	case 'K':
		ui->show_kernel = !ui->show_kernel;
		break;
	case 'x':
		ui->show_interpreter = !ui->show_interpreter;
		break;
	case 'i':
		ui->show_idle = !ui->show_idle;
		break;
	case 'R':
		ui->is_reversed = !ui->is_reversed;
		break;
	case '1':
	case 's':
		ui->sort = TOP_BY_SELF;
		break;
	case '2':
		ui->sort = TOP_BY_TOTAL;
		break;
	case '3':
		ui->sort = TOP_BY_NAME;
		break;
	case '>':
	case '.':
		ui->sort = (ui->sort + 1) % TOP_N_SORTS;
		break;
	case '<':
	case ',':
		ui->sort = (ui->sort + TOP_N_SORTS - 1) % TOP_N_SORTS;
		break;
	default:
		return false;
	}
	top_changed(top);
	return true;
}

/* The window cannot change while the view is frozen. */
static bool change_time(struct top *top, uint32_t key)
{
	if (key != 'w' && key != '+' && key != '=' && key != '-')
		return false;
	if (top->ui.is_paused)
		return true;
	if (key == 'w')
		top->ui.since_start = !top->ui.since_start;
	else
		change_window(top, key == '-' ? -1 : 1);
	top_changed(top);
	return true;
}

static bool switch_view(struct top *top, uint32_t key)
{
	enum top_view view = top->ui.at.view;

	switch (key) {
	case 'f':
		show(top, TOP_FUNCTIONS);
		return true;
	case 'l':
		show(top, TOP_LINES);
		return true;
	case 'm':
		show(top, TOP_MODULES);
		return true;
	case 't':
		show(top, TOP_THREADS);
		return true;
	case 'c':
		show(top, TOP_TREE);
		return true;
	case TOP_KEY_TAB:
		show(top, (view + 1) % TOP_N_VIEWS);
		return true;
	case TOP_KEY_BACK_TAB:
		show(top, (view + TOP_N_VIEWS - 1) % TOP_N_VIEWS);
		return true;
	default:
		return false;
	}
}

/* ---- Modes ---- */

/* Remove the last character, which may have several bytes. */
static void cut_last(char *text)
{
	size_t n = strlen(text);

	while (n > 0 && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
		n--;
	text[n > 0 ? n - 1 : 0] = '\0';
}

static void append_utf8(char *text, size_t n_bytes, uint32_t c)
{
	size_t n = strlen(text), n_more = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	if (n + n_more >= n_bytes)
		return;
	for (size_t i = n_more; i-- > 1; c >>= 6)
		text[n + i] = (char)(0x80 | (c & 0x3f));
	text[n] = (char)(first[n_more == 1 ? 0 : n_more] | c);
	text[n + n_more] = '\0';
}

static void type_filter(struct top *top, uint32_t key)
{
	struct top_ui *ui = &top->ui;

	if (key == TOP_KEY_ENTER) {
		ui->mode = MODE_TABLE;
	} else if (key == TOP_KEY_ESCAPE) {
		memcpy(ui->filter, ui->filter_before, sizeof ui->filter);
		ui->mode = MODE_TABLE;
	} else if (key == TOP_KEY_BACKSPACE) {
		if (!ui->filter[0])
			ui->mode = MODE_TABLE;
		cut_last(ui->filter);
	} else if (key == 'U' - '@') {
		ui->filter[0] = '\0';
	} else if (key >= ' ' && key < 0x110000 && key != 0x7f) {
		append_utf8(ui->filter, sizeof ui->filter, key);
	}
	top_changed(top);
}

static void start_filter(struct top *top)
{
	memcpy(top->ui.filter_before, top->ui.filter, sizeof top->ui.filter);
	top->ui.filter[0] = '\0';
	top->ui.mode = MODE_FILTER;
	top_changed(top);
}

static void help_key(struct top *top, uint32_t key)
{
	struct top_ui *ui = &top->ui;

	if (key == TOP_KEY_UP || key == 'k')
		ui->help_scroll -= ui->help_scroll > 0;
	else if (key == TOP_KEY_DOWN || key == 'j' || key == TOP_KEY_PAGE_DOWN)
		ui->help_scroll++;
	else
		ui->mode = MODE_TABLE;
}

static enum top_action quit_key(struct top *top, uint32_t key)
{
	top->ui.mode = MODE_TABLE;
	if (key == 'q' || key == 'Q')
		return TOP_QUIT_AND_END;
	return key == 'd' ? TOP_QUIT : TOP_STAY;
}

static enum top_action table_key(struct top *top, uint32_t key, uint64_t now_ns)
{
	struct top_ui *ui = &top->ui;

	if (move(top, key) || toggle(top, key) || switch_view(top, key) || change_time(top, key))
		return TOP_STAY;
	switch (key) {
	case 'q':
	case 'Q':
		if (!top->options.is_child || top->status.has_ended)
			return TOP_QUIT;
		ui->mode = MODE_QUIT;
		break;
	case '?':
	case 'h':
	case TOP_KEY_HELP:
		ui->mode = MODE_HELP;
		ui->help_scroll = 0;
		break;
	case '/':
	case '\\':
		start_filter(top);
		break;
	case 'p':
	case ' ':
	case 'Z':
		pause_or_go_on(top);
		break;
	case 'r':
		return reset(top, now_ns);
	case TOP_KEY_ENTER:
	case TOP_KEY_RIGHT:
		enter(top);
		break;
	case TOP_KEY_ESCAPE:
	case TOP_KEY_BACKSPACE:
	case TOP_KEY_LEFT:
		go_back(top);
		break;
	case TOP_KEY_REDRAW:
		return TOP_REPAINT;
	default:
		break;
	}
	return TOP_STAY;
}

enum top_action top_key(struct top *top, uint32_t key, uint64_t now_ns)
{
	if (key == TOP_KEY_REDRAW)
		return TOP_REPAINT;
	switch (top->ui.mode) {
	case MODE_FILTER:
		type_filter(top, key);
		return TOP_STAY;
	case MODE_HELP:
		help_key(top, key);
		return TOP_STAY;
	case MODE_QUIT:
		return quit_key(top, key);
	default:
		return table_key(top, key, now_ns);
	}
}
