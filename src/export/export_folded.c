/* SPDX-License-Identifier: MIT */
/* export_folded.c - one line per stack: "outer;inner;leaf 12".
 *
 * The number is time, in microseconds, or a number of events, if samples have different weights; else it counts
 * samples. The format of Brendan Gregg's stackcollapse scripts, which flamegraph.pl,
 * inferno, speedscope and many others read. Lines are sorted frame by frame.
 *
 * The line under construction always ends with the current node, so a node
 * costs its own text only, however deep it lies.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/export/export.h"
#include "src/export/fold.h"

enum { NS_IN_US = 1000 };

struct line {
	char *text;
	size_t allocated;
	size_t *ends; /* ends[d]: length of the line up to depth d */
	size_t ends_allocated;
};

static void line_done(struct line *line)
{
	free(line->text);
	free(line->ends);
}

/* Set the frame at a depth >= 1, and drop deeper ones. */
static int line_set(struct line *line, uint32_t depth, const char *name)
{
	size_t start = depth > 1 ? line->ends[depth - 1] + 1 : 0;
	size_t n_bytes = strlen(name);
	int r;

	r = grow(&line->text, start + n_bytes, &line->allocated, 1);
	if (r < 0)
		return r;
	r = grow(&line->ends, depth, &line->ends_allocated, sizeof *line->ends);
	if (r < 0)
		return r;
	if (start > 0)
		line->text[start - 1] = ';';
	memcpy(line->text + start, name, n_bytes);
	line->ends[depth] = start + n_bytes;
	return 0;
}

/* The weight that counts as 1; 0: count samples. */
static uint64_t scale_of(const struct profile *profile)
{
	if (!profile_weights_differ(profile))
		return 0;
	return profile->unit ? 1 : NS_IN_US;
}

/* A node's self value. Rounding errors carry over, so that the sum is right. @sum: of the weights before it. */
static uint64_t own_value(const struct call_tree *tree, uint32_t node, uint64_t scale, uint64_t *sum)
{
	uint64_t before = *sum;

	if (scale == 0)
		return call_tree_self_samples(tree, node);
	*sum += call_tree_self_weight(tree, node);
	return (*sum + scale / 2) / scale - (before + scale / 2) / scale;
}

static int write_lines(const struct call_tree *tree, uint64_t scale, FILE *out)
{
	CLEANUP(line_done) struct line line = {};
	uint64_t sum = 0;
	int r;

	for (uint32_t at = call_tree_next(tree, 0, true); at != 0; at = call_tree_next(tree, at, true)) {
		uint32_t depth = tree->nodes[at].depth;
		uint64_t value = own_value(tree, at, scale, &sum);

		r = line_set(&line, depth, call_tree_label(tree, at)->text);
		if (r < 0)
			return r;
		if (value == 0)
			continue;
		fwrite(line.text, 1, line.ends[depth], out);
		fprintf(out, " %ju\n", (uintmax_t)value);
	}
	return 0;
}

static int write_folded(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(call_tree_freep) struct call_tree *tree = NULL;
	int r;

	r = fold_profile(profile, options, true, &tree);
	if (r < 0)
		return r;
	r = write_lines(tree, scale_of(profile), out);
	if (r < 0)
		return r;
	return text_finish(out);
}

const struct exporter export_folded = {
	.name = "folded",
	.endings = ".folded .collapsed",
	.summary = "one line per stack with its time (samples if all weigh the same), for flamegraph.pl and others",
	.write = write_folded,
};
