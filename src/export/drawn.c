/* SPDX-License-Identifier: MIT */
/* drawn.c - see drawn.h. */
#include "src/export/drawn.h"

#include "base/util.h"

enum {
	SMALLEST_SHARE = 20000, /* of the whole: 1/20000 */
	SMALLEST_SHARE_OF_MANY = 1250,
	MANY_BOXES = 50000,
};

uint64_t drawn_value(const struct drawn *drawn, uint32_t node)
{
	const struct node *it = &drawn->tree->nodes[node];

	return drawn->by_weight ? it->weight : it->samples;
}

bool drawn_has(const struct drawn *drawn, uint32_t node)
{
	uint64_t value = drawn_value(drawn, node);

	if (node == 0)
		return true;
	return value > 0 && value >= drawn->all / drawn->smallest_share &&
	       drawn->tree->nodes[node].depth <= drawn->most_depth && !call_tree_is_small(drawn->tree, node);
}

static size_t count(const struct drawn *drawn)
{
	size_t n = 0;

	for (size_t i = 0; i < drawn->tree->n_nodes; i++)
		n += drawn_has(drawn, (uint32_t)i);
	return n;
}

void drawn_measure(const struct call_tree *tree, uint32_t most_depth, struct drawn *ret)
{
	struct drawn drawn = {
		.tree = tree,
		.by_weight = tree->nodes[0].weight > 0,
		.smallest_share = SMALLEST_SHARE,
		.most_depth = most_depth > 0 ? most_depth : UINT32_MAX,
	};

	drawn.all = drawn_value(&drawn, 0);
	drawn.n = count(&drawn);
	while (drawn.n > MANY_BOXES && drawn.smallest_share > SMALLEST_SHARE_OF_MANY) {
		drawn.smallest_share /= 2;
		drawn.n = count(&drawn);
	}
	for (size_t i = 0; i < tree->n_nodes; i++) {
		if (drawn_has(&drawn, (uint32_t)i)) {
			drawn.max_depth = MAX(drawn.max_depth, tree->nodes[i].depth);
		} else if (!call_tree_is_small(tree, (uint32_t)i)) {
			drawn.n_left_out++;
			drawn.n_too_deep += tree->nodes[i].depth > drawn.most_depth;
		}
	}
	*ret = drawn;
}
