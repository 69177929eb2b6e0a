/* SPDX-License-Identifier: MIT */
/*
 * spread.c - variance and standard deviation.
 *
 * Values come one by one, and each corrects mean and sum of squares (Welford, 1962): the difference
 * of two large sums would lose times in nanoseconds.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "src/sql/functions/functions_private.h"

struct spread {
	uint64_t n;
	double mean, squares;
};

struct form {
	bool of_sample; /* divide by n - 1 */
	bool root;
};

static void step(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	struct spread *spread = sqlite3_aggregate_context(context, sizeof *spread);
	int type = sqlite3_value_numeric_type(arguments[0]);
	double value, difference;

	(void)n;
	if (!spread) {
		sqlite3_result_error_nomem(context);
		return;
	}
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
		return;
	value = sqlite3_value_double(arguments[0]);
	difference = value - spread->mean;
	spread->n++;
	spread->mean += difference / (double)spread->n;
	spread->squares += difference * (value - spread->mean);
}

static void finish(sqlite3_context *context)
{
	const struct form *form = sqlite3_user_data(context);
	const struct spread *spread = sqlite3_aggregate_context(context, 0);
	double variance;

	if (!spread || spread->n <= (form->of_sample ? 1 : 0))
		return;
	variance = spread->squares / (double)(spread->n - (form->of_sample ? 1 : 0));
	sqlite3_result_double(context, form->root ? sqrt(variance) : variance);
}

static const struct form variance_sample = { true, false }, variance_all = { false, false },
			 deviation_sample = { true, true }, deviation_all = { false, true };

#define SPREAD(name_, form_, doc_)                                                                                     \
	{                                                                                                              \
		name_, 1, doc_, SQLITE_INNOCUOUS, (void *)&form_, NULL, step, finish                                   \
	}

const struct sql_function spread_functions[] = {
	SPREAD("variance", variance_sample, "variance(x): of a sample, divided by n - 1"),
	SPREAD("var_samp", variance_sample, "var_samp(x): variance(x)"),
	SPREAD("var_pop", variance_all, "var_pop(x): variance of all there are, divided by n"),
	SPREAD("stddev", deviation_sample, "stddev(x): standard deviation of a sample"),
	SPREAD("stddev_samp", deviation_sample, "stddev_samp(x): stddev(x)"),
	SPREAD("stddev_pop", deviation_all, "stddev_pop(x): standard deviation of all there are"),
	{ 0 },
};
