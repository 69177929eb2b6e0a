/* SPDX-License-Identifier: MIT */
/* drawn.h - which nodes of a call tree a picture has room for. */
#ifndef PROBING_EXPORT_DRAWN_H
#define PROBING_EXPORT_DRAWN_H

#include "src/export/tree.h"

/*
 * Boxes below 1/20000 of the whole are left out, since nothing could be seen of them before a very deep zoom;
 * where more than a browser handles well remain, the limit rises, but never above about a pixel.
 */
struct drawn {
	const struct call_tree *tree;
	bool by_weight;          /* widths are weights; otherwise, for want of them, samples */
	uint64_t all;            /* what the full width stands for */
	uint64_t smallest_share; /* what is less than one of so many is left out */
	uint32_t most_depth;     /* and what is deeper */
	uint32_t max_depth;      /* of what is drawn */
	size_t n;
	size_t n_left_out; /* but those that call_tree_finish() left out */
	size_t n_too_deep; /* of these */
};

/* @most_depth: 0: any. @ret borrows the tree. */
void drawn_measure(const struct call_tree *tree, uint32_t most_depth, struct drawn *ret);
uint64_t drawn_value(const struct drawn *drawn, uint32_t node);
bool drawn_has(const struct drawn *drawn, uint32_t node); /* then also its caller */

#endif
