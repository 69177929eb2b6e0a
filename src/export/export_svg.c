/* export_svg.c - a flame graph as one self-contained SVG picture.
 *
 * Callers stand below what they call, the width of a box is its share of the
 * time, and children stand in order of their names. The picture is complete
 * without its script (svg_script.js), which adds zoom, search and details.
 *
 * Boxes below 1/20000 of the whole are left out, since nothing could be seen
 * of them before a very deep zoom; where more than a browser handles well
 * remain, the limit rises, but never above about a pixel. How many are left
 * out is said under the title. Their time stays visible as width of their
 * callers.
 *
 * Positions are integers in 1/10000 of a pixel, so that neighbours meet
 * exactly and the output does not depend on the locale.
 */
#include <errno.h>

#include "base/util.h"
#include "src/export/export.h"
#include "src/export/fold.h"
#include "src/export/text.h"

extern const char svg_script[], svg_style[];

enum {
	WIDTH = 1200,
	MARGIN = 10,
	HEAD_HEIGHT = 56,
	BOX_HEIGHT = 16,
	BOX_PITCH = 17,
	BASELINE = 12, /* of a box's text, from its top */
	PADDING = 3,
	MIN_COLUMNS = 3,
	LEGEND_STEP = 84,
	N_SHADES = 8,
	PIXEL = 10000,
	COLUMN = 66300, /* width of a character of the 11 pixel monospaced font */
	SMALLEST_SHARE = 20000, /* one of so many */
	SMALLEST_SHARE_OF_MANY = 1250,
	MANY_BOXES = 50000,
};

static const struct {
	char class;
	const char *name;
} kinds[LABEL_N_KINDS] = {
	[LABEL_PYTHON] = { 'p', "Python" },
	[LABEL_BUILTIN] = { 'b', "builtin" },
	[LABEL_NATIVE] = { 'n', "native" },
	[LABEL_KERNEL] = { 'k', "kernel" },
	[LABEL_TASK] = { 'g', "task" },
	[LABEL_WAIT] = { 'w', "waiting" },
	[LABEL_GROUP] = { 'g', NULL },
};

struct picture {
	const struct call_tree *tree;
	FILE *out;
	bool by_weight; /* widths are weights; otherwise, for want of them, samples */
	const char *unit; /* of weights, where they are not time; NULL: they are */
	uint64_t all;   /* what the full width stands for */
	uint64_t smallest_share; /* boxes of less than one of so many are left out */
	uint32_t max_depth;
	size_t n_left_out;
	bool has_kind[LABEL_N_KINDS];
	uint64_t *starts; /* by depth: where the box there begins */
};

static uint64_t node_value(const struct picture *picture, uint32_t node)
{
	const struct node *it = &picture->tree->nodes[node];

	return picture->by_weight ? it->weight_ns : it->samples;
}

static bool is_drawn(const struct picture *picture, uint32_t node)
{
	uint64_t value = node_value(picture, node);

	return node == 0 || (value > 0 && value >= picture->all / picture->smallest_share);
}

/* What part of the whole a value is, in units of 1/@of. */
static uint64_t share(const struct picture *picture, uint64_t value, uint64_t of)
{
	if (picture->all == 0)
		return of;
	return (uint64_t)((unsigned __int128)value * of / picture->all);
}

static size_t count_boxes(const struct picture *picture)
{
	size_t n = 0;

	for (size_t i = 0; i < picture->tree->n_nodes; i++)
		n += is_drawn(picture, (uint32_t)i);
	return n;
}

static void measure(struct picture *picture)
{
	const struct call_tree *tree = picture->tree;

	picture->by_weight = tree->nodes[0].weight_ns > 0;
	picture->all = node_value(picture, 0);
	picture->smallest_share = SMALLEST_SHARE;
	while (picture->smallest_share > SMALLEST_SHARE_OF_MANY && count_boxes(picture) > MANY_BOXES)
		picture->smallest_share /= 2;
	for (size_t i = 0; i < tree->n_nodes; i++) {
		if (!is_drawn(picture, (uint32_t)i)) {
			picture->n_left_out++;
			continue;
		}
		picture->max_depth = MAX(picture->max_depth, tree->nodes[i].depth);
		picture->has_kind[call_tree_label(tree, (uint32_t)i)->kind] = true;
	}
}

static unsigned shade_of(const char *name)
{
	uint64_t hash = 0;

	while (*name)
		hash = mix64(hash ^ (uint8_t)*name++);
	return (unsigned)(hash % N_SHADES);
}

static void put_amount(const struct picture *picture, uint64_t samples, uint64_t weight_ns)
{
	fprintf(picture->out, "%ju sample%s", (uintmax_t)samples, samples == 1 ? "" : "s");
	if (picture->by_weight && picture->unit) {
		fprintf(picture->out, " · %ju ", (uintmax_t)weight_ns);
		text_put_xml(picture->out, picture->unit);
	} else if (picture->by_weight) {
		fputs(" · ", picture->out);
		text_put_fixed(picture->out, (weight_ns + 500000) / 1000000, 3);
		fputs(" s", picture->out);
	}
}

/* "file:first-last · module", as far as known; a line of its own. */
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
	text_put_fixed(picture->out, share(picture, node_value(picture, node), 10000), 2);
	fputs(" % · ", picture->out);
	put_amount(picture, it->samples, it->weight_ns);
	fputs("</title>", picture->out);
}

static void put_box(const struct picture *picture, uint32_t node, uint64_t start)
{
	const uint64_t full = (uint64_t)(WIDTH - 2 * MARGIN) * PIXEL;
	const struct label *label = call_tree_label(picture->tree, node);
	uint64_t x = share(picture, start, full);
	uint64_t width = share(picture, start + node_value(picture, node), full) - x;
	uint32_t level = picture->max_depth - picture->tree->nodes[node].depth;
	FILE *out = picture->out;
	unsigned columns = 0;

	if (node == 0) { /* also where there is no sample at all */
		x = 0;
		width = full;
	}
	if (width > 2 * PADDING * PIXEL)
		columns = (unsigned)((width - 2 * PADDING * PIXEL) / COLUMN);
	fputs("<g>", out);
	put_tooltip(picture, node);
	fprintf(out, "<rect class=\"%c%u\" x=\"", kinds[label->kind].class, shade_of(label->text));
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
 * Children stand side by side from their caller's left edge; what is left
 * over at the right is the caller's own time. starts[d] is where the next
 * box at depth d begins.
 */
static int put_boxes(struct picture *picture)
{
	const struct call_tree *tree = picture->tree;
	uint32_t at = 0;

	picture->starts = calloc((size_t)picture->max_depth + 2, sizeof *picture->starts);
	if (!picture->starts)
		return -ENOMEM;
	fputs("<g class=\"frames\">\n", picture->out);
	do {
		uint32_t depth = tree->nodes[at].depth;
		bool drawn = is_drawn(picture, at);

		if (drawn) {
			put_box(picture, at, picture->starts[depth]);
			picture->starts[depth + 1] = picture->starts[depth];
		}
		picture->starts[depth] += node_value(picture, at);
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

		if (!picture->has_kind[kind] || !kinds[kind].name)
			continue;
		x = WIDTH - MARGIN - LEGEND_STEP * ++n + 22;
		fprintf(out, "<rect class=\"%c3\" x=\"%d\" y=\"12\"", kinds[kind].class, x);
		fputs(" width=\"12\" height=\"12\" rx=\"2\"/>", out);
		fprintf(out, "<text x=\"%d\" y=\"22\">%s</text>", x + 16, kinds[kind].name);
	}
	fputs("</g>\n", out);
}

static void put_head(const struct picture *picture, const char *title)
{
	const struct node *root = &picture->tree->nodes[0];
	FILE *out = picture->out;

	fprintf(out, "<g class=\"head\"><rect class=\"page\" width=\"100%%\" height=\"%d\"/>\n",
		HEAD_HEIGHT - 2);
	fprintf(out, "<text class=\"name\" x=\"%d\" y=\"24\">", MARGIN);
	text_put_xml_cut(out, title, 70);
	fprintf(out, "</text>\n<text class=\"note\" x=\"%d\" y=\"44\">", MARGIN);
	put_amount(picture, root->samples, root->weight_ns);
	if (picture->n_left_out > 0) {
		fprintf(out, " · %zu boxes below ", picture->n_left_out);
		text_put_fixed(out, 100000 / picture->smallest_share, 3);
		fputs(" % left out", out);
	}
	fputs("</text>\n", out);
	put_legend(picture);
	fputs("</g>\n", out);
}

static int put_document(struct picture *picture, const char *title)
{
	unsigned height = HEAD_HEIGHT + (picture->max_depth + 1) * BOX_PITCH + MARGIN;
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
	struct picture picture = { .out = out, .unit = profile->unit };
	int r;

	r = fold_profile(profile, options, false, &tree);
	if (r < 0)
		return r;
	picture.tree = tree;
	measure(&picture);
	r = put_document(&picture,
			 options->title && *options->title ? options->title : "Flame graph");
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
