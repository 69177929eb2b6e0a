/* SPDX-License-Identifier: MIT */
/* view_time.c - see view.h. */
#include "src/cli/view.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "src/cli/duration.h"

static const double least_moment = 1e9; /* 2001 */

/* Parse "14:05" with optional seconds; @ret: seconds since midnight, @end: the text after it. */
static int parse_clock(const char *text, double *ret, const char **end)
{
	struct tm tm = { 0 };
	const char *rest = strptime(text, "%H:%M", &tm);
	double seconds = 0;

	if (!rest)
		return -EINVAL;
	if (*rest == ':') {
		const char *start = rest + 1;
		char *behind;

		if (*start < '0' || *start > '9')
			return -EINVAL;
		seconds = strtod(start, &behind);
		rest = behind;
		if (!(seconds < 61))
			return -EINVAL;
	}
	*ret = tm.tm_hour * 3600.0 + tm.tm_min * 60.0 + seconds;
	*end = rest;
	return 0;
}

/* Midnight of a day plus the wall-clock time since then. */
static double moment_of(struct tm day, double seconds, bool is_utc)
{
	double whole = floor(seconds);

	day.tm_hour = 0;
	day.tm_min = 0;
	day.tm_sec = (int)whole;
	day.tm_isdst = -1;
	return (double)(is_utc ? timegm(&day) : mktime(&day)) + (seconds - whole);
}

static int parse_date(const char *text, struct view_time *ret)
{
	struct tm day = { 0 };
	const char *rest = strptime(text, "%Y-%m-%d", &day);
	double seconds = 0;
	bool is_utc = false;

	if (!rest)
		return -EINVAL;
	if ((*rest == ' ' || *rest == 'T') && parse_clock(rest + 1, &seconds, &rest) < 0)
		return -EINVAL;
	if (*rest == 'Z') {
		is_utc = true;
		rest++;
	}
	if (*rest != '\0')
		return -EINVAL;
	*ret = (struct view_time){ VIEW_TIME_MOMENT, text, moment_of(day, seconds, is_utc) };
	return 0;
}

static int parse_offset(const char *text, struct view_time *ret)
{
	bool has_unit = text[strspn(text, "0123456789.")] != '\0';
	double value;

	if (duration_parse(text, &value) < 0)
		return -EINVAL;
	*ret = (struct view_time){ !has_unit && value >= least_moment ? VIEW_TIME_MOMENT : VIEW_TIME_OFFSET, text,
				   value };
	return 0;
}

int view_time_parse(const char *text, struct view_time *ret)
{
	const char *rest;
	double seconds;

	if (parse_clock(text, &seconds, &rest) == 0 && *rest == '\0') {
		*ret = (struct view_time){ VIEW_TIME_OF_DAY, text, seconds };
		return 0;
	}
	if (strchr(text, '-') && text[0] != '-')
		return parse_date(text, ret);
	return parse_offset(text, ret);
}

double view_time_resolve(const struct view_time *time, double started)
{
	time_t start = (time_t)started;
	struct tm day;

	switch (time->type) {
	case VIEW_TIME_OFFSET:
		return started + time->seconds;
	case VIEW_TIME_OF_DAY:
		return localtime_r(&start, &day) ? moment_of(day, time->seconds, false) : 0;
	case VIEW_TIME_NONE:
	case VIEW_TIME_MOMENT:
		break;
	}
	return time->seconds;
}
