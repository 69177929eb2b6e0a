/* SPDX-License-Identifier: MIT */
/* duration.c - see duration.h. */
#include "src/cli/duration.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static const struct unit {
	const char *name;
	double seconds;
} units[] = { { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 },    { "sec", 1 },
	      { "m", 60 },    { "min", 60 },  { "h", 3600 }, { "d", 86400 } };

static const struct unit *find_unit(const char *text, size_t n)
{
	for (size_t i = 0; i < N_ELEMENTS(units); i++)
		if (strlen(units[i].name) == n && strncasecmp(units[i].name, text, n) == 0)
			return &units[i];
	return NULL;
}

/* strtod(3) also accepts signs, spaces, "inf" and hexadecimal digits. */
static bool starts_number(const char *text)
{
	return (isdigit((unsigned char)text[0]) && (text[1] | 0x20) != 'x') ||
	       (text[0] == '.' && isdigit((unsigned char)text[1]));
}

int duration_parse(const char *text, double *ret)
{
	double seconds = 0;
	bool is_first = true;

	do {
		const struct unit *unit;
		char *rest;
		double value;
		size_t n;

		if (!starts_number(text))
			return -EINVAL;
		value = strtod(text, &rest);
		n = strspn(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
		unit = find_unit(rest, n);
		if (!unit && (n > 0 || !is_first)) /* only a single number may omit the unit: seconds */
			return -EINVAL;
		seconds += value * (unit ? unit->seconds : 1);
		if (!unit && *rest != '\0')
			return -EINVAL;
		text = rest + n;
		is_first = false;
	} while (*text);
	if (!isfinite(seconds))
		return -EINVAL;
	*ret = seconds;
	return 0;
}

void duration_format_left(uint64_t elapsed_ns, uint64_t n_done, uint64_t n_all, char to[DURATION_LEFT_BYTES])
{
	double left_s;

	to[0] = '\0';
	if (elapsed_ns < UINT64_C(2000000000) || n_done == 0 || n_all <= n_done)
		return;
	left_s = (double)elapsed_ns / 1e9 / (double)n_done * (double)(n_all - n_done);
	if (left_s < 90)
		snprintf(to, DURATION_LEFT_BYTES, ", %.0f s left", left_s);
	else if (left_s < 90 * 60)
		snprintf(to, DURATION_LEFT_BYTES, ", %.0f min left", left_s / 60);
	else
		snprintf(to, DURATION_LEFT_BYTES, ", %.0f h left", MIN(left_s / 3600, 9999.0));
}
