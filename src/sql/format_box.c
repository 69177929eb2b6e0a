/* SPDX-License-Identifier: MIT */
/* format_box.c - a table in a frame of lines. */
#include "src/sql/grid.h"

static const struct grid_style style = {
	.before = "│ ",
	.between = " │ ",
	.after = " │",
	.edge_width = 2,
	.gap_width = 3,
	.pads_last = true,
	.top = { "┌─", "─", "─┬─", "─┐" },
	.middle = { "├─", "─", "─┼─", "─┤" },
	.bottom = { "└─", "─", "─┴─", "─┘" },
};

static int box_begin(sqlite3_stmt *statement, FILE *out, const struct sql_look *look, void **ret)
{
	return grid_begin(&style, statement, out, look, ret);
}

const struct sql_writer sql_writer_box = {
	.name = "box",
	.begin = box_begin,
	.row = grid_row,
	.end = grid_end,
	.free = grid_free,
};
