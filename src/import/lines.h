/* SPDX-License-Identifier: MIT */
/* lines.h - text line by line, without copying it. */
#ifndef PROBING_IMPORT_LINES_H
#define PROBING_IMPORT_LINES_H

#include <string.h>

#include "src/import/sink.h"

/* The next line, without its end ("\n", "\r\n"); false: there is none. @rest: the remaining text, advanced. */
static inline bool next_line(struct piece *rest, struct piece *ret)
{
	const char *end;

	if (rest->n == 0)
		return false;
	end = memchr(rest->at, '\n', rest->n);
	*ret = (struct piece){ rest->at, end ? (size_t)(end - rest->at) : rest->n };
	rest->at += MIN(ret->n + 1, rest->n);
	rest->n -= MIN(ret->n + 1, rest->n);
	if (ret->n > 0 && ret->at[ret->n - 1] == '\r')
		ret->n--;
	return true;
}

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline struct piece piece_trim(struct piece piece)
{
	while (piece.n > 0 && is_blank(piece.at[0]))
		piece.at++, piece.n--;
	while (piece.n > 0 && is_blank(piece.at[piece.n - 1]))
		piece.n--;
	return piece;
}

static inline bool piece_is(struct piece piece, const char *text)
{
	return piece.n == strlen(text) && memcmp(piece.at, text, piece.n) == 0;
}

static inline bool piece_begins(struct piece piece, const char *text)
{
	return piece.n >= strlen(text) && memcmp(piece.at, text, strlen(text)) == 0;
}

/* The text before the first such character, which is dropped; all, if there is none. */
static inline struct piece piece_split(struct piece *rest, char separator)
{
	const char *end = rest->n > 0 ? memchr(rest->at, separator, rest->n) : NULL;
	struct piece part = { rest->at, end ? (size_t)(end - rest->at) : rest->n };

	rest->at += MIN(part.n + 1, rest->n);
	rest->n -= MIN(part.n + 1, rest->n);
	return part;
}

/* A whole text as a decimal number; false: it is none, or too large. */
static inline bool piece_number(struct piece piece, uint64_t *ret)
{
	uint64_t value = 0;

	if (piece.n == 0)
		return false;
	for (size_t i = 0; i < piece.n; i++) {
		unsigned digit = (unsigned char)piece.at[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return true;
}

#endif
