/* report.h - the top functions of a profile as text. */
#ifndef PROBING_REPORT_H
#define PROBING_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "src/store/store.h"

/* How much time held the GIL, and how much collected garbage; nanoseconds, or samples. */
struct held_time {
	uint64_t all;
	uint64_t gil, gil_known; /* held it; is known to have held it or not */
	uint64_t gc, gc_known;
};

/*
 * report_held - one line, "80.1 % with the GIL, 3.0 % collecting garbage"; nothing where nothing is known.
 * @columns: where that is too wide, less is said; 0: any width will do.
 */
void report_held(const struct held_time *held, unsigned columns, FILE *out);

struct report_options {
	bool show_interpreter;
	unsigned max_rows;  /* 0: 20 */
	unsigned columns;   /* width to fit, 0: 80 */
	bool colour;
	bool by_total;      /* sort by total time rather than self */
	const struct held_time *held; /* told as well; NULL: it is not */
};

/* Self and total time, kind and place of the top functions; recursion counts once in total. */
int report_functions(const struct profile *profile, const struct report_options *options, FILE *out);

#endif
