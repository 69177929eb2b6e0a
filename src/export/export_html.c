/* SPDX-License-Identifier: MIT */
/* export_html.c - a flame graph as one HTML page, drawn by d3-flame-graph.
 *
 * The page contains its data, its style, its script and the licences of the bundled libraries; it fetches
 * nothing, and its policy forbids that. The build bundles the script (src/export/html).
 */
#include <errno.h>

#include "base/text.h"
#include "base/util.h"
#include "src/export/export.h"
#include "src/export/html_page.h"

extern const char html_script[], html_style[], html_licences[];

void html_boxes_done(struct html_boxes *boxes)
{
	free(boxes->node_of);
	free(boxes->box_of);
}

uint32_t html_box_caller(const struct html_boxes *boxes, uint32_t box)
{
	return boxes->box_of[boxes->tree->nodes[boxes->node_of[box]].parent];
}

static void number_boxes(struct html_boxes *boxes)
{
	const struct call_tree *tree = boxes->tree;
	uint32_t at = 0;

	for (size_t i = 0; i < tree->n_nodes; i++)
		boxes->box_of[i] = UINT32_MAX;
	do {
		bool is_drawn = drawn_has(&boxes->drawn, at);

		if (is_drawn) {
			boxes->box_of[at] = (uint32_t)boxes->n;
			boxes->node_of[boxes->n++] = at;
		}
		at = call_tree_next(tree, at, is_drawn);
	} while (at != 0);
	for (size_t i = 1; i < tree->n_nodes; i++)
		if (boxes->box_of[i] == UINT32_MAX)
			boxes->box_of[i] = boxes->box_of[tree->nodes[i].parent];
}

int html_boxes_init(const struct call_tree *tree, struct html_boxes *ret)
{
	CLEANUP(html_boxes_done) struct html_boxes boxes = { .tree = tree };

	drawn_measure(tree, HTML_MAX_DEPTH, &boxes.drawn);
	boxes.node_of = calloc(boxes.drawn.n, sizeof *boxes.node_of);
	boxes.box_of = calloc(tree->n_nodes, sizeof *boxes.box_of);
	if (!boxes.node_of || !boxes.box_of)
		return -ENOMEM;
	number_boxes(&boxes);
	*ret = boxes;
	boxes = (struct html_boxes){ 0 };
	return 0;
}

void html_put_begin(const char *title, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\""
	      " content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
	      out);
	text_put_xml(out, title);
	fprintf(out,
		"</title>\n<style>\n%s</style>\n</head>\n<body>\n"
		"<noscript>This flame graph is drawn by a script. A picture that needs none: --format svg</noscript>\n"
		"<script type=\"application/json\" id=\"profile\">\n",
		html_style);
}

void html_put_end(FILE *out)
{
	fprintf(out, "</script>\n<script>\n%s</script>\n", html_script);
	fputs("<script type=\"text/plain\" id=\"licences\">\nThe script above is bundled from these packages:\n\n",
	      out);
	fprintf(out, "%s</script>\n</body>\n</html>\n", html_licences);
}

static int write_html(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(call_tree_freep) struct call_tree *tree = NULL;
	CLEANUP(fold_places_done) struct fold_places places = { 0 };
	CLEANUP(html_boxes_done) struct html_boxes boxes = { 0 };
	CLEANUP(html_sums_done) struct html_sums sums = { 0 };
	CLEANUP(html_aspects_done) struct html_aspects aspects = { 0 };
	int r;

	r = fold_profile_places(profile, options, false, &places, &tree);
	if (r >= 0)
		r = html_boxes_init(tree, &boxes);
	if (r >= 0)
		r = html_sums_init(profile, &places, &boxes, options->inverted, &sums);
	if (r >= 0)
		r = html_aspects_init(profile, &places, &boxes, &sums, &aspects);
	if (r < 0)
		return r;
	html_put_begin(options->title && *options->title ? options->title : "Flame graph", out);
	r = html_put_profile(profile, &boxes, &sums, &aspects, options, out);
	if (r < 0)
		return r;
	html_put_end(out);
	return text_finish(out);
}

const char *html_lacks(void)
{
	if (html_script[0])
		return NULL;
	return "it was built without d3-flame-graph; with npm and a network, run 'meson setup --reconfigure "
	       "-Dhtml=enabled BUILD_FOLDER' and build again";
}

const struct exporter export_html = {
	.name = "html",
	.endings = ".html .htm",
	.summary =
		"flame graph as a page: search, zoom, threads, functions with callers and callees, colours by kind, module, verdict, GIL or waiting",
	.needs_samples = true,
	.lacks = html_lacks,
	.write = write_html,
};
