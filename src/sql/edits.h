/* SPDX-License-Identifier: MIT */
/* edits.h - changes to a text, and where what comes out stood in what went in. */
#ifndef PROBING_SQL_EDITS_H
#define PROBING_SQL_EDITS_H

#include <stddef.h>

struct edit {
	size_t at, n;  /* bytes of the text that go; n 0: nothing does */
	char *instead; /* owned */
	size_t order;  /* in which it was asked for */
};

struct edits {
	struct edit *items;
	size_t n, allocated;
};

/* A piece of what came out: copied byte by byte, or put in the place of what began at from. */
struct piece {
	size_t to, from;
	size_t n; /* bytes of what came out */
	enum { PIECE_COPIED, PIECE_PUT } kind;
};

/* Returns 0 or -ENOMEM. Changes must not overlap; of several at one position the last call comes first. */
int edits_add(struct edits *edits, size_t at, size_t n, const char *instead);

/*
 * edits_apply - the text with all changes.
 * @ret, @ret_pieces: ended with free(3); the pieces cover all that came out, in order.
 * Errors: -ENOMEM.
 */
int edits_apply(struct edits *edits, const char *text, char **ret, struct piece **ret_pieces, size_t *ret_n);
void edits_done(struct edits *edits);

#endif
