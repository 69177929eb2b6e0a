/* SPDX-License-Identifier: MIT */
/* edits.h - changes to a text, and a map from the result to the original. */
#ifndef PROBING_SQL_EDITS_H
#define PROBING_SQL_EDITS_H

#include <stddef.h>

struct edit {
	size_t at, n;  /* removed bytes of the text; n 0: none */
	char *instead; /* owned */
	size_t order;  /* of the calls */
};

struct edits {
	struct edit *items;
	size_t n, allocated;
};

/* A piece of the result: copied byte by byte, or a replacement for the text at from. */
struct piece {
	size_t to, from;
	size_t n; /* bytes of the result */
	enum { PIECE_COPIED, PIECE_PUT } kind;
};

/* Returns 0 or -ENOMEM. Changes must not overlap; of several at one position the last call comes first. */
int edits_add(struct edits *edits, size_t at, size_t n, const char *instead);

/*
 * edits_apply - the text with all changes.
 * @ret, @ret_pieces: ended with free(3); the pieces cover the whole result, in order.
 * Errors: -ENOMEM.
 */
int edits_apply(struct edits *edits, const char *text, char **ret, struct piece **ret_pieces, size_t *ret_n);
void edits_done(struct edits *edits);

#endif
