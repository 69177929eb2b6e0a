/* SPDX-License-Identifier: MIT */
/* repr_number.c - numbers as Python writes them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/repr.h"

enum {
	DIGIT_BITS = OBJECT_DIGIT_BITS,
	MAX_DIGITS = 24,    /* larger ints are shown by their size */
	CHUNK = 1000000000, /* nine decimal digits per step */
	MAX_CHUNKS = MAX_DIGITS * DIGIT_BITS / 29 + 1,
	FIRST_EXPONENT = -4, /* smallest exponent written without 'e' */
	LAST_EXPONENT = 15,
	MAX_PRECISION = 17,
};

/* Digits of the shortest decimal that reads back as this number, d.ddd; returns its exponent. */
static int shortest(double value, char digits[32])
{
	char text[40];
	size_t n = 0;

	for (int precision = 0; precision < MAX_PRECISION; precision++) {
		snprintf(text, sizeof text, "%.*e", precision, value);
		if (strtod(text, NULL) == value)
			break;
	}
	for (const char *at = text; *at && *at != 'e'; at++)
		if (*at >= '0' && *at <= '9')
			digits[n++] = *at;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	digits[n] = '\0';
	return atoi(strchr(text, 'e') + 1);
}

static void put_plain(struct repr *repr, const char *digits, int exponent, bool with_point)
{
	int n = (int)strlen(digits);

	if (exponent < 0)
		repr_printf(repr, "0.%.*s%s", -exponent - 1, "000", digits);
	else if (n <= exponent + 1)
		repr_printf(repr, "%s%.*s%s", digits, exponent + 1 - n, "0000000000000000", with_point ? ".0" : "");
	else
		repr_printf(repr, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
}

void repr_put_double(struct repr *repr, double value, bool with_point)
{
	char digits[32];
	int exponent;

	if (value != value) {
		repr_put(repr, "nan");
		return;
	}
	if (__builtin_signbit(value)) {
		repr_put(repr, "-");
		value = -value;
	}
	if (value > __DBL_MAX__) {
		repr_put(repr, "inf");
		return;
	}
	exponent = shortest(value, digits);
	if (exponent >= FIRST_EXPONENT && exponent <= LAST_EXPONENT)
		put_plain(repr, digits, exponent, with_point);
	else
		repr_printf(repr, "%c%s%se%c%02d", digits[0], digits[1] ? "." : "", digits + 1,
			    exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
}

/* Write digits of 30 bits as decimal text. */
static void put_digits(struct repr *repr, uint32_t *digits, size_t n)
{
	uint32_t chunks[MAX_CHUNKS];
	size_t n_chunks = 0;

	while (n > 0 && n_chunks < MAX_CHUNKS) {
		uint64_t rest = 0;

		for (size_t i = n; i-- > 0;) {
			rest = rest << DIGIT_BITS | digits[i];
			digits[i] = (uint32_t)(rest / CHUNK);
			rest %= CHUNK;
		}
		chunks[n_chunks++] = (uint32_t)rest;
		while (n > 0 && digits[n - 1] == 0)
			n--;
	}
	repr_printf(repr, "%u", n_chunks ? chunks[n_chunks - 1] : 0);
	while (n_chunks-- > 1)
		repr_printf(repr, "%09u", chunks[n_chunks - 1]);
}

static int put_long(struct repr *repr, uint64_t object)
{
	struct py_runtime *runtime = repr->runtime;
	uint32_t digits[MAX_DIGITS];
	bool is_negative;
	uint64_t n;
	int r;

	r = object_int_size(runtime, object, &n, &is_negative);
	if (r < 0)
		return r;
	if (n > MAX_DIGITS) {
		repr_printf(repr, "<%sint of about %llu bits>", is_negative ? "negative " : "",
			    (unsigned long long)n * DIGIT_BITS);
		return 0;
	}
	if (n > 0)
		r = page_cache_read(&runtime->page_cache, object + reader_field(runtime, LONG_DIGITS), digits,
				    (size_t)n * sizeof *digits);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (digits[i] >> DIGIT_BITS)
			return -EBADMSG;
	if (is_negative)
		repr_put(repr, "-");
	put_digits(repr, digits, (size_t)n);
	if (reader_has(runtime, INT_VALUE)) /* 2.7: a long; an int is a machine word */
		repr_put(repr, "L");
	return 0;
}

static int put_bool(struct repr *repr, uint64_t object)
{
	struct py_runtime *runtime = repr->runtime;
	bool is_negative;
	uint64_t n;
	int r;

	if (reader_has(runtime, INT_VALUE))
		r = object_word(runtime, object + reader_field(runtime, INT_VALUE), &n);
	else
		r = object_int_size(runtime, object, &n, &is_negative);
	if (r >= 0)
		repr_put(repr, n ? "True" : "False");
	return r;
}

int repr_put_int(struct repr *repr, uint64_t object, const struct object_type *type)
{
	uint64_t value;
	int r;

	if (strcmp(type->name, "bool") == 0)
		return put_bool(repr, object);
	if (!(type->flags & TYPE_INT) || !reader_has(repr->runtime, INT_VALUE))
		return put_long(repr, object);
	r = object_word(repr->runtime, object + reader_field(repr->runtime, INT_VALUE), &value);
	if (r >= 0)
		repr_printf(repr, "%lld", (long long)value);
	return r;
}
