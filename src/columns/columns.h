/* SPDX-License-Identifier: MIT */
/* columns.h - tables for people: aligned columns, texts cut to a width, styles.
 *
 * Foreign texts never act on the terminal. Results of queries, whose widths follow from their rows, have src/sql/grid.h.
 */
#ifndef PROBING_COLUMNS_H
#define PROBING_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The part of a text that is cut if it does not fit. */
enum cell_cut { CELL_CUT_MIDDLE, CELL_CUT_START, CELL_CUT_END };

/*
 * cell_put - write a name in at most @columns columns.
 * Control characters and bytes that are not UTF-8 never reach the terminal.
 * Returns the columns used.
 */
unsigned cell_put(FILE *out, const char *text, unsigned columns, enum cell_cut cut);

/* cell_put_all - the same without a limit. */
void cell_put_all(FILE *out, const char *text);

/* cell_put_start - the beginning of a text, as much as fits, without an ellipsis. Returns the columns used. */
unsigned cell_put_start(FILE *out, const char *text, unsigned columns);

/* cell_put_path - a path; it loses whole folders first: "…/nn/linear.py:114", "…linear.py:114". Returns the columns used. */
unsigned cell_put_path(FILE *out, const char *path, unsigned columns);

/*
 * cell_put_source - write a line of a source in at most @columns columns, 0: no limit.
 * Tabs become spaces; control characters "^[", other invisible ones "<U+202E>", and bytes that are not
 * UTF-8 "\xff".
 */
void cell_put_source(FILE *out, const char *text, unsigned columns);

/* A duration in at most 7 columns: "12.34 s", "5m 03s". @to: at least 24 bytes. */
void cell_format_ns(uint64_t ns, char *to, size_t n_bytes);

/* A number in at most 7 columns: "1234", "56.7 k", "8.90 M". @to: at least 24 bytes. */
void cell_format_count(uint64_t n, char *to, size_t n_bytes);

/* ---- Styles ---- */

enum style {
	STYLE_PLAIN,
	STYLE_HEAD,
	STYLE_PYTHON,
	STYLE_BUILTIN,
	STYLE_NATIVE,
	STYLE_KERNEL,
	STYLE_GOOD,
	STYLE_LIMITED,
	STYLE_BAD,
};

/* The sequences before and after a text in a style; nothing for a plain one, or if @colour is false. */
void style_start(FILE *out, bool colour, enum style style);
void style_end(FILE *out, bool colour, enum style style);

/* ---- Columns ---- */

struct column {
	const char *head;
	unsigned width; /* at least: a longer cell moves the rest of its line to the right */
	unsigned gap;   /* blanks before it */
	bool is_left;   /* aligned to the left; then not padded at the end of a line */
};

/* A table, and the line that is being written. Zeros are a plain table without columns. */
struct columns {
	const struct column *list;
	size_t n;
	FILE *out;
	bool colour;     /* of the head, and of cells with a style */
	size_t next;     /* column; n: outside of a line, or at its end */
	unsigned blanks; /* due before the next cell */
	unsigned used;   /* columns of the line so far, without them */
};

/* columns_put_head - a line of all heads. */
void columns_put_head(struct columns *columns);

/* columns_put - the next cell of the line. columns_put_styled - the same in a style, with its padding. */
void columns_put(struct columns *columns, const char *text);
void columns_put_styled(struct columns *columns, enum style style, const char *text);
void columns_printf(struct columns *columns, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * columns_start - go to the next column; columns_start_last() goes to the last one. The caller writes the cell to @columns->out,
 * aligned to the left, and then calls columns_wrote() with its width, unless the line ends there.
 */
void columns_start(struct columns *columns);
void columns_start_last(struct columns *columns);
void columns_wrote(struct columns *columns, unsigned used);

/* columns_end - end the line. */
void columns_end(struct columns *columns);

/* label_put - start a line that is a name and a value, outside of a table: "  NAME    ", the name in @width columns. */
void label_put(FILE *out, unsigned width, const char *name);

#endif
