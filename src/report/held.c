/* SPDX-License-Identifier: MIT */
/* held.c - the shares of the GIL and of the garbage collector, in a line that fits. */
#include <string.h>

#include "src/report/report.h"

enum { MAX_TEXT = 128, LONG, PLAIN, SHORT };

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Shares are of all time: shares of the known time would exaggerate. */
static void write_held(const struct held_time *held, int how, char *to)
{
	double gil = percent(held->gil, held->all), gc = percent(held->gc, held->all);
	double gil_unknown = 100 - percent(held->gil_known, held->all);
	double gc_unknown = 100 - percent(held->gc_known, held->all);

	if (how == SHORT)
		snprintf(to, MAX_TEXT, "GIL %.1f %%, GC %.1f %%", gil, gc);
	else if (how == LONG && (gil_unknown >= 0.05 || gc_unknown >= 0.05))
		snprintf(to, MAX_TEXT, "%.1f %% with the GIL, %.1f %% collecting garbage (unknown: %.1f %%, %.1f %%)",
			 gil, gc, gil_unknown, gc_unknown);
	else
		snprintf(to, MAX_TEXT, "%.1f %% with the GIL, %.1f %% collecting garbage", gil, gc);
}

void report_held(const struct held_time *held, unsigned columns, FILE *out)
{
	char text[MAX_TEXT];
	int how = LONG;

	if (held->all == 0 || (held->gil_known == 0 && held->gc_known == 0))
		return;
	do
		write_held(held, how, text);
	while (columns > 0 && strlen(text) > columns && how++ < SHORT);
	fprintf(out, "%s\n", text);
}
