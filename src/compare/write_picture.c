/* SPDX-License-Identifier: MIT */
/* write_picture.c - a comparison as a flame graph: its tree of stacks, with each estimate. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "src/compare/format.h"
#include "src/compare/stats.h"
#include "src/export/export.h"

static void format_value(const void *data, double value, char *to, size_t n_bytes)
{
	const struct compare *compare = data;

	compare_format(compare, compare->options.per == PER_REST ? stats_odds(value) : value, to, n_bytes);
}

/* For odds, use the change of shares, because boxes must add up. */
static double change_of(const struct compare *compare, double base, double head)
{
	if (compare->options.per == PER_REST) {
		base = stats_odds(base);
		head = stats_odds(head);
	}
	if (isinf(base) || isinf(head))
		return NAN;
	return base > 0 ? head / base - 1 : INFINITY;
}

static void fill_boxes(const struct compare *compare, struct diff_box *boxes)
{
	boxes[0] = (struct diff_box){ .name = "all", .place = "", .is_known = compare->whole.is_known };
	for (size_t i = 0; i < compare->n_nodes; i++) {
		const struct compare_function *function = &compare->functions[compare->nodes[i].function];

		if (i > 0)
			boxes[i] = (struct diff_box){ .parent = compare->nodes[i].parent,
						      .name = function->name,
						      .place = function->place };
		boxes[i].base = compare->means[SIDE_BASE][i];
		boxes[i].head = compare->means[SIDE_HEAD][i];
		boxes[i].change = change_of(compare, boxes[i].base, boxes[i].head);
	}
	for (size_t i = 0; i < compare->n_stacks; i++) {
		struct diff_box *box = &boxes[compare->stacks[i].node];

		box->is_known = compare->stacks[i].total.is_known;
		if (compare->stacks[i].total.has_no_rest)
			box->change = NAN;
	}
	if (!compare_has_whole(compare))
		boxes[0].change = NAN;
}

/* "10 runs of base.db against 10 runs of head.db · time in a run". For free(3). */
static char *make_note(const struct compare *compare)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return NULL;
	print_runs(compare, SIDE_HEAD, out);
	fputs(" against ", out);
	print_runs(compare, SIDE_BASE, out);
	fprintf(out, " · %s", compare_quantity(compare));
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int write_picture(const struct compare *compare, const char *title, FILE *out,
			 int (*write)(const struct diff_picture *picture, FILE *out))
{
	CLEANUP(freep) struct diff_box *boxes = calloc(compare->n_nodes, sizeof *boxes);
	CLEANUP(freep) char *note = make_note(compare);
	struct diff_picture picture = { .boxes = boxes,
					.n_boxes = compare->n_nodes,
					.note = note,
					.title = title ? title : "What has changed",
					.format = format_value,
					.data = compare };

	if (!boxes || !note)
		return -ENOMEM;
	fill_boxes(compare, boxes);
	return write(&picture, out);
}

int compare_write_svg(const struct compare *compare, const char *title, FILE *out)
{
	return write_picture(compare, title, out, export_diff_svg);
}

int compare_write_html(const struct compare *compare, const char *title, FILE *out)
{
	return write_picture(compare, title, out, export_diff_html);
}
