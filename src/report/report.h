/* report.h - the top functions of a profile as text. */
#ifndef PROBING_REPORT_H
#define PROBING_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "src/store/store.h"

struct report_options {
	bool show_interpreter;
	unsigned max_rows;  /* 0: 20 */
	unsigned columns;   /* width to fit, 0: 80 */
	bool colour;
	bool by_total;      /* sort by total time rather than self */
};

/* Self and total time, kind and place of the top functions; recursion counts once in total. */
int report_functions(const struct profile *profile, const struct report_options *options, FILE *out);

#endif
