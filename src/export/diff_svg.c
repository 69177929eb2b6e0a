/* SPDX-License-Identifier: MIT */
/*
 * diff_svg.c - a flame graph of two measurements, as one self-contained SVG picture.
 *
 * The width of a box is its time in head, so that the picture shows the present; its colour shows the difference
 * from base: red and + more, blue, striped and − less, the stronger the more, and pale if it may be chance. A function
 * that head lacks has no box: the note has its time. Script and style are those of the other flame graph
 * (export_svg.c).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/export/diff_format.h"

extern const char svg_script[], svg_style[];

enum {
	WIDTH = 1200,
	MARGIN = 10,
	HEAD_HEIGHT = 56,
	BOX_HEIGHT = 16,
	BOX_PITCH = 17,
	PADDING = 3,
	MIN_COLUMNS = 3,
	SIGN_COLUMNS = 2,
	PIXEL = 10000,  /* integer positions: neighbours touch, and locales do not matter */
	COLUMN = 66300, /* width of a character in an 11 pixel monospaced font */
	LEGEND_STEP = 26,
};

/* From unchanged to the strongest change. Decreases have stripes, because not everyone distinguishes hues. */
static const char diff_style[] =
	".flame .d0 { fill: #e6e6e6; }\n"
	".flame .m1 { fill: #fde3dd; } .flame .m2 { fill: #f9c8be; } .flame .m3 { fill: #f5a799; }\n"
	".flame .m4 { fill: #ef8273; } .flame .m5 { fill: #e8604f; }\n"
	".flame .c1 { fill: #dfebf8; } .flame .c2 { fill: #c3daf3; } .flame .c3 { fill: #a3c6ed; }\n"
	".flame .c4 { fill: #83b2e6; } .flame .c5 { fill: #5b9ade; }\n"
	".flame .l1 { fill: url(#less1); } .flame .l2 { fill: url(#less2); } .flame .l3 { fill: url(#less3); }\n"
	".flame .l4 { fill: url(#less4); } .flame .l5 { fill: url(#less5); }\n"
	".flame .stripe { fill: #fff; fill-opacity: .4; }\n"
	".flame .chance { fill-opacity: .5; }\n"
	"@media (prefers-color-scheme: dark) {\n"
	".flame .d0 { fill: #3a3f46; }\n"
	".flame .m1 { fill: #46302d; } .flame .m2 { fill: #613530; } .flame .m3 { fill: #7e3a32; }\n"
	".flame .m4 { fill: #9b3c31; } .flame .m5 { fill: #b83a2c; }\n"
	".flame .c1 { fill: #263548; } .flame .c2 { fill: #263f60; } .flame .c3 { fill: #274c7b; }\n"
	".flame .c4 { fill: #285a98; } .flame .c5 { fill: #2a69b8; }\n"
	".flame .stripe { fill: #000; }\n}\n";

struct layout {
	const struct diff_picture *picture;
	FILE *out;
	uint32_t *first_child, *next_sibling; /* by box; 0: none */
	uint32_t *depth;
	double *starts; /* by box: start, in its unit */
	uint32_t max_depth;
};

static void layout_done(struct layout *layout)
{
	free(layout->first_child);
	free(layout->next_sibling);
	free(layout->depth);
	free(layout->starts);
}

static int compare_boxes(const void *a, const void *b, void *context)
{
	const struct diff_box *boxes = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int order = strcmp(boxes[left].name, boxes[right].name);

	if (order == 0)
		order = strcmp(boxes[left].place, boxes[right].place);
	return order != 0 ? order : left < right ? -1 : left > right;
}

/* Sort siblings by name: insert each in front, from the last name to the first. */
static int link_boxes(struct layout *layout)
{
	const struct diff_picture *picture = layout->picture;
	CLEANUP(freep) uint32_t *order = calloc(picture->n_boxes, sizeof *order);

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < picture->n_boxes; i++)
		order[i] = (uint32_t)i;
	qsort_r(order + 1, picture->n_boxes - 1, sizeof *order, compare_boxes, (void *)picture->boxes);
	for (size_t i = picture->n_boxes; i-- > 1;) {
		uint32_t parent = picture->boxes[order[i]].parent;

		if (parent >= order[i])
			return -EINVAL;
		layout->next_sibling[order[i]] = layout->first_child[parent];
		layout->first_child[parent] = order[i];
	}
	return 0;
}

static void place_boxes(struct layout *layout)
{
	const struct diff_box *boxes = layout->picture->boxes;

	for (uint32_t box = 0; box < layout->picture->n_boxes; box++) {
		double start = layout->starts[box];

		if (diff_is_drawn(layout->picture, box))
			layout->max_depth = MAX(layout->max_depth, layout->depth[box]);
		for (uint32_t child = layout->first_child[box]; child != 0; child = layout->next_sibling[child]) {
			layout->starts[child] = start;
			layout->depth[child] = layout->depth[box] + 1;
			start += boxes[child].head;
		}
	}
}

/* Position in 1/PIXEL from the left edge of all boxes. */
static uint64_t position(const struct layout *layout, double value)
{
	const double full = (double)(WIDTH - 2 * MARGIN) * PIXEL;
	double all = layout->picture->boxes[0].head, at = all > 0 ? value / all * full : 0;

	return (uint64_t)llround(MIN(MAX(at, 0), full));
}

/* Class such as "d0", "m3", "l1". */
static void put_class(const struct layout *layout, const struct diff_box *box)
{
	int shade = diff_shade(box);

	fprintf(layout->out, "%c%d", shade == 0 ? 'd' : shade > 0 ? 'm' : 'l', abs(shade));
	if (!box->is_known)
		fputs(" chance", layout->out);
}

static void put_tooltip(const struct layout *layout, const struct diff_box *box)
{
	fputs("<title>", layout->out);
	text_put_xml(layout->out, box->name);
	if (box->place[0]) {
		fputc('\n', layout->out);
		text_put_xml(layout->out, box->place);
	}
	fputc('\n', layout->out);
	diff_write_change(layout->picture, box, layout->out);
	fputs("</title>", layout->out);
}

static void put_box(const struct layout *layout, uint32_t at)
{
	const struct diff_box *box = &layout->picture->boxes[at];
	uint64_t x = position(layout, layout->starts[at]);
	uint64_t width = position(layout, layout->starts[at] + box->head) - x;
	unsigned y = HEAD_HEIGHT + (layout->max_depth - layout->depth[at]) * BOX_PITCH;
	unsigned columns = width > 2 * PADDING * PIXEL ? (unsigned)((width - 2 * PADDING * PIXEL) / COLUMN) : 0;
	FILE *out = layout->out;

	fputs("<g>", out);
	put_tooltip(layout, box);
	fputs("<rect class=\"", out);
	put_class(layout, box);
	fputs("\" x=\"", out);
	text_put_fixed(out, x + MARGIN * PIXEL, 4);
	fprintf(out, "\" y=\"%u\" width=\"", y);
	text_put_fixed(out, width, 4);
	fprintf(out, "\" height=\"%d\" rx=\"1.5\"/>", BOX_HEIGHT);
	if (columns >= MIN_COLUMNS) {
		int shade = diff_shade(box);

		fputs("<text x=\"", out);
		text_put_fixed(out, (x + (MARGIN + PADDING) * PIXEL) / 1000, 1);
		fprintf(out, "\" y=\"%u\">%s", y + 12, shade > 0 ? "+ " : shade < 0 ? "− " : "");
		text_put_xml_cut(out, box->name, shade == 0 ? columns : columns - SIGN_COLUMNS);
		fputs("</text>", out);
	}
	fputs("</g>\n", out);
}

/* Callers first, as the script expects. */
static void put_boxes(const struct layout *layout)
{
	uint32_t at = 0;

	fputs("<g class=\"frames\">\n", layout->out);
	for (;;) {
		bool drawn = diff_is_drawn(layout->picture, at);

		if (drawn)
			put_box(layout, at);
		if (drawn && layout->first_child[at] != 0) {
			at = layout->first_child[at];
			continue;
		}
		while (at != 0 && layout->next_sibling[at] == 0)
			at = layout->picture->boxes[at].parent;
		if (at == 0)
			break;
		at = layout->next_sibling[at];
	}
	fputs("</g>\n", layout->out);
}

static void put_patterns(FILE *out)
{
	fputs("<defs>\n", out);
	for (int i = 1; i <= DIFF_SHADES; i++)
		fprintf(out,
			"<pattern id=\"less%d\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
			"<rect class=\"c%d\" width=\"7\" height=\"7\"/><rect class=\"stripe\" width=\"2.5\" height=\"7\"/></pattern>\n",
			i, i);
	fputs("</defs>\n", out);
}

static void put_legend(FILE *out)
{
	const char *const words[] = { "− less", "+ more" };
	int left = WIDTH - MARGIN - LEGEND_STEP * (2 * DIFF_SHADES + 1) - 110;

	fprintf(out, "<g class=\"legend\"><text x=\"%d\" y=\"22\">%s</text>", left, words[0]);
	for (int i = -DIFF_SHADES; i <= DIFF_SHADES; i++)
		fprintf(out, "<rect class=\"%c%d\" x=\"%d\" y=\"12\" width=\"%d\" height=\"12\"/>",
			i < 0   ? 'l'
			: i > 0 ? 'm'
				: 'd',
			abs(i), left + 52 + (i + DIFF_SHADES) * LEGEND_STEP, LEGEND_STEP);
	fprintf(out, "<text x=\"%d\" y=\"22\">%s</text></g>\n", WIDTH - MARGIN - 50, words[1]);
}

static void put_head(const struct layout *layout)
{
	const struct diff_picture *picture = layout->picture;
	FILE *out = layout->out;

	fprintf(out, "<g class=\"head\"><rect class=\"page\" width=\"100%%\" height=\"%d\"/>\n", HEAD_HEIGHT - 2);
	fprintf(out, "<text class=\"name\" x=\"%d\" y=\"24\">", MARGIN);
	text_put_xml_cut(out, picture->title, 70);
	fprintf(out, "</text>\n<text class=\"note\" x=\"%d\" y=\"44\">", MARGIN);
	text_put_xml(out, picture->note);
	diff_write_removed(picture, out);
	fputs("</text>\n", out);
	put_legend(out);
	fputs("</g>\n", out);
}

static void put_document(const struct layout *layout)
{
	unsigned height = HEAD_HEIGHT + (layout->max_depth + 1) * BOX_PITCH + MARGIN;
	FILE *out = layout->out;

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\"",
	      out);
	fprintf(out, " width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\">\n<title>", WIDTH, height, WIDTH, height);
	text_put_xml(out, layout->picture->title);
	fprintf(out, "</title>\n<style>\n%s%s</style>\n<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n",
		svg_style, diff_style);
	put_patterns(out);
	put_boxes(layout);
	put_head(layout);
	fprintf(out, "<script><![CDATA[\n%s]]></script>\n</svg>\n", svg_script);
}

int export_diff_svg(const struct diff_picture *picture, FILE *out)
{
	CLEANUP(layout_done) struct layout layout = { .picture = picture, .out = out };
	int r;

	if (picture->n_boxes == 0)
		return -EINVAL;
	layout.first_child = calloc(picture->n_boxes, sizeof *layout.first_child);
	layout.next_sibling = calloc(picture->n_boxes, sizeof *layout.next_sibling);
	layout.depth = calloc(picture->n_boxes, sizeof *layout.depth);
	layout.starts = calloc(picture->n_boxes, sizeof *layout.starts);
	if (!layout.first_child || !layout.next_sibling || !layout.depth || !layout.starts)
		return -ENOMEM;
	r = link_boxes(&layout);
	if (r < 0)
		return r;
	place_boxes(&layout);
	put_document(&layout);
	return text_finish(out);
}
