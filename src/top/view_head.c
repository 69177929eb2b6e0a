/* SPDX-License-Identifier: MIT */
/* view_head.c - the lines above the table: the process, and how it is sampled. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/top/private.h"

enum { ROWS_FOR_ALL = 10, ROWS_FOR_TWO = 6 };

/* Parts of a line; each is shown completely or not at all. */
struct line {
	struct grid *grid;
	unsigned row, at;
	bool is_full;
};

static void add(struct line *line, enum grid_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add(struct line *line, enum grid_style style, const char *format, ...)
{
	char text[512];
	va_list arguments;
	unsigned gap = line->at > 0 ? 2 : 0;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (line->is_full || line->at + gap + text_columns_shown(text) > line->grid->columns) {
		line->is_full = line->at > 0;
		return;
	}
	line->at = grid_put(line->grid, line->row, line->at + gap, style, line->grid->columns, text);
}

static void draw_title(const struct top *top, struct grid *grid, unsigned row)
{
	unsigned at = grid_put(grid, row, 0, GRID_TITLE, grid->columns, "probing top  ");

	if (top->status.has_ended)
		at = grid_put(grid, row, at, GRID_WARNING, grid->columns, "ended  ");
	if (at < grid->columns)
		grid_put_middle(grid, row, at, GRID_PLAIN, grid->columns - at, top->status.command);
}

static void draw_process(const struct top *top, struct grid *grid, unsigned row)
{
	const struct top_status *status = &top->status;
	struct line line = { .grid = grid, .row = row };

	if (status->note) {
		add(&line, GRID_PLAIN, "%s", status->note);
		return;
	}
	add(&line, GRID_PLAIN, "pid %d", (int)status->pid);
	add(&line, GRID_PLAIN, status->python[0] ? "Python %s" : "no Python%s", status->python);
	if (status->has_ended) {
		add(&line, GRID_WARNING,
		    top->options.is_interactive ? "the process has ended: q leaves" : "the process has ended");
	} else {
		if (status->cpu_share >= 0)
			add(&line, GRID_PLAIN, "CPU %.0f%%", 100 * status->cpu_share);
		if (status->gil_share >= 0)
			add(&line, GRID_PLAIN, "GIL %.0f%%", 100 * status->gil_share);
		if (status->gc_share >= 0)
			add(&line, GRID_PLAIN, "GC %.0f%%", 100 * status->gc_share);
		if (status->n_threads > 0)
			add(&line, GRID_PLAIN, "%u thread%s", status->n_threads, status->n_threads == 1 ? "" : "s");
	}
}

static void add_time(const struct top *top, struct line *line)
{
	char time[24];

	if (top->ui.is_paused)
		add(line, GRID_WARNING, "PAUSED");
	format_time(top->shown_ns, time, sizeof time);
	if (top->ui.since_start)
		add(line, GRID_PLAIN, top->begun_anew ? "last %s (reset: too many stacks)" : "since start, %s", time);
	else
		add(line, GRID_PLAIN, "last %s", time);
}

static void draw_sampling(const struct top *top, struct grid *grid, unsigned row)
{
	const struct top_status *status = &top->status;
	const struct top_ui *ui = &top->ui;
	struct line line = { .grid = grid, .row = row };

	add_time(top, &line);
	if (ui->filter[0] && ui->mode != MODE_FILTER)
		add(&line, GRID_WARNING, "/%s", ui->filter);
	if (ui->at.thread != SUMS_ALL_THREADS && ui->at.thread < top->n_threads)
		add(&line, GRID_WARNING, "thread %d", (int)top->threads[ui->at.thread].tid);
	add(&line, GRID_PLAIN, "%" PRIu64 " sample%s", top->sums.samples, top->sums.samples == 1 ? "" : "s");
	if (!status->note)
		add(&line, status->lost > 0 ? GRID_WARNING : GRID_PLAIN, "%" PRIu64 " lost", status->lost);
	add(&line, GRID_PLAIN, "%s, %g Hz", status->source ? status->source : "", status->hz);
	if (!ui->show_native)
		add(&line, GRID_PLAIN, "no native");
	else if (!ui->show_kernel)
		add(&line, GRID_PLAIN, "no kernel");
	if (ui->show_interpreter)
		add(&line, GRID_PLAIN, "interpreter");
}

unsigned draw_head(const struct top *top, struct grid *grid)
{
	bool has_room = grid->rows >= ROWS_FOR_ALL || !top->options.is_interactive;
	unsigned n = has_room ? 3 : grid->rows >= ROWS_FOR_TWO ? 2 : 1;
	unsigned row = 0;

	if (!top->status.command)
		return 0;
	if (n == 3)
		draw_title(top, grid, row++);
	if (n >= 2)
		draw_process(top, grid, row++);
	draw_sampling(top, grid, row++);
	return row;
}
