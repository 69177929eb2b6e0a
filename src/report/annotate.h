/* SPDX-License-Identifier: MIT */
/* annotate.h - lines with time, by file, and how they are printed. Private to reports. */
#ifndef PROBING_REPORT_ANNOTATE_H
#define PROBING_REPORT_ANNOTATE_H

#include "src/report/report.h"
#include "src/report/source.h"
#include "src/report/sums.h"

/* A file to show, with its selected lines, in order. */
struct annotated {
	const char *file;
	const char *label; /* how it is called */
	const struct report_sum *lines;
	size_t n_lines;
	uint64_t self; /* of these */
};

/* A printed line of a file. */
struct annotated_line {
	int number;
	const struct report_sum *sum; /* NULL: no time was spent here */
	const char *text;             /* NULL: the source is not there, or does not reach that far */
	bool follows_gap;             /* lines between it and the one before are left out */
};

/*
 * annotate_each_line - the lines of a file to show.
 * @source: NULL: it is missing.
 * Returns the first negative result of @put, or 0.
 */
int annotate_each_line(const struct annotated *file, const struct source *source,
		       const struct annotate_options *options,
		       int (*put)(void *data, const struct annotated_line *line), void *data);

struct json;

void annotate_put(const struct annotated *file, const struct source *source, const struct whole *whole,
		  const struct annotate_options *options, FILE *out);
/* As an object of a list. -ENOMEM. */
void annotate_put_json(const struct annotated *file, const struct source *source, const struct whole *whole,
		       const struct annotate_options *options, struct json *json);

#endif
