/* SPDX-License-Identifier: MIT */
/* drawn.h - which nodes of a call tree a picture has room for. */
#ifndef PROBING_EXPORT_DRAWN_H
#define PROBING_EXPORT_DRAWN_H

#include "src/export/tree.h"

/*
 * Boxes below 1/20000 of the whole are omitted, since they would be visible only after a very deep zoom;
 * if more remain than a browser handles well, the limit rises, but never above about a pixel.
 */
struct drawn {
	const struct call_tree *tree;
	bool by_weight;          /* widths are weights; false: samples, because there are no weights */
	uint64_t all;            /* sum at the full width */
	uint64_t smallest_share; /* omit boxes below one of so many */
	uint32_t most_depth;     /* omit deeper boxes */
	uint32_t max_depth;      /* of the drawn boxes */
	size_t n;
	size_t n_left_out; /* but those that call_tree_finish() left out */
	size_t n_too_deep; /* of these */
};

/* @most_depth: 0: any. @ret borrows the tree. */
void drawn_measure(const struct call_tree *tree, uint32_t most_depth, struct drawn *ret);
uint64_t drawn_value(const struct drawn *drawn, uint32_t node);
bool drawn_has(const struct drawn *drawn, uint32_t node); /* then also its caller */

#endif
