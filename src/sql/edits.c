/* SPDX-License-Identifier: MIT */
/*
 * edits.c - applying changes to a text in one pass, with a map back.
 *
 * Changes are sorted by position. Insertions at one position appear in reverse order of the calls, so that a later one
 * encloses an earlier one.
 */
#include "src/sql/edits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/text.h"

static int add(struct edits *edits, size_t at, size_t n, char *instead)
{
	int r;

	if (!instead)
		return -ENOMEM;
	r = grow(&edits->items, edits->n, &edits->allocated, sizeof *edits->items);
	if (r < 0) {
		free(instead);
		return r;
	}
	edits->items[edits->n] = (struct edit){ at, n, instead, edits->n };
	edits->n++;
	return 0;
}

int edits_add(struct edits *edits, size_t at, size_t n, const char *instead)
{
	return add(edits, at, n, strdup(instead));
}

/* At the same position, insertions come first. */
static int compare(const void *a, const void *b)
{
	const struct edit *left = a, *right = b;

	if (left->at != right->at)
		return left->at < right->at ? -1 : 1;
	if ((left->n == 0) != (right->n == 0))
		return left->n == 0 ? -1 : 1;
	return left->order > right->order ? -1 : 1;
}

struct applying {
	struct sql_text out;
	struct piece *pieces;
	size_t n, allocated;
};

static int put(struct applying *applying, const char *bytes, size_t n, size_t from, int kind)
{
	int r;

	if (n == 0)
		return 0;
	r = grow(&applying->pieces, applying->n, &applying->allocated, sizeof *applying->pieces);
	if (r < 0)
		return r;
	applying->pieces[applying->n++] = (struct piece){ .to = applying->out.n, .from = from, .n = n, .kind = kind };
	return sql_text_put(&applying->out, bytes, n);
}

static int apply(struct applying *applying, const struct edits *edits, const char *text)
{
	size_t at = 0;
	int r = 0;

	for (size_t i = 0; i < edits->n && r == 0; i++) {
		const struct edit *edit = &edits->items[i];

		if (edit->at < at) /* inside a replaced part: skip */
			continue;
		r = put(applying, text + at, edit->at - at, at, PIECE_COPIED);
		if (r == 0)
			r = put(applying, edit->instead, strlen(edit->instead), edit->at, PIECE_PUT);
		at = edit->at + edit->n;
	}
	if (r == 0)
		r = put(applying, text + at, strlen(text + at), at, PIECE_COPIED);
	return r < 0 ? r : sql_text_put(&applying->out, "", 1); /* the NUL */
}

int edits_apply(struct edits *edits, const char *text, char **ret, struct piece **ret_pieces, size_t *ret_n)
{
	struct applying applying = { 0 };
	int r;

	if (edits->n > 1)
		qsort(edits->items, edits->n, sizeof *edits->items, compare);
	r = apply(&applying, edits, text);
	if (r < 0) {
		sql_text_done(&applying.out);
		free(applying.pieces);
		return r;
	}
	*ret = applying.out.bytes;
	*ret_pieces = applying.pieces;
	*ret_n = applying.n;
	return 0;
}

void edits_done(struct edits *edits)
{
	for (size_t i = 0; i < edits->n; i++)
		free(edits->items[i].instead);
	free(edits->items);
	*edits = (struct edits){ 0 };
}
