/* SPDX-License-Identifier: MIT */
/* view.c - the model as a picture of any size.
 *
 * From the top: a title, two lines about the process, the columns' names, the rows,
 * and the keys. On a small screen lines of the frame are dropped before rows, and
 * columns in this order: times, place, kind.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/top/private.h"

enum {
	MIN_ROWS = 3,
	MIN_COLUMNS = 20,
	COLUMNS_FOR_KIND = 44,
	COLUMNS_FOR_TIMES = 60,
	COLUMNS_FOR_PLACE = 72,
	COLUMNS_FOR_PLACE_IN_TREE = 110,
	ROWS_FOR_KEYS = 10,
};

struct columns {
	bool has_kind, has_times, has_place;
	unsigned name, place; /* column widths */
};

void format_time(uint64_t ns, char *to, size_t n_bytes)
{
	double seconds = (double)ns / 1e9;

	if (ns == 0)
		snprintf(to, n_bytes, "0");
	else if (ns < 999500000)
		snprintf(to, n_bytes, "%.0f ms", seconds * 1e3);
	else if (seconds < 99.995)
		snprintf(to, n_bytes, "%.2f s", seconds);
	else if (seconds < 99.5 * 60)
		snprintf(to, n_bytes, "%.0fm %02.0fs", (double)((uint64_t)seconds / 60),
			 (double)((uint64_t)seconds % 60));
	else
		snprintf(to, n_bytes, "%.1f h", seconds / 3600);
}

static const char *kind_word(const struct row *row, enum grid_style *ret_style)
{
	*ret_style = GRID_PLAIN;
	if (row->type == ROW_TITLE || row->kind == FRAME_N_KINDS)
		return "";
	switch (row->kind) {
	case FRAME_KERNEL:
		*ret_style = GRID_KERNEL;
		return "kernel";
	case FRAME_TASK:
		return "task";
	case FRAME_UNSAMPLED:
		return "";
	case FRAME_PYTHON:
		*ret_style = GRID_PYTHON;
		return "py";
	default:
		*ret_style = row->role == ROLE_BUILTIN ? GRID_BUILTIN : GRID_NATIVE;
		return row->role == ROLE_BUILTIN ? "builtin" : "native";
	}
}

static double share_of(const struct top *top, uint64_t ns)
{
	uint64_t all = top->sums.weight;

	if (top->ui.at.view == TOP_THREADS && top->ui.at.focus == 0) {
		all = 0;
		for (size_t i = 0; i < top->sums.n_threads; i++)
			all += top->sums.threads[i];
	}
	return all ? 100.0 * (double)ns / (double)all : 0.0;
}

/* ---- The table ---- */

/* Share the rest of the line between name and place as needed. */
static struct columns lay_out(const struct top *top, unsigned width, size_t first, size_t end)
{
	bool is_tree = top->ui.at.view == TOP_TREE && top->ui.at.focus == 0;
	struct columns columns = {
		.has_kind = width >= COLUMNS_FOR_KIND,
		.has_times = width >= COLUMNS_FOR_TIMES,
		.has_place = width >= (is_tree ? COLUMNS_FOR_PLACE_IN_TREE : COLUMNS_FOR_PLACE),
	};
	unsigned rest = width - 16 - (columns.has_kind ? 8 : 0) - (columns.has_times ? 16 : 0);
	unsigned name = 10, place = 5;
	char text[1024];

	columns.name = rest;
	if (!columns.has_place)
		return columns;
	for (size_t i = first; i < end; i++) {
		const struct row *row = &top->rows[i];

		row_place(row, text, sizeof text);
		if (row->type != ROW_TITLE)
			name = MAX(name,
				   text_columns_shown(row->name) + (row->type == ROW_NODE ? 2 * row->depth + 2 : 0));
		place = MAX(place, text_columns_shown(text));
	}
	rest--;
	columns.name = MIN(name, rest > place ? rest - place : 0);
	columns.name = MAX(columns.name, MIN(name, rest * 13 / 20));
	columns.place = rest - columns.name;
	return columns;
}

static void draw_column_names(const struct top *top, struct grid *grid, unsigned row, const struct columns *columns)
{
	const char *what = top->ui.at.focus != 0         ? "function"
			   : top->ui.at.view == TOP_TREE ? "call tree"
							 : top_view_names[top->ui.at.view];
	enum top_sort sort = top_sort_in(&top->ui);
	const char *mark = top->ui.is_reversed ? "^" : "";
	char text[160];
	unsigned at;

	snprintf(text, sizeof text, "%6s%% ", sort != TOP_BY_SELF ? "self" : *mark ? "^self" : ">self");
	at = grid_put(grid, row, 0, GRID_HEAD, grid->columns, text);
	if (columns->has_times)
		at = grid_put(grid, row, at, GRID_HEAD, grid->columns, "   self ");
	snprintf(text, sizeof text, "%6s%% ", sort != TOP_BY_TOTAL ? "total" : *mark ? "^total" : ">total");
	at = grid_put(grid, row, at, GRID_HEAD, grid->columns, text);
	if (columns->has_times)
		at = grid_put(grid, row, at, GRID_HEAD, grid->columns, "  total ");
	if (columns->has_kind)
		at = grid_put(grid, row, at, GRID_HEAD, grid->columns, "kind    ");
	snprintf(text, sizeof text, "%s%s", sort != TOP_BY_NAME ? "" : *mark ? mark : ">", what);
	grid_put(grid, row, at, GRID_HEAD, columns->name, text);
	if (columns->has_place)
		grid_put(grid, row, at + columns->name + 1, GRID_HEAD, columns->place, "where");
	grid_fill_style(grid, row, GRID_HEAD, false);
}

static unsigned draw_numbers(const struct top *top, struct grid *grid, unsigned row, const struct row *shown,
			     const struct columns *columns)
{
	char text[64], time[24];
	unsigned at;

	snprintf(text, sizeof text, "%7.1f ", share_of(top, shown->self));
	at = grid_put(grid, row, 0, GRID_PLAIN, grid->columns, text);
	if (columns->has_times) {
		format_time(shown->self, time, sizeof time);
		snprintf(text, sizeof text, "%7s ", time);
		at = grid_put(grid, row, at, GRID_PLAIN, grid->columns, text);
	}
	snprintf(text, sizeof text, "%7.1f ", share_of(top, shown->total));
	at = grid_put(grid, row, at, GRID_PLAIN, grid->columns, text);
	if (columns->has_times) {
		format_time(shown->total, time, sizeof time);
		snprintf(text, sizeof text, "%7s ", time);
		at = grid_put(grid, row, at, GRID_PLAIN, grid->columns, text);
	}
	return at;
}

/* Indent a tree node by its depth, but at most by half the width. */
static unsigned draw_indent(struct grid *grid, unsigned row, unsigned at, const struct row *shown, unsigned width)
{
	unsigned indent = MIN(2 * shown->depth, width / 2);

	grid_put(grid, row, at + indent, GRID_DIM, 1, !shown->has_children ? " " : shown->is_open ? "-" : "+");
	return indent + 2;
}

static void draw_row(const struct top *top, struct grid *grid, unsigned row, const struct row *shown,
		     const struct columns *columns)
{
	enum grid_style style;
	const char *kind = kind_word(shown, &style);
	unsigned at, indent = 0;
	char place[1024];

	if (shown->type == ROW_TITLE) {
		grid_put(grid, row, 1, GRID_TITLE, grid->columns, shown->name);
		return;
	}
	at = draw_numbers(top, grid, row, shown, columns);
	if (columns->has_kind) {
		grid_put(grid, row, at, style, 7, kind);
		at += 8;
	}
	if (shown->type == ROW_NODE)
		indent = draw_indent(grid, row, at, shown, columns->name);
	if (indent < columns->name)
		grid_put_middle(grid, row, at + indent, style, columns->name - indent, shown->name);
	row_place(shown, place, sizeof place);
	if (columns->has_place)
		grid_put_end(grid, row, at + columns->name + 1, GRID_DIM, columns->place, place);
}

void draw_table(struct top *top, struct grid *grid, unsigned first_row, unsigned n_rows)
{
	struct top_ui *ui = &top->ui;
	struct columns columns;
	size_t end;

	ui->page = n_rows > 1 ? n_rows - 1 : 1;
	top_keep_selection_visible(top);
	end = MIN(top->n_rows, ui->scroll + ui->page);
	columns = lay_out(top, grid->columns, ui->scroll, end);
	draw_column_names(top, grid, first_row, &columns);
	for (size_t i = ui->scroll; i < end; i++) {
		unsigned row = first_row + 1 + (unsigned)(i - ui->scroll);

		draw_row(top, grid, row, &top->rows[i], &columns);
		if (top->options.is_interactive && i == ui->selected)
			grid_fill_style(grid, row, GRID_PLAIN, true);
	}
	if (top->n_rows == 0 && n_rows > 1)
		grid_put(grid, first_row + 1, 1, GRID_DIM, grid->columns - 1,
			 ui->filter[0]           ? "nothing has that in its name or place"
			 : top->status.has_ended ? "no samples"
			 : top->past.all.n > 0   ? "no samples in this time: it used no CPU"
						 : "no samples yet: it has used no CPU");
}

/* ---- Screen ---- */

static void draw_keys(const struct top *top, struct grid *grid, unsigned row)
{
	static const char *const words[] = {
		"? help",  "q quit",        "Tab view", "1/2/3 sort", "w window",    "/ filter",
		"p pause", "Enter details", "r reset",  "n native",   "+/- seconds",
	};
	char text[TOP_MAX_FILTER + 16];
	unsigned at = 0;

	if (top->ui.mode == MODE_FILTER) {
		snprintf(text, sizeof text, "/%s_", top->ui.filter);
		grid_put_end(grid, row, 0, GRID_TITLE, grid->columns, text);
		return;
	}
	if (top->ui.mode == MODE_QUIT) {
		grid_put(grid, row, 0, GRID_WARNING, grid->columns,
			 "q: end the command, too   d: let it run   other keys: stay");
		return;
	}
	for (size_t i = 0; i < N_ELEMENTS(words); i++) {
		unsigned width = text_columns_shown(words[i]);

		if (at + width > grid->columns)
			break;
		at = grid_put(grid, row, at, GRID_DIM, width, words[i]) + 2;
	}
}

void top_draw(struct top *top, struct grid *grid)
{
	bool has_keys = top->options.is_interactive &&
			(grid->rows >= ROWS_FOR_KEYS || top->ui.mode == MODE_FILTER || top->ui.mode == MODE_QUIT);
	unsigned first;

	if (grid->rows < MIN_ROWS || grid->columns < MIN_COLUMNS) {
		grid_put(grid, 0, 0, GRID_WARNING, grid->columns, "too small");
		return;
	}
	if (top->ui.mode == MODE_HELP) {
		draw_help(top, grid);
		return;
	}
	first = draw_head(top, grid);
	draw_table(top, grid, first, grid->rows - first - has_keys);
	if (has_keys)
		draw_keys(top, grid, grid->rows - 1);
}
