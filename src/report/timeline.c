/* SPDX-License-Identifier: MIT */
/* timeline.c - series of numbers as rows of characters; see report.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/report/report.h"

enum { N_LEVELS = 8, MAX_NAME = 24, NUMBER_BYTES = 16, RANGE_BYTES = 64, MIN_WIDTH = 10, DEFAULT_COLUMNS = 80 };

static const char *const blocks[N_LEVELS] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char *const plain[N_LEVELS] = { ".", ":", "-", "=", "+", "*", "#", "@" };

/* The mean of the values of each column; NAN where there is none. @ret: width numbers. */
static void fold(const struct timeline_series *series, double since, double until, unsigned width, double *ret)
{
	size_t i = 0;

	for (unsigned column = 0; column < width; column++) {
		double end = since + (until - since) * (column + 1) / width, sum = 0;
		size_t n = 0;

		for (; i < series->n && (series->points[i].seconds < end || column + 1 == width); i++, n++)
			sum += series->points[i].value;
		ret[column] = n > 0 ? sum / (double)n : (double)NAN;
		/* Rows are not exactly a column apart: one that falls beside its column is no gap. */
		if (n == 0 && i > 0 && i < series->n &&
		    series->points[i].seconds - series->points[i - 1].seconds < 2 * (until - since) / width)
			ret[column] = series->points[i - 1].value;
	}
}

static void find_range(const struct timeline_series *series, double *low, double *high)
{
	*low = HUGE_VAL;
	*high = -HUGE_VAL;
	for (size_t i = 0; i < series->n; i++) {
		*low = fmin(*low, series->points[i].value);
		*high = fmax(*high, series->points[i].value);
	}
}

static const char *level(double value, double low, double high, bool is_ascii)
{
	int n = high > low ? (int)((value - low) / (high - low) * N_LEVELS) : value > 0 ? N_LEVELS - 1 : 0;

	n = MAX(0, MIN(n, N_LEVELS - 1));
	return is_ascii ? plain[n] : blocks[n];
}

/* Three digits are enough for a picture. At most 15 bytes. */
static void write_number(double value, char to[NUMBER_BYTES])
{
	if (fabs(value) >= 1e7)
		snprintf(to, NUMBER_BYTES, "%.2e", value);
	else
		snprintf(to, NUMBER_BYTES, "%.*f", fabs(value) >= 100 ? 0 : fabs(value) >= 10 ? 1 : 2, value);
}

static void write_range(const struct timeline_series *series, char to[RANGE_BYTES])
{
	char least[NUMBER_BYTES], most[NUMBER_BYTES];
	double low, high;

	find_range(series, &low, &high);
	write_number(low, least);
	write_number(high, most);
	snprintf(to, RANGE_BYTES, "%s to %s %s", least, most, series->unit);
}

/* The end of a long name says more than its beginning: paths. Names come from the file: a terminal must not obey them. */
static const char *short_name(const char *name, char to[MAX_NAME + 1])
{
	size_t n = strlen(name);

	if (n <= MAX_NAME)
		snprintf(to, MAX_NAME + 1, "%s", name);
	else
		snprintf(to, MAX_NAME + 1, "..%s", name + n - (MAX_NAME - 2));
	for (char *at = to; *at; at++)
		if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
			*at = '?';
	return to;
}

static int draw(const struct timeline *timeline, const struct timeline_series *series, int name_width, unsigned width,
		FILE *out)
{
	CLEANUP(freep) double *columns = calloc(width, sizeof *columns);
	char range[RANGE_BYTES], name[MAX_NAME + 1];
	double low, high;

	if (!columns)
		return -ENOMEM;
	fold(series, timeline->since, timeline->until, width, columns);
	find_range(series, &low, &high);
	if (!series->is_level)
		low = fmin(low, 0);
	write_range(series, range);
	fprintf(out, "%-*s  ", name_width, short_name(series->name, name));
	for (unsigned i = 0; i < width; i++)
		fputs(isnan(columns[i]) ? " " : level(columns[i], low, high, timeline->is_ascii), out);
	fprintf(out, "  %s\n", range);
	return 0;
}

int report_timeline(const struct timeline *timeline, FILE *out)
{
	unsigned columns = timeline->columns > 0 ? timeline->columns : DEFAULT_COLUMNS, width;
	size_t n_points = 1;
	int name_width = 0, range_width = 0, r = 0;

	for (size_t i = 0; i < timeline->n; i++) {
		char range[RANGE_BYTES];

		write_range(&timeline->series[i], range);
		name_width = MAX(name_width, (int)MIN(strlen(timeline->series[i].name), (size_t)MAX_NAME));
		range_width = MAX(range_width, (int)strlen(range));
		n_points = MAX(n_points, timeline->series[i].n);
	}
	width = columns > (unsigned)(name_width + range_width + 4) ? columns - (unsigned)(name_width + range_width + 4)
								   : 0;
	width = MAX(width, (unsigned)MIN_WIDTH);
	width = (unsigned)MIN((size_t)width, n_points); /* columns between two rows would be empty */
	for (size_t i = 0; i < timeline->n && r >= 0; i++)
		r = draw(timeline, &timeline->series[i], name_width, width, out);
	if (r >= 0)
		fprintf(out, "a column is %.3g s\n", (timeline->until - timeline->since) / width);
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}
