/* SPDX-License-Identifier: MIT */
/* grid.c - a picture of characters, independent of the terminal.
 *
 * Names are foreign: control characters, bidirectional marks
 * and bytes that are not UTF-8 never get into a grid. A wide character takes
 * two cells, or none if only one is left.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"
#include "base/util.h"
#include "src/top/private.h"

enum { MAX_SIDE = 10000, ELLIPSIS = 0x2026 };

int grid_init(struct grid *grid, unsigned rows, unsigned columns)
{
	if (rows == 0 || columns == 0 || rows > MAX_SIDE || columns > MAX_SIDE)
		return -EINVAL;
	*grid = (struct grid){ .rows = rows, .columns = columns };
	grid->cells = calloc((size_t)rows * columns, sizeof *grid->cells);
	if (!grid->cells)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)rows * columns; i++)
		grid->cells[i].character = ' ';
	return 0;
}

void grid_done(struct grid *grid)
{
	free(grid->cells);
	memset(grid, 0, sizeof *grid);
}

static struct grid_cell *cell_at(const struct grid *grid, unsigned row, unsigned column)
{
	return &grid->cells[(size_t)row * grid->columns + column];
}

static unsigned put_character(struct grid *grid, unsigned row, unsigned column, enum grid_style style, uint32_t c,
			      unsigned width)
{
	if (width == 0) {
		struct grid_cell *before = column > 0 ? cell_at(grid, row, column - 1) : NULL;

		if (before && before->character == 0 && column > 1)
			before = cell_at(grid, row, column - 2);
		if (before && before->mark == 0)
			before->mark = c;
		return column;
	}
	for (unsigned i = 0; i < width; i++) {
		struct grid_cell *cell = cell_at(grid, row, column + i);

		cell->character = i == 0 ? c : 0;
		cell->mark = 0;
		cell->style = (uint8_t)style;
	}
	grid->used_rows = MAX(grid->used_rows, row + 1);
	return column + width;
}

/* Truncate a text in the middle: keep the first `head` columns and the end. */
static unsigned put_cut(struct grid *grid, unsigned row, unsigned column, enum grid_style style, unsigned columns,
			const char *text, unsigned head)
{
	unsigned wanted = text_columns_shown(text), at = 0, end, skip;
	bool is_cut = false;
	int32_t c;

	if (row >= grid->rows || column >= grid->columns)
		return column;
	columns = MIN(columns, grid->columns - column);
	if (columns == 0)
		return column;
	end = column + columns;
	skip = wanted > columns ? wanted - (columns - 1 - MIN(head, columns - 1)) : 0;
	while ((c = text_next_shown(&text)) != 0) {
		unsigned start = at, width = text_char_columns(c);

		at += width;
		if (wanted > columns && at > head && start < skip) {
			if (!is_cut && column < end)
				column = put_character(grid, row, column, style, ELLIPSIS, 1);
			is_cut = true;
		} else if (column + width <= end) {
			column = put_character(grid, row, column, style, (uint32_t)c, width);
		}
	}
	return column;
}

unsigned grid_put(struct grid *grid, unsigned row, unsigned column, enum grid_style style, unsigned columns,
		  const char *text)
{
	return put_cut(grid, row, column, style, columns, text, columns > 0 ? columns - 1 : 0);
}

unsigned grid_put_middle(struct grid *grid, unsigned row, unsigned column, enum grid_style style, unsigned columns,
			 const char *text)
{
	return put_cut(grid, row, column, style, columns, text, columns / 2);
}

unsigned grid_put_end(struct grid *grid, unsigned row, unsigned column, enum grid_style style, unsigned columns,
		      const char *text)
{
	return put_cut(grid, row, column, style, columns, text, 0);
}

void grid_fill_style(struct grid *grid, unsigned row, enum grid_style style, bool is_selected)
{
	for (unsigned column = 0; row < grid->rows && column < grid->columns; column++) {
		struct grid_cell *cell = cell_at(grid, row, column);

		if (style != GRID_PLAIN)
			cell->style = (uint8_t)style;
		cell->is_selected = is_selected;
	}
}

/* ---- Text ---- */

static void print_character(uint32_t c, FILE *out)
{
	char bytes[MB_LEN_MAX];
	mbstate_t state = { 0 };
	size_t n = wcrtomb(bytes, (wchar_t)c, &state);

	if (n != (size_t)-1)
		fwrite(bytes, 1, n, out);
	else
		fputc(c == ELLIPSIS ? '~' : '?', out);
}

static void print_row(const struct grid *grid, unsigned row, FILE *out)
{
	unsigned n = grid->columns;

	while (n > 0 && cell_at(grid, row, n - 1)->character == ' ')
		n--;
	for (unsigned column = 0; column < n; column++) {
		const struct grid_cell *cell = cell_at(grid, row, column);

		if (cell->character == 0)
			continue;
		print_character(cell->character, out);
		if (cell->mark != 0)
			print_character(cell->mark, out);
	}
	fputc('\n', out);
}

int grid_print(const struct grid *grid, FILE *out)
{
	for (unsigned row = 0; row < grid->used_rows; row++)
		print_row(grid, row, out);
	if (fflush(out) != 0)
		return errno > 0 ? -errno : -EIO;
	return ferror(out) ? -EIO : 0;
}
