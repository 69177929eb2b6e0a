/* SPDX-License-Identifier: MIT */
/*
 * interval.c - lengths of time: numbers with units, one after another, added up.
 */
#include "src/sql/interval.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

enum { MAX_TEXT = 100 };

static const struct {
	const char *names; /* separated by blanks; from three letters on, a plural s is allowed */
	double seconds;    /* 0: no fixed length */
} units[] = {
	{ "ns nsec nanosecond", 1e-9 },
	{ "us usec microsecond", 1e-6 },
	{ "ms msec millisecond", 1e-3 },
	{ "s sec second", 1 },
	{ "m min minute", 60 },
	{ "h hr hour", 3600 },
	{ "d day", 86400 },
	{ "w week", 604800 },
	{ "mon month", 0 },
	{ "quarter", 0 },
	{ "y yr year", 0 },
};

static bool is_one_of(const char *names, const char *name, size_t n)
{
	while (*names) {
		size_t n_one = strcspn(names, " ");
		bool plural = n_one > 1 && n == n_one + 1 && tolower((unsigned char)name[n - 1]) == 's';

		if ((n == n_one || plural) && strncasecmp(names, name, n_one) == 0)
			return true;
		names += n_one;
		names += strspn(names, " ");
	}
	return false;
}

int interval_unit(const char *name, size_t n, double *ret_seconds)
{
	for (size_t i = 0; n > 0 && i < N_ELEMENTS(units); i++) {
		if (!is_one_of(units[i].names, name, n))
			continue;
		if (units[i].seconds == 0)
			return -ERANGE;
		*ret_seconds = units[i].seconds;
		return 0;
	}
	return -EINVAL;
}

/* Parse "01:30" or "01:30:00.5"; false: another form. */
static bool parse_clock(const char *text, const char **ret_end, double *ret_seconds)
{
	double parts[3] = { 0 };
	size_t n = 0;
	char *end;

	for (; n < 3; n++) {
		if (!isdigit((unsigned char)*text))
			return false;
		parts[n] = n == 2 ? strtod(text, &end) : (double)strtoul(text, &end, 10);
		text = end;
		if (n == 2 || *text != ':')
			break;
		text++;
	}
	if (n == 0 || n > 2 || parts[1] >= 60 || parts[2] >= 60)
		return false;
	*ret_end = text;
	*ret_seconds = parts[0] * 3600 + parts[1] * 60 + parts[2];
	return true;
}

/* Parse a number with its unit, or a time of day. */
static int parse_part(const char **text, double *ret_seconds)
{
	const char *at = *text;
	double sign = *at == '-' ? -1 : 1, number, unit = 1;
	size_t n_name = 0;
	char *end;
	int r;

	at += *at == '-' || *at == '+';
	if (parse_clock(at, &at, ret_seconds)) {
		*ret_seconds *= sign;
		*text = at;
		return 0;
	}
	if (strspn(at, "0123456789.") == 0)
		return -EINVAL;
	number = strtod(at, &end);
	if (end == at)
		return -EINVAL;
	at = end + strspn(end, " \t\n");
	while (isalpha((unsigned char)at[n_name]))
		n_name++;
	if (n_name > 0) {
		r = interval_unit(at, n_name, &unit);
		if (r < 0)
			return r;
	}
	*text = at + n_name;
	*ret_seconds = sign * number * unit;
	return 0;
}

int interval_parse(const char *text, size_t n, double *ret_seconds)
{
	char copy[MAX_TEXT + 1];
	const char *at;
	double sum = 0, part;
	int r;

	if (n > MAX_TEXT || memchr(text, '\0', n))
		return -EINVAL;
	memcpy(copy, text, n);
	copy[n] = '\0';
	at = copy + strspn(copy, " \t\n");
	if (!*at)
		return -EINVAL;
	while (*at) {
		r = parse_part(&at, &part);
		if (r < 0)
			return r;
		sum += part;
		at += strspn(at, " \t\n,");
	}
	if (!(sum > -1e15 && sum < 1e15))
		return -EINVAL;
	*ret_seconds = sum;
	return 0;
}
