/* SPDX-License-Identifier: MIT */
/* format_table.c - a table without lines but the one under its names. */
#include "src/sql/grid.h"

static const struct grid_style style = {
	.before = "",
	.between = "  ",
	.after = "",
	.gap_width = 2,
	.middle = { "", "-", "  ", "" },
};

static int table_begin(sqlite3_stmt *statement, FILE *out, const struct sql_look *look, void **ret)
{
	return grid_begin(&style, statement, out, look, ret);
}

const struct sql_writer sql_writer_table = {
	.name = "table",
	.begin = table_begin,
	.row = grid_row,
	.end = grid_end,
	.free = grid_free,
};
