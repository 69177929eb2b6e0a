/* SPDX-License-Identifier: MIT */
/*
 * percentile.c - percentiles: exact ones, and approximate ones in little memory.
 *
 * The exact ones keep every value, as numbers, until the end. approx_percentile() counts values in
 * buckets whose borders grow by 2 %, so a result is within 1 % of a value of that rank; there
 * is one bucket for each such step between the smallest and the largest: 70,000 at most
 * for each sign. (The scheme is that of DDSketch, Masson et al., VLDB 2019.)
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/functions/functions_private.h"

/* ---- Common: share and order ---- */

struct asked {
	double share;
	bool is_set, descending;
};

struct form {
	bool discrete;
};

/* The value at a place of an order: @data is of the function. */
typedef double (*value_at)(const void *data, uint64_t place);

/* Forms: f(value), f(value, share), and for WITHIN GROUP (dialect_expressions.c) f(share, value, descending). */
static sqlite3_value *value_of(int n, sqlite3_value **arguments)
{
	return arguments[n == 3 ? 1 : 0];
}

/* false: an error was set. */
static bool take_share(sqlite3_context *context, int n, sqlite3_value **arguments, struct asked *asked)
{
	sqlite3_value *share = n == 1 ? NULL : arguments[n == 3 ? 0 : 1];

	if (asked->is_set)
		return true;
	asked->share = share ? sqlite3_value_double(share) : 0.5;
	asked->descending = n > 2 && sqlite3_value_int(arguments[2]) != 0;
	if ((share && sqlite3_value_numeric_type(share) == SQLITE_NULL) || !(asked->share >= 0 && asked->share <= 1)) {
		sqlite3_result_error(context, "a percentile's share is a number from 0 to 1: 0.99", -1);
		return false;
	}
	asked->is_set = true;
	return true;
}

static bool is_number(sqlite3_value *value)
{
	int type = sqlite3_value_numeric_type(value);

	return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

/* ---- Exact ---- */

struct exact {
	struct asked asked;
	double *values;
	size_t n, allocated;
};

static void exact_step(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	struct exact *exact = sqlite3_aggregate_context(context, sizeof *exact);
	sqlite3_value *value = value_of(n, arguments);

	if (!exact || grow(&exact->values, exact->n, &exact->allocated, sizeof *exact->values) < 0) {
		sqlite3_result_error_nomem(context);
		return;
	}
	if (take_share(context, n, arguments, &exact->asked) && is_number(value))
		exact->values[exact->n++] = sqlite3_value_double(value);
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

/* Like SQL:2003: interpolate between two values, or take the first that reaches the share. @n: at least 1. */
static double pick(const struct asked *asked, bool discrete, uint64_t n, value_at value, const void *data)
{
	double share = asked->share, place, below, low;
	uint64_t last = n - 1, i;

	if (discrete) {
		place = ceil(share * (double)n) - 1;
		i = place > 0 ? MIN((uint64_t)place, last) : 0;
		return value(data, asked->descending ? last - i : i);
	}
	if (asked->descending)
		share = 1 - share;
	place = share * (double)last;
	below = floor(place);
	i = MIN((uint64_t)below, last);
	low = value(data, i);
	if (place == below || i == last) /* do not interpolate between infinities */
		return low;
	return low + (place - below) * (value(data, i + 1) - low);
}

static double exact_value(const void *data, uint64_t place)
{
	return ((const struct exact *)data)->values[place];
}

static void exact_finish(sqlite3_context *context)
{
	const struct form *form = sqlite3_user_data(context);
	struct exact *exact = sqlite3_aggregate_context(context, 0);

	if (exact && exact->n > 0) {
		qsort(exact->values, exact->n, sizeof *exact->values, compare);
		sqlite3_result_double(context, pick(&exact->asked, form->discrete, exact->n, exact_value, exact));
	}
	if (exact)
		free(exact->values);
}

/* ---- Buckets ---- */

/* Counts of values of one sign, in buckets by the logarithm of their magnitude. */
struct buckets {
	uint64_t *counts;
	int first; /* number of the bucket counts[0] */
	size_t n;
};

struct sketch {
	struct asked asked;
	struct buckets negative, positive;
	uint64_t n_zero, n;
};

static const double growth = 1.02;

static int bucket_of(double size)
{
	return (int)ceil(log(size) / log(growth));
}

/* The value with the same relative distance to both borders of a bucket. */
static double bucket_value(int bucket)
{
	return pow(growth, bucket) * (2 / (1 + growth)); /* twice of it may be too large */
}

/* @first, @n: bounds that become those of the buckets; they hold the old ones. */
static int buckets_move(struct buckets *buckets, int first, size_t n)
{
	uint64_t *counts = calloc(n, sizeof *counts);

	if (!counts)
		return -ENOMEM;
	if (buckets->n > 0)
		memcpy(counts + (buckets->first - first), buckets->counts, buckets->n * sizeof *counts);
	free(buckets->counts);
	*buckets = (struct buckets){ counts, first, n };
	return 0;
}

/* By at least half of what there is: buckets that come one by one, in order, are not copied for each. */
static int buckets_widen(struct buckets *buckets, int bucket)
{
	size_t more = buckets->n / 2;

	if (buckets->n == 0)
		return buckets_move(buckets, bucket, 1);
	if (bucket < buckets->first)
		return buckets_move(buckets, bucket - (int)more, buckets->n + more + (size_t)(buckets->first - bucket));
	if ((size_t)(bucket - buckets->first) >= buckets->n)
		return buckets_move(buckets, buckets->first, (size_t)(bucket - buckets->first) + 1 + more);
	return 0;
}

static int sketch_add(struct sketch *sketch, double value)
{
	struct buckets *buckets = value < 0 ? &sketch->negative : &sketch->positive;
	double size = fmin(fabs(value), 1e308);
	int bucket, r;

	sketch->n++;
	if (size < 1e-300) {
		sketch->n_zero++;
		return 0;
	}
	bucket = bucket_of(size);
	r = buckets_widen(buckets, bucket);
	if (r == 0)
		buckets->counts[bucket - buckets->first]++;
	return r;
}

static void sketch_step(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	struct sketch *sketch = sqlite3_aggregate_context(context, sizeof *sketch);
	sqlite3_value *value = value_of(n, arguments);

	if (!sketch) {
		sqlite3_result_error_nomem(context);
		return;
	}
	if (take_share(context, n, arguments, &sketch->asked) && is_number(value) &&
	    sketch_add(sketch, sqlite3_value_double(value)) < 0)
		sqlite3_result_error_nomem(context);
}

/* The value at a rank, from 0. */
static double sketch_value(const void *data, uint64_t rank)
{
	const struct sketch *sketch = data;

	for (size_t i = sketch->negative.n; i-- > 0;) {
		if (rank < sketch->negative.counts[i])
			return -bucket_value(sketch->negative.first + (int)i);
		rank -= sketch->negative.counts[i];
	}
	if (rank < sketch->n_zero)
		return 0;
	rank -= sketch->n_zero;
	for (size_t i = 0; i < sketch->positive.n; i++) {
		if (rank < sketch->positive.counts[i])
			return bucket_value(sketch->positive.first + (int)i);
		rank -= sketch->positive.counts[i];
	}
	return 0;
}

/* Without a form: the value of the nearest rank. A form's own rule, applied to values within 1 %, stays within 1 %. */
static double sketch_pick(const struct sketch *sketch, const struct form *form)
{
	double share = sketch->asked.descending ? 1 - sketch->asked.share : sketch->asked.share;

	if (form)
		return pick(&sketch->asked, form->discrete, sketch->n, sketch_value, sketch);
	return sketch_value(sketch, (uint64_t)(share * (double)(sketch->n - 1) + 0.5));
}

static void sketch_finish(sqlite3_context *context)
{
	struct sketch *sketch = sqlite3_aggregate_context(context, 0);

	if (!sketch)
		return;
	if (sketch->n > 0)
		sqlite3_result_double(context, sketch_pick(sketch, sqlite3_user_data(context)));
	free(sketch->negative.counts);
	free(sketch->positive.counts);
}

/* ---- Sketches as text, to be put together elsewhere ---- */

/* Of all values: a double holds each rank. */
#define MAX_COUNT (UINT64_C(1) << 53)

enum { MAX_BUCKET = 35820 }; /* of 1e308, and a few more; a double holds their values */

static void put_buckets(sqlite3_str *to, const struct buckets *buckets, char sign)
{
	for (size_t i = 0; i < buckets->n; i++)
		if (buckets->counts[i] > 0)
			sqlite3_str_appendf(to, " %c %d %lld", sign, buckets->first + (int)i,
					    (long long)buckets->counts[i]);
}

/* "z 3 + 120 7 - 40 1": zeros, and counts of buckets by sign. */
static void text_finish(sqlite3_context *context)
{
	struct sketch *sketch = sqlite3_aggregate_context(context, 0);
	sqlite3_str *text = sqlite3_str_new(NULL);
	int n;
	char *whole;

	sqlite3_str_appendf(text, "z %lld", sketch ? (long long)sketch->n_zero : 0);
	if (sketch) {
		put_buckets(text, &sketch->positive, '+');
		put_buckets(text, &sketch->negative, '-');
		free(sketch->negative.counts);
		free(sketch->positive.counts);
	}
	n = sqlite3_str_length(text);
	whole = sqlite3_str_finish(text);
	if (whole)
		sqlite3_result_text(context, whole, n, sqlite3_free);
	else
		sqlite3_result_error_nomem(context);
}

static void text_step(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	struct sketch *sketch = sqlite3_aggregate_context(context, sizeof *sketch);

	(void)n;
	if (!sketch || (is_number(arguments[0]) && sketch_add(sketch, sqlite3_value_double(arguments[0])) < 0))
		sqlite3_result_error_nomem(context);
}

/* One more bucket of another sketch. -ENOMEM. */
static int add_bucket(struct sketch *sketch, char sign, int bucket, uint64_t count)
{
	struct buckets *buckets = sign == '-' ? &sketch->negative : &sketch->positive;
	int r;

	r = buckets_widen(buckets, bucket);
	if (r < 0)
		return r;
	buckets->counts[bucket - buckets->first] += count;
	sketch->n += count;
	return 0;
}

/* A count behind a blank. */
static int read_count(const char **text, uint64_t limit, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(*text, &end, 10);
	if (end == *text || errno != 0 || *ret > limit || (*text)[1] == '-')
		return -EBADMSG;
	*text = end;
	return 0;
}

/* Foreign: another machine has made it. */
static int add_text(struct sketch *sketch, const char *text)
{
	uint64_t count;
	int r;

	if (strncmp(text, "z ", 2) != 0)
		return -EBADMSG;
	text++;
	r = read_count(&text, MAX_COUNT - sketch->n, &count);
	if (r < 0)
		return r;
	sketch->n_zero += count;
	sketch->n += count;
	while (r == 0 && *text) {
		char sign = text[0] == ' ' ? text[1] : '\0', *end;
		long bucket;

		if (sign != '+' && sign != '-')
			return -EBADMSG;
		bucket = strtol(text + 2, &end, 10);
		if (end == text + 2 || bucket < -MAX_BUCKET || bucket > MAX_BUCKET)
			return -EBADMSG;
		text = end;
		r = read_count(&text, MAX_COUNT - sketch->n, &count);
		if (r == 0)
			r = add_bucket(sketch, sign, (int)bucket, count);
	}
	return r;
}

/* f(sketch, share), f(sketch, share, descending). */
static void merge_step(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	struct sketch *sketch = sqlite3_aggregate_context(context, sizeof *sketch);
	sqlite3_value *const in_order[] = { arguments[1], arguments[0], n > 2 ? arguments[2] : arguments[1] };
	const char *text = (const char *)sqlite3_value_text(arguments[0]);
	int r;

	if (!sketch) {
		sqlite3_result_error_nomem(context);
		return;
	}
	if (n > 2 ? !take_share(context, 3, (sqlite3_value **)in_order, &sketch->asked)
		  : !take_share(context, 2, arguments, &sketch->asked))
		return;
	r = text ? add_text(sketch, text) : 0;
	if (r == -ENOMEM)
		sqlite3_result_error_nomem(context);
	else if (r < 0)
		sqlite3_result_error(context, "a rank's sketch of percentiles makes no sense", -1);
}

/* ---- Registration ---- */

static const struct form continuous = { false }, discrete = { true };

#define EXACT(name_, n_, form_, doc_)                                                                                  \
	{                                                                                                              \
		name_, n_, doc_, SQLITE_INNOCUOUS, (void *)&form_, NULL, exact_step, exact_finish                      \
	}
#define ABOUT(name_, n_, doc_)                                                                                         \
	{                                                                                                              \
		name_, n_, doc_, SQLITE_INNOCUOUS, NULL, NULL, sketch_step, sketch_finish                              \
	}
#define MERGED(name_, n_, form_)                                                                                       \
	{                                                                                                              \
		name_, n_, NULL, SQLITE_INNOCUOUS, form_, NULL, merge_step, sketch_finish                              \
	}

const struct sql_function percentile_functions[] = {
	EXACT("percentile_cont", 2, continuous,
	      "percentile_cont(x, 0.99): the value above that share of the values, interpolated between two values. "
	      "Also percentile_cont(0.99) WITHIN GROUP (ORDER BY x)"),
	EXACT("percentile_disc", 2, discrete,
	      "percentile_disc(x, 0.99): the first value that reaches that share. Also percentile_disc(0.99) WITHIN "
	      "GROUP (ORDER BY x)"),
	EXACT("median", 1, continuous, "median(x): the middle one, percentile_cont(x, 0.5)"),
	ABOUT("approx_percentile", 2, "approx_percentile(x, 0.99): within 1 %, in little memory"),
	EXACT("percentile_cont", 3, continuous, NULL),
	EXACT("percentile_disc", 3, discrete, NULL),
	ABOUT("approx_percentile", 3, NULL),
	{ "percentile_sketch", 1, NULL, SQLITE_INNOCUOUS, NULL, NULL, text_step, text_finish },
	MERGED("approx_percentile_of_sketches", 2, NULL),
	MERGED("approx_percentile_of_sketches", 3, NULL),
	MERGED("percentile_cont_of_sketches", 2, (void *)&continuous),
	MERGED("percentile_cont_of_sketches", 3, (void *)&continuous),
	MERGED("percentile_disc_of_sketches", 2, (void *)&discrete),
	MERGED("percentile_disc_of_sketches", 3, (void *)&discrete),
	{ 0 },
};
