/* SPDX-License-Identifier: MIT */
/* export_svg.c - a flame graph as one self-contained SVG picture.
 *
 * Callers are below their callees, the width of a box is its share of the
 * time, and children are in order of their names. The picture is complete
 * without its script (svg_script.js), which adds zoom, search and details.
 *
 * drawn.h chooses the boxes that are large enough; the number of omitted ones is under
 * the title. Their time remains visible as width of their callers.
 *
 * Positions are integers in 1/10000 of a pixel, so that neighbours meet
 * exactly and the output does not depend on the locale.
 */
#include <errno.h>

#include "base/text.h"
#include "base/util.h"
#include "src/export/drawn.h"
#include "src/export/export.h"
#include "src/export/fold.h"

extern const char svg_script[], svg_style[];

enum {
	WIDTH = 1200,
	MARGIN = 10,
	HEAD_HEIGHT = 56,
	BOX_HEIGHT = 16,
	BOX_PITCH = 17,
	BASELINE = 12, /* of a box's text, from the box's top */
	PADDING = 3,
	MIN_COLUMNS = 3,
	LEGEND_STEP = 84,
	N_SHADES = 8,
	PIXEL = 10000,
	COLUMN = 66300, /* width of a character in an 11 pixel monospaced font */
};

/* Class letters in svg_style.css. */
static const char kinds[LABEL_N_KINDS] = {
	[LABEL_PYTHON] = 'p', [LABEL_BUILTIN] = 'b', [LABEL_NATIVE] = 'n', [LABEL_KERNEL] = 'k',
	[LABEL_TASK] = 'g',   [LABEL_WAIT] = 'w',    [LABEL_GROUP] = 'g',
};

struct picture {
	const struct call_tree *tree;
	struct drawn drawn;
	FILE *out;
	const char *unit; /* unit of weights; NULL: time */
	bool inverted;    /* leaves at the root */
	bool has_kind[LABEL_N_KINDS];
	uint64_t *starts; /* by depth: start of the box */
};

/* A value's share of the whole, in units of 1/@of. */
static uint64_t share(const struct picture *picture, uint64_t value, uint64_t of)
{
	if (picture->drawn.all == 0)
		return of;
	return (uint64_t)((unsigned __int128)value * of / picture->drawn.all);
}

static void measure(struct picture *picture)
{
	const struct call_tree *tree = picture->tree;

	drawn_measure(tree, 0, &picture->drawn);
	for (size_t i = 0; i < tree->n_nodes; i++)
		if (drawn_has(&picture->drawn, (uint32_t)i))
			picture->has_kind[call_tree_label(tree, (uint32_t)i)->kind] = true;
}

static unsigned shade_of(const char *name)
{
	uint64_t hash = 0;

	while (*name)
		hash = mix64(hash ^ (uint8_t)*name++);
	return (unsigned)(hash % N_SHADES);
}

static void put_amount(const struct picture *picture, uint64_t samples, uint64_t weight)
{
	fprintf(picture->out, "%ju sample%s", (uintmax_t)samples, samples == 1 ? "" : "s");
	if (picture->drawn.by_weight && picture->unit) {
		fprintf(picture->out, " · %ju ", (uintmax_t)weight);
		text_put_xml(picture->out, picture->unit);
	} else if (picture->drawn.by_weight) {
		fputs(" · ", picture->out);
		text_put_fixed(picture->out, (weight + 500000) / 1000000, 3);
		fputs(" s", picture->out);
	}
}

/* "file:first-last · module" as far as known, on its own line. */
static void put_place(FILE *out, const struct label *label)
{
	if (!label->file && !label->module)
		return;
	fputc('\n', out);
	if (label->file)
		text_put_xml(out, label->file);
	if (label->file && label->first_line > 0)
		fprintf(out, ":%d", label->first_line);
	if (label->file && label->last_line > label->first_line)
		fprintf(out, "–%d", label->last_line);
	if (label->file && label->module)
		fputs(" · ", out);
	if (label->module)
		text_put_xml(out, label->module);
}

static void put_tooltip(const struct picture *picture, uint32_t node)
{
	const struct label *label = call_tree_label(picture->tree, node);
	const struct node *it = &picture->tree->nodes[node];

	fputs("<title>", picture->out);
	text_put_xml(picture->out, label->text);
	put_place(picture->out, label);
	fputc('\n', picture->out);
	text_put_fixed(picture->out, share(picture, drawn_value(&picture->drawn, node), 10000), 2);
	fputs(" % · ", picture->out);
	put_amount(picture, it->samples, it->weight);
	fputs("</title>", picture->out);
}

static void put_box(const struct picture *picture, uint32_t node, uint64_t start)
{
	const uint64_t full = (uint64_t)(WIDTH - 2 * MARGIN) * PIXEL;
	const struct label *label = call_tree_label(picture->tree, node);
	uint64_t x = share(picture, start, full);
	uint64_t width = share(picture, start + drawn_value(&picture->drawn, node), full) - x;
	uint32_t level = picture->drawn.max_depth - picture->tree->nodes[node].depth;
	FILE *out = picture->out;
	unsigned columns = 0;

	if (node == 0) { /* also without any samples */
		x = 0;
		width = full;
	}
	if (width > 2 * PADDING * PIXEL)
		columns = (unsigned)((width - 2 * PADDING * PIXEL) / COLUMN);
	fputs("<g>", out);
	put_tooltip(picture, node);
	fprintf(out, "<rect class=\"%c%u\" x=\"", kinds[label->kind], shade_of(label->text));
	text_put_fixed(out, x + MARGIN * PIXEL, 4);
	fprintf(out, "\" y=\"%u\" width=\"", HEAD_HEIGHT + level * BOX_PITCH);
	text_put_fixed(out, width, 4);
	fprintf(out, "\" height=\"%d\" rx=\"1.5\"/>", BOX_HEIGHT);
	if (columns >= MIN_COLUMNS) {
		fputs("<text x=\"", out);
		text_put_fixed(out, (x + (MARGIN + PADDING) * PIXEL) / 1000, 1);
		fprintf(out, "\" y=\"%u\">", HEAD_HEIGHT + level * BOX_PITCH + BASELINE);
		text_put_xml_cut(out, label->text, columns);
		fputs("</text>", out);
	}
	fputs("</g>\n", out);
}

/*
 * Children are adjacent from their caller's left edge; the rest at the right is the caller's self time. starts[d] is
 * the start of the next box at depth d.
 */
static int put_boxes(struct picture *picture)
{
	const struct call_tree *tree = picture->tree;
	uint32_t at = 0;

	picture->starts = calloc((size_t)picture->drawn.max_depth + 2, sizeof *picture->starts);
	if (!picture->starts)
		return -ENOMEM;
	fputs("<g class=\"frames\">\n", picture->out);
	do {
		uint32_t depth = tree->nodes[at].depth;
		bool drawn = drawn_has(&picture->drawn, at);

		if (drawn) {
			put_box(picture, at, picture->starts[depth]);
			picture->starts[depth + 1] = picture->starts[depth];
		}
		picture->starts[depth] += drawn_value(&picture->drawn, at);
		at = call_tree_next(tree, at, drawn);
	} while (at != 0);
	fputs("</g>\n", picture->out);
	return 0;
}

static void put_legend(const struct picture *picture)
{
	FILE *out = picture->out;
	int n = 0;

	fputs("<g class=\"legend\">", out);
	for (int kind = LABEL_N_KINDS; kind-- > 0;) {
		int x;

		if (!picture->has_kind[kind] || !label_kind_name((enum label_kind)kind))
			continue;
		x = WIDTH - MARGIN - LEGEND_STEP * ++n + 22;
		fprintf(out, "<rect class=\"%c3\" x=\"%d\" y=\"12\"", kinds[kind], x);
		fputs(" width=\"12\" height=\"12\" rx=\"2\"/>", out);
		fprintf(out, "<text x=\"%d\" y=\"22\">%s</text>", x + 16, label_kind_name((enum label_kind)kind));
	}
	fputs("</g>\n", out);
}

static void put_head(const struct picture *picture, const char *title)
{
	const struct node *root = &picture->tree->nodes[0];
	FILE *out = picture->out;

	fprintf(out, "<g class=\"head\"><rect class=\"page\" width=\"100%%\" height=\"%d\"/>\n", HEAD_HEIGHT - 2);
	fprintf(out, "<text class=\"name\" x=\"%d\" y=\"24\">", MARGIN);
	text_put_xml_cut(out, title, 70);
	fprintf(out, "</text>\n<text class=\"note\" x=\"%d\" y=\"44\">", MARGIN);
	put_amount(picture, root->samples, root->weight);
	if (picture->drawn.n_left_out > 0) {
		fprintf(out, " · %zu boxes below ", picture->drawn.n_left_out);
		text_put_fixed(out, 100000 / picture->drawn.smallest_share, 3);
		fputs(" % left out", out);
	}
	if (picture->inverted)
		fputs(" · callers are above their callees", out);
	fputs("</text>\n", out);
	put_legend(picture);
	fputs("</g>\n", out);
}

static int put_document(struct picture *picture, const char *title)
{
	unsigned height = HEAD_HEIGHT + (picture->drawn.max_depth + 1) * BOX_PITCH + MARGIN;
	FILE *out = picture->out;
	int r;

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\"", out);
	fprintf(out, " width=\"%d\" height=\"%u\"", WIDTH, height);
	fprintf(out, " viewBox=\"0 0 %d %u\">\n<title>", WIDTH, height);
	text_put_xml(out, title);
	fprintf(out, "</title>\n<style>\n%s</style>\n", svg_style);
	fputs("<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n", out);
	r = put_boxes(picture);
	if (r < 0)
		return r;
	put_head(picture, title);
	fprintf(out, "<script><![CDATA[\n%s]]></script>\n</svg>\n", svg_script);
	return 0;
}

static int write_svg(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(call_tree_freep) struct call_tree *tree = NULL;
	struct picture picture = { .out = out, .unit = profile->unit, .inverted = options->inverted };
	int r;

	r = fold_profile(profile, options, false, &tree);
	if (r < 0)
		return r;
	picture.tree = tree;
	measure(&picture);
	r = put_document(&picture, options->title && *options->title ? options->title : "Flame graph");
	free(picture.starts);
	if (r < 0)
		return r;
	return text_finish(out);
}

const struct exporter export_svg = {
	.name = "svg",
	.endings = ".svg",
	.summary = "flame graph with zoom and search, for any browser",
	.write = write_svg,
};
