/* SPDX-License-Identifier: MIT */
/* query.c - see lanes_query_parse(). The text comes from the network. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/lanes/lanes.h"

enum { NUMBER_BYTES = 32 };
#define MAX_SECONDS 4e9 /* more than 100 years */

/* Digits, a point, a sign: no words such as inf, no hexadecimal. */
static bool is_decimal(const char *text)
{
	return *text != '\0' && strlen(text) < NUMBER_BYTES && text[strspn(text, "0123456789.-")] == '\0';
}

static bool take_seconds(const char *text, int64_t *ret)
{
	double seconds;
	char *end;

	if (!is_decimal(text))
		return false;
	seconds = strtod(text, &end);
	if (*end != '\0' || !(fabs(seconds) <= MAX_SECONDS))
		return false;
	*ret = (int64_t)llround(seconds * 1e9);
	return true;
}

static bool take_number(const char *text, unsigned low, unsigned high, unsigned *ret)
{
	unsigned long value;
	char *end;

	if (text[0] < '0' || text[0] > '9' || strlen(text) >= NUMBER_BYTES)
		return false;
	value = strtoul(text, &end, 10);
	if (*end != '\0' || value < low || value > high)
		return false;
	*ret = (unsigned)value;
	return true;
}

/* "": no thread has stacks. */
static bool take_threads(char *text, struct lanes_query *query)
{
	unsigned tid;

	query->has_threads = true;
	query->n_threads = 0;
	while (text && *text) {
		const char *word = strsep(&text, ",");

		if (query->n_threads == LANES_MAX_CHOSEN || !take_number(word, 0, INT32_MAX, &tid))
			return false;
		query->threads[query->n_threads++] = (int32_t)tid;
	}
	return true;
}

static int fail(char *sentence, const char *text)
{
	snprintf(sentence, LANES_SENTENCE_BYTES, "%s", text);
	return -EINVAL;
}

static int take_part(char *part, struct lanes_query *query, char *sentence)
{
	char *value = part;
	const char *name = strsep(&value, "=");

	if (!value)
		return fail(sentence, "a parameter needs a value: NAME=VALUE");
	if (strcmp(name, "since") == 0) {
		query->has_since = take_seconds(value, &query->since_ns);
		return query->has_since ? 0 : fail(sentence, "since needs seconds after the start: 1.5");
	}
	if (strcmp(name, "until") == 0) {
		query->has_until = take_seconds(value, &query->until_ns);
		return query->has_until ? 0 : fail(sentence, "until needs seconds after the start: 1.5");
	}
	if (strcmp(name, "pixels") == 0)
		return take_number(value, LANES_MIN_PIXELS, LANES_MAX_PIXELS, &query->pixels)
			       ? 0
			       : fail(sentence, "pixels needs a number from 16 to 8192");
	if (strcmp(name, "depth") == 0)
		return take_number(value, 0, LANES_MAX_DEPTH, &query->depth)
			       ? 0
			       : fail(sentence, "depth needs a number from 0 to 256");
	if (strcmp(name, "threads") == 0)
		return take_threads(value, query) ? 0 : fail(sentence, "threads needs up to 64 TIDs: 4242,4243");
	return fail(sentence, "the parameters are since, until, pixels, depth and threads");
}

int lanes_query_parse(const char *text, struct lanes_query *ret, char *sentence)
{
	struct lanes_query query = { .pixels = LANES_DEFAULT_PIXELS, .depth = LANES_DEFAULT_DEPTH };
	char copy[LANES_QUERY_BYTES], *rest = copy;
	int r = 0;

	if (strlen(text) >= sizeof copy)
		return fail(sentence, "the parameters are too long");
	strcpy(copy, text);
	while (r == 0 && rest && *rest)
		r = take_part(strsep(&rest, "&"), &query, sentence);
	if (r == 0 && query.has_since && query.has_until && query.since_ns >= query.until_ns)
		r = fail(sentence, "since must be before until");
	if (r == 0)
		*ret = query;
	return r;
}
