/* held.c - the shares of the GIL and of the garbage collector, in a line. */
#include <stdbool.h>

#include "src/report/report.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Shares are of all time, not of what is known: that would make more of it than there was. */
void report_held(const struct held_time *held, FILE *out)
{
	double gil_unknown = 100 - percent(held->gil_known, held->all);
	double gc_unknown = 100 - percent(held->gc_known, held->all);
	bool is_known = gil_unknown < 0.05 && gc_unknown < 0.05;

	if (held->all == 0 || (held->gil_known == 0 && held->gc_known == 0))
		return;
	fprintf(out, "%.1f %% with the GIL, %.1f %% collecting garbage", percent(held->gil, held->all),
		percent(held->gc, held->all));
	if (!is_known)
		fprintf(out, " (not known: %.1f %%, %.1f %%)", gil_unknown, gc_unknown);
	fputc('\n', out);
}
