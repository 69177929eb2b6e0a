/* SPDX-License-Identifier: MIT */
/* html_page.h - declarations for the parts of the HTML flame graph. */
#ifndef PROBING_EXPORT_HTML_PAGE_H
#define PROBING_EXPORT_HTML_PAGE_H

#include "src/export/drawn.h"
#include "src/export/fold.h"

/* ---- The page around the data ---- */

enum { HTML_MAX_DEPTH = 2000 }; /* the library is recursive */

/* Up to the data, and from behind it on. */
void html_put_begin(const char *title, FILE *out);
void html_put_end(FILE *out);
/* A text of any bytes as JSON that ends no element. */
void html_put_string(FILE *out, const char *text);
/* NULL, or the library that the build lacks, and the command that changes that. */
const char *html_lacks(void);

/* ---- A profile ---- */

/* The boxes of a page, callers first. Omitted ones count for their caller. */
struct html_boxes {
	const struct call_tree *tree;
	struct drawn drawn;
	uint32_t *node_of; /* node of each box */
	uint32_t *box_of;  /* box of each node, or of its nearest caller that has one */
	size_t n;
};

/* html_boxes_init - @ret borrows the tree. -ENOMEM. */
int html_boxes_init(const struct call_tree *tree, struct html_boxes *ret);
void html_boxes_done(struct html_boxes *boxes);
uint32_t html_box_caller(const struct html_boxes *boxes, uint32_t box); /* 0 of box 0 */

/* Self time of a thread in a box; value: weights or, if boxes have none, samples. */
struct html_cell {
	uint32_t box;
	uint64_t value, samples;
};

/* Total time of a thread in a function, once for each sample that contains it. */
struct html_function {
	uint32_t label; /* of the tree */
	uint64_t self, total;
};

struct html_thread {
	const struct profile_thread *thread; /* borrowed; NULL: all remaining threads */
	size_t n_cells, n_functions;
};

/* Cells and functions are ordered by thread, cells by box within it. Ended with html_sums_done(). */
struct html_sums {
	struct html_thread *threads; /* heaviest first; many share the last one */
	struct html_cell *cells;
	struct html_function *functions;
	uint32_t *part_of; /* by thread of the profile, its index in threads; one more for totals without a thread */
	size_t n_threads, n_cells, n_functions;
};

/* html_sums_init - @inverted: the tree begins with leaves. -ENOMEM. */
int html_sums_init(const struct profile *profile, const struct fold_places *places, const struct html_boxes *boxes,
		   bool inverted, struct html_sums *ret);
void html_sums_done(struct html_sums *sums);
/* The cell of a thread of the profile; SIZE_MAX: there is none. */
size_t html_sums_find(const struct html_sums *sums, uint32_t thread, uint32_t box);

enum { HTML_N_ASPECTS = 4, HTML_MAX_VALUES = 16 };

/* Sums by cell of a column of single samples: "verdict", "gil", "gc", "state". */
struct html_aspect {
	const char *name;
	const char *values[HTML_MAX_VALUES];
	uint64_t *sums; /* n_values for each cell */
	size_t n_values;
};

struct html_aspects {
	struct html_aspect items[HTML_N_ASPECTS]; /* no sums: no sample has that column */
};

/*
 * html_aspects_init - add samples up, weights or, where boxes have none, how many; without samples there is nothing.
 * Errors: -ENOMEM.
 */
int html_aspects_init(const struct profile *profile, const struct fold_places *places, const struct html_boxes *boxes,
		      const struct html_sums *sums, struct html_aspects *ret);
void html_aspects_done(struct html_aspects *aspects);

/*
 * html_put_profile - the page's data, as JSON that no name can end early.
 * Errors: -ENOMEM; errors of writing stay in the stream.
 */
int html_put_profile(const struct profile *profile, const struct html_boxes *boxes, const struct html_sums *sums,
		     const struct html_aspects *aspects, const struct export_options *options, FILE *out);

#endif
