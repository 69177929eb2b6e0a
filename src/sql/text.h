/* SPDX-License-Identifier: MIT */
/* text.h - a growing text, and values of SQL in it. */
#ifndef PROBING_SQL_TEXT_H
#define PROBING_SQL_TEXT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

/* All zeros is an empty one. bytes carries no NUL. */
struct sql_text {
	char *bytes;
	size_t n, allocated;
};

void sql_text_done(struct sql_text *text);

/* All: 0 or -ENOMEM. */
int sql_text_put(struct sql_text *text, const char *bytes, size_t n);

/* A number so that reading it back gives the same one; "inf" and "-inf". */
int sql_text_put_double(struct sql_text *text, double value);

/* The value of a column: a number, the text's bytes as they are, or a blob's bytes in
 * hexadecimal. NULL puts nothing. */
int sql_text_put_value(struct sql_text *text, sqlite3_stmt *statement, int column);

/* UTF-8; bytes that are none become U+FFFD. */
int sql_text_put_utf8(struct sql_text *text, const char *bytes, size_t n);

/*
 * The same for display: escapes control characters, and those that reorder or hide
 * their neighbours (\n, \x1b, \u202e).
 * @width: adds its columns on a terminal.
 */
int sql_text_put_visible(struct sql_text *text, const char *bytes, size_t n, unsigned *width);

/* How many bytes of sql_text_put_visible()'s output fit into so many columns. */
size_t sql_text_fit(const char *bytes, size_t n, unsigned columns, unsigned *ret_width);

#endif
