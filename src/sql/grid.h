/* SPDX-License-Identifier: MIT */
/* grid.h - columns that line up, in one style or another. Private. */
#ifndef PROBING_SQL_GRID_H
#define PROBING_SQL_GRID_H

#include "src/sql/format.h"

/* Text around the cells, in UTF-8. */
struct grid_style {
	const char *before, *between, *after; /* of a row's cells */
	unsigned edge_width, gap_width;       /* columns that before (and after), and between, take */
	bool pads_last;                       /* blanks behind a text in the last column */
	struct grid_rule {
		const char *left, *fill, *cross, *right; /* fill NULL: there is no such line */
	} top, middle, bottom;
};

/* The functions of a writer. @style: outlives the state. */
int grid_begin(const struct grid_style *style, sqlite3_stmt *statement, FILE *out, const struct sql_look *look,
	       void **ret);
int grid_row(void *state);
int grid_end(void *state);
void grid_free(void *state);

#endif
