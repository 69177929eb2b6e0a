/* SPDX-License-Identifier: MIT */
/* grid.c - aligned columns for display; see grid.h.
 *
 * Widths must be known before the first line is written, but a result may have
 * millions of rows: the first rows (MAX_HELD_ROWS, or MAX_HELD_BYTES of text)
 * are buffered and determine the widths; later rows are written at once.
 *
 * Invariants:
 * 1. Without a width (into a pipe) nothing is cut; a later, longer cell only
 *    moves the rest of its line to the right.
 * 2. On a terminal long texts are cut with an ellipsis so that a line fits,
 *    numbers never: half a number is another number.
 * 3. NULL is an empty cell. No cell contains terminal controls.
 */
#include "src/sql/grid.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/text.h"

enum {
	MAX_HELD_ROWS = 1000,
	MAX_HELD_BYTES = 4 << 20,
	MIN_TEXT_WIDTH = 8,
};

struct cell {
	size_t start, n_bytes; /* position in held */
	unsigned width;
	bool is_number;
};

struct column {
	unsigned width;
	bool has_text; /* has text, or only NULL */
	bool has_number;
};

struct table {
	const struct grid_style *style;
	bool no_header;
	sqlite3_stmt *statement;
	FILE *out;
	unsigned max_width;
	int n_columns;
	struct column *columns;
	/* Rows in order; the header is the first one. */
	struct cell *cells;
	size_t n_cells, allocated_cells;
	struct sql_text held;
	bool is_flowing; /* the widths are final and the header is printed */
};

void grid_free(void *state)
{
	struct table *table = state;

	if (!table)
		return;
	free(table->columns);
	free(table->cells);
	sql_text_done(&table->held);
	free(table);
}

DEFINE_CLEANUP(struct table *, grid_free)

static struct cell *add_cell(struct table *table)
{
	if (grow(&table->cells, table->n_cells, &table->allocated_cells, sizeof *table->cells) < 0)
		return NULL;
	table->cells[table->n_cells] = (struct cell){ .start = table->held.n };
	return &table->cells[table->n_cells++];
}

static int add_text(struct table *table, const char *bytes, size_t n)
{
	struct cell *cell = add_cell(table);
	int r;

	if (!cell)
		return -ENOMEM;
	r = sql_text_put_visible(&table->held, bytes, n, &cell->width);
	if (r < 0)
		return r;
	cell->n_bytes = table->held.n - cell->start;
	return 0;
}

static int add_plain(struct table *table, int column)
{
	struct cell *cell = add_cell(table);
	int r;

	if (!cell)
		return -ENOMEM;
	r = sql_text_put_value(&table->held, table->statement, column);
	if (r < 0)
		return r;
	cell->n_bytes = table->held.n - cell->start;
	cell->width = (unsigned)cell->n_bytes;
	return 0;
}

static int add_value(struct table *table, int column)
{
	int type = sqlite3_column_type(table->statement, column);
	const char *text;
	int r;

	if (type == SQLITE_TEXT) {
		table->columns[column].has_text = true;
		text = (const char *)sqlite3_column_text(table->statement, column);
		if (!text)
			return -ENOMEM;
		return add_text(table, text, (size_t)sqlite3_column_bytes(table->statement, column));
	}
	r = add_plain(table, column);
	if (r < 0)
		return r;
	if (type == SQLITE_BLOB)
		table->columns[column].has_text = true;
	if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
		table->columns[column].has_number = true;
		table->cells[table->n_cells - 1].is_number = true;
	}
	return 0;
}

static bool column_is_numeric(const struct column *column)
{
	return column->has_number && !column->has_text;
}

static unsigned line_width(const struct table *table, unsigned max_text)
{
	unsigned width = 0;

	for (int i = 0; i < table->n_columns; i++) {
		const struct column *column = &table->columns[i];

		width += column_is_numeric(column) ? column->width : MIN(column->width, max_text);
	}
	return width + 2 * table->style->edge_width + table->style->gap_width * (unsigned)(table->n_columns - 1);
}

/* Narrow text columns, the widest first, until a line fits. */
static void fit_columns(struct table *table)
{
	unsigned max_text = table->max_width;

	if (table->max_width == 0)
		return;
	while (max_text > MIN_TEXT_WIDTH && line_width(table, max_text) > table->max_width)
		max_text--;
	for (int i = 0; i < table->n_columns; i++)
		if (!column_is_numeric(&table->columns[i]))
			table->columns[i].width = MIN(table->columns[i].width, max_text);
}

static void settle_columns(struct table *table)
{
	for (int i = 0; i < table->n_columns; i++)
		table->columns[i].width = 1;
	for (size_t i = 0; i < table->n_cells; i++) {
		struct column *column = &table->columns[i % (size_t)table->n_columns];

		column->width = MAX(column->width, table->cells[i].width);
	}
	for (int i = 0; i < table->n_columns; i++)
		table->cells[i].is_number = column_is_numeric(&table->columns[i]);
	fit_columns(table);
}

static void pad(FILE *out, unsigned n, const char *with)
{
	while (n-- > 0)
		fputs(with, out);
}

static void print_cell(struct table *table, const struct cell *cell, unsigned width, bool is_last)
{
	const char *bytes = cell->n_bytes > 0 ? table->held.bytes + cell->start : "";
	unsigned used = cell->width;
	bool is_cut = table->max_width > 0 && !cell->is_number && cell->width > width;
	size_t n = cell->n_bytes;

	if (is_cut) {
		n = sql_text_fit(bytes, n, width - 1, &used);
		used++;
	}
	if (cell->is_number && used < width)
		pad(table->out, width - used, " ");
	fwrite(bytes, 1, n, table->out);
	if (is_cut)
		fputs("…", table->out);
	if (!is_last && !cell->is_number && used < width)
		pad(table->out, width - used, " ");
}

static void print_row(struct table *table, const struct cell *cells)
{
	const struct grid_style *style = table->style;

	fputs(style->before, table->out);
	for (int i = 0; i < table->n_columns; i++) {
		if (i > 0)
			fputs(style->between, table->out);
		print_cell(table, &cells[i], table->columns[i].width, i == table->n_columns - 1 && !style->pads_last);
	}
	fprintf(table->out, "%s\n", style->after);
}

static void print_rule(struct table *table, const struct grid_rule *rule)
{
	if (!rule->fill)
		return;
	fputs(rule->left, table->out);
	for (int i = 0; i < table->n_columns; i++) {
		if (i > 0)
			fputs(rule->cross, table->out);
		pad(table->out, table->columns[i].width, rule->fill);
	}
	fprintf(table->out, "%s\n", rule->right);
}

static void print_head(struct table *table)
{
	print_rule(table, &table->style->top);
	if (table->no_header)
		return;
	print_row(table, table->cells);
	print_rule(table, &table->style->middle);
}

/* Print the held rows; the first time with the header. */
static void flush_rows(struct table *table)
{
	size_t step = (size_t)table->n_columns, i = 0;

	if (!table->is_flowing) {
		settle_columns(table);
		print_head(table);
		table->is_flowing = true;
		i = step;
	}
	for (; i < table->n_cells; i += step)
		print_row(table, &table->cells[i]);
	table->n_cells = 0;
	table->held.n = 0;
}

int grid_begin(const struct grid_style *style, sqlite3_stmt *statement, FILE *out, const struct sql_look *look,
	       void **ret)
{
	CLEANUP(grid_freep) struct table *table = NULL;

	table = calloc(1, sizeof *table);
	if (!table)
		return -ENOMEM;
	table->style = style;
	table->no_header = look->no_header;
	table->statement = statement;
	table->out = out;
	table->max_width = look->columns;
	table->n_columns = sqlite3_column_count(statement);
	table->columns = calloc((size_t)table->n_columns, sizeof *table->columns);
	if (!table->columns)
		return -ENOMEM;
	for (int i = 0; i < table->n_columns; i++) {
		const char *name = sqlite3_column_name(statement, i);
		int r = name ? add_text(table, name, strlen(name)) : -ENOMEM;

		if (r < 0)
			return r;
	}
	*ret = TAKE(table);
	return 0;
}

int grid_row(void *state)
{
	struct table *table = state;

	for (int i = 0; i < table->n_columns; i++) {
		int r = add_value(table, i);

		if (r < 0)
			return r;
	}
	if (table->is_flowing || table->held.n >= MAX_HELD_BYTES ||
	    table->n_cells > MAX_HELD_ROWS * (size_t)table->n_columns)
		flush_rows(table);
	return 0;
}

int grid_end(void *state)
{
	struct table *table = state;

	flush_rows(table);
	print_rule(table, &table->style->bottom);
	return 0;
}
