/* SPDX-License-Identifier: MIT */
/*
 * time.c - times: seconds since 1970 (UTC) as numbers, everywhere.
 *
 * An argument may also be a text in ISO 8601: "2024-05-01", "2024-05-01 12:30:00.5",
 * with T between them, with Z or +02:00 behind. All parts are in UTC, as the file's times.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "src/sql/functions/functions_private.h"
#include "src/sql/interval.h"

enum unit {
	UNIT_YEAR,
	UNIT_QUARTER,
	UNIT_MONTH,
	UNIT_WEEK,
	UNIT_DAY,
	UNIT_HOUR,
	UNIT_MINUTE,
	UNIT_SECOND,
	UNIT_MILLISECOND,
	UNIT_DOW,
	UNIT_ISODOW,
	UNIT_DOY,
	UNIT_EPOCH,
	N_UNITS
};

/* clang-format off */
static const char *const unit_names[N_UNITS] = {
	[UNIT_YEAR] = "year", [UNIT_QUARTER] = "quarter", [UNIT_MONTH] = "month", [UNIT_WEEK] = "week", [UNIT_DAY] = "day",
	[UNIT_HOUR] = "hour", [UNIT_MINUTE] = "minute", [UNIT_SECOND] = "second", [UNIT_MILLISECOND] = "millisecond",
	[UNIT_DOW] = "dow", [UNIT_ISODOW] = "isodow", [UNIT_DOY] = "doy", [UNIT_EPOCH] = "epoch",
};
/* clang-format on */

/* Years 1 to 9999. */
static const double first_time = -62135596800.0, last_time = 253402300799.0;

/* ---- Value to seconds ---- */

/* Parse "Z", "+02:00" or "" as seconds; false: another text. */
static bool parse_zone(const char *text, double *ret)
{
	int hours, minutes = 0, n = 0;
	char sign;

	text += strspn(text, " ");
	*ret = 0;
	if (strcmp(text, "") == 0 || strcmp(text, "Z") == 0 || strcmp(text, "z") == 0 || strcmp(text, "UTC") == 0)
		return true;
	if (sscanf(text, "%c%2d%n:%2d%n", &sign, &hours, &n, &minutes, &n) < 2 || (sign != '+' && sign != '-') ||
	    text[n] || hours < 0 || hours > 14 || minutes < 0 || minutes > 59)
		return false;
	*ret = (sign == '-' ? -1 : 1) * (hours * 3600.0 + minutes * 60.0);
	return true;
}

static bool parse_time(const char *text, double *ret)
{
	struct tm tm = { 0 };
	double seconds = 0, zone = 0;
	int n = 0;

	if (sscanf(text, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &n) != 3)
		return false;
	text += n;
	if ((*text == ' ' || *text == 'T') && text[1] >= '0' && text[1] <= '9') {
		if (sscanf(text + 1, "%2d:%2d%n:%9lf%n", &tm.tm_hour, &tm.tm_min, &n, &seconds, &n) < 2)
			return false;
		text += 1 + n;
	}
	if (!parse_zone(text, &zone) || tm.tm_year < 1 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
	    tm.tm_mday > 31 || tm.tm_hour < 0 || tm.tm_hour > 24 || tm.tm_min < 0 || tm.tm_min > 59 || seconds < 0 ||
	    seconds >= 61)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*ret = (double)timegm(&tm) + seconds - zone;
	return true;
}

static bool seconds_of(sqlite3_value *value, double *ret)
{
	const char *text;
	double seconds;
	char *end;

	switch (sqlite3_value_type(value)) {
	case SQLITE_INTEGER:
	case SQLITE_FLOAT:
		seconds = sqlite3_value_double(value);
		break;
	case SQLITE_TEXT:
		text = (const char *)sqlite3_value_text(value);
		if (!text)
			return false;
		if (parse_time(text, &seconds))
			break;
		seconds = strtod(text, &end);
		if (end == text || *end)
			return false;
		break;
	default:
		return false;
	}
	if (!(seconds >= first_time && seconds <= last_time))
		return false;
	*ret = seconds;
	return true;
}

/* ---- Parts of a time ---- */

static struct tm parts_of(double seconds)
{
	time_t whole = (time_t)floor(seconds);
	struct tm tm = { 0 };

	gmtime_r(&whole, &tm);
	return tm;
}

/* ISO 8601: week 1 contains the year's first Thursday. */
static int iso_week(const struct tm *tm)
{
	char text[8];

	strftime(text, sizeof text, "%V", tm);
	return atoi(text);
}

static void part(sqlite3_context *context, enum unit unit, double seconds)
{
	struct tm tm = parts_of(seconds);
	double second = tm.tm_sec + (seconds - floor(seconds));

	switch (unit) {
	case UNIT_YEAR:
		sqlite3_result_int(context, tm.tm_year + 1900);
		break;
	case UNIT_QUARTER:
		sqlite3_result_int(context, tm.tm_mon / 3 + 1);
		break;
	case UNIT_MONTH:
		sqlite3_result_int(context, tm.tm_mon + 1);
		break;
	case UNIT_WEEK:
		sqlite3_result_int(context, iso_week(&tm));
		break;
	case UNIT_DAY:
		sqlite3_result_int(context, tm.tm_mday);
		break;
	case UNIT_HOUR:
		sqlite3_result_int(context, tm.tm_hour);
		break;
	case UNIT_MINUTE:
		sqlite3_result_int(context, tm.tm_min);
		break;
	case UNIT_SECOND:
		sqlite3_result_double(context, second);
		break;
	case UNIT_MILLISECOND:
		sqlite3_result_double(context, second * 1000);
		break;
	case UNIT_DOW:
		sqlite3_result_int(context, tm.tm_wday);
		break;
	case UNIT_ISODOW:
		sqlite3_result_int(context, tm.tm_wday == 0 ? 7 : tm.tm_wday);
		break;
	case UNIT_DOY:
		sqlite3_result_int(context, tm.tm_yday + 1);
		break;
	case UNIT_EPOCH:
		sqlite3_result_double(context, seconds);
		break;
	case N_UNITS:
		break;
	}
}

static bool unit_of(sqlite3_context *context, sqlite3_value *value, enum unit *ret)
{
	const char *name = (const char *)sqlite3_value_text(value);
	char *sentence;

	for (int unit = 0; name && unit < N_UNITS; unit++)
		if (sqlite3_stricmp(name, unit_names[unit]) == 0 ||
		    (sqlite3_strnicmp(name, unit_names[unit], (int)strlen(unit_names[unit])) == 0 &&
		     sqlite3_stricmp(name + strlen(unit_names[unit]), "s") == 0)) {
			*ret = (enum unit)unit;
			return true;
		}
	sentence = sqlite3_mprintf(
		"there is no part %Q of a time: there are year, quarter, month, week, day, hour, minute, "
		"second, millisecond, dow, isodow, doy, epoch",
		name);
	sqlite3_result_error(context, sentence ? sentence : "there is no such part of a time", -1);
	sqlite3_free(sentence);
	return false;
}

static void call_part(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	const enum unit *unit = sqlite3_user_data(context);
	double seconds;

	(void)n;
	if (seconds_of(arguments[0], &seconds))
		part(context, *unit, seconds);
}

static void call_date_part(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	enum unit unit;
	double seconds;

	(void)n;
	if (unit_of(context, arguments[0], &unit) && seconds_of(arguments[1], &seconds))
		part(context, unit, seconds);
}

/* ---- Start of a unit ---- */

static double truncated(enum unit unit, double seconds)
{
	static const double lengths[N_UNITS] = {
		[UNIT_DAY] = 86400, [UNIT_HOUR] = 3600, [UNIT_MINUTE] = 60, [UNIT_SECOND] = 1, [UNIT_MILLISECOND] = 1e-3
	};
	struct tm tm = parts_of(seconds), begin = { .tm_year = tm.tm_year, .tm_mday = 1 };

	if (unit == UNIT_MILLISECOND)
		return floor(seconds * 1000) / 1000;
	if (lengths[unit] > 0)
		return floor(seconds / lengths[unit]) * lengths[unit];
	if (unit == UNIT_WEEK) /* 1970-01-01 was a Thursday */
		return floor((seconds + 3 * 86400.0) / 604800) * 604800 - 3 * 86400.0;
	if (unit == UNIT_MONTH)
		begin.tm_mon = tm.tm_mon;
	if (unit == UNIT_QUARTER)
		begin.tm_mon = tm.tm_mon / 3 * 3;
	return (double)timegm(&begin);
}

static void call_date_trunc(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	enum unit unit;
	double seconds;

	(void)n;
	if (!unit_of(context, arguments[0], &unit))
		return;
	if (unit > UNIT_MILLISECOND)
		sqlite3_result_error(
			context, "a time is cut to year, quarter, month, week, day, hour, minute, second, millisecond",
			-1);
	else if (seconds_of(arguments[1], &seconds))
		sqlite3_result_double(context, truncated(unit, seconds));
}

/* Buckets of any length, counted from 1970. */
static void call_time_bucket(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	double length = sqlite3_value_double(arguments[0]), seconds;
	const char *text = (const char *)sqlite3_value_text(arguments[0]);

	(void)n;
	if (sqlite3_value_type(arguments[0]) == SQLITE_TEXT && text && interval_parse(text, strlen(text), &length) < 0)
		length = 0;
	if (!(length > 0))
		sqlite3_result_error(context, "a bucket is longer than 0 seconds", -1);
	else if (seconds_of(arguments[1], &seconds))
		sqlite3_result_double(context, floor(seconds / length) * length);
}

/* ---- Now, and text ---- */

static void call_now(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	(void)n;
	(void)arguments;
	sqlite3_result_double(context, (double)realtime_ns() / 1e9);
}

static void call_to_timestamp(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	double seconds;

	(void)n;
	if (seconds_of(arguments[0], &seconds))
		sqlite3_result_double(context, seconds);
	else if (sqlite3_value_type(arguments[0]) != SQLITE_NULL)
		sqlite3_result_error(context, "a time is seconds since 1970, or a text like 2024-05-01 12:30:00", -1);
}

static void call_time_text(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	double seconds;
	struct tm tm;
	char text[64];

	(void)n;
	if (!seconds_of(arguments[0], &seconds))
		return;
	seconds = floor(seconds * 1000 + 0.5) / 1000;
	tm = parts_of(seconds);
	snprintf(text, sizeof text, "%04d-%02d-%02d %02d:%02d:%02d.%03d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
		 tm.tm_hour, tm.tm_min, tm.tm_sec, (int)((seconds - floor(seconds)) * 1000 + 0.5) % 1000);
	sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static void call_interval_seconds(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	const char *text = (const char *)sqlite3_value_text(arguments[0]);
	double seconds;

	(void)n;
	if (!text)
		return;
	if (interval_parse(text, strlen(text), &seconds) < 0)
		sqlite3_result_error(context, "a length of time is a text like 5 minutes, 1.5 hours, 1 day 2 hours",
				     -1);
	else
		sqlite3_result_double(context, seconds);
}

/* clang-format off */
static const enum unit units[N_UNITS] = {
	UNIT_YEAR, UNIT_QUARTER, UNIT_MONTH, UNIT_WEEK, UNIT_DAY, UNIT_HOUR, UNIT_MINUTE, UNIT_SECOND,
	UNIT_MILLISECOND, UNIT_DOW, UNIT_ISODOW, UNIT_DOY, UNIT_EPOCH,
};
/* clang-format on */

#define PURE (SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS)
/* clang-format off */
#define PART(name_, unit_, what_) { name_, 1, name_ "(timestamp): " what_, PURE, (void *)&units[unit_], call_part, NULL, NULL }

const struct sql_function time_functions[] = {
	/* SQLite may treat now() as deterministic: it calls it once per run of a statement. */
	{ "now", 0, "now(): seconds since 1970, with their fraction", SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL,
	  call_now, NULL, NULL },
	PART("year", UNIT_YEAR, "its year, UTC"),
	PART("quarter", UNIT_QUARTER, "its quarter, 1 to 4, UTC"),
	PART("month", UNIT_MONTH, "its month, 1 to 12, UTC"),
	PART("week", UNIT_WEEK, "its week, 1 to 53, as ISO 8601 counts, UTC"),
	PART("day", UNIT_DAY, "its day of the month, 1 to 31, UTC"),
	PART("dayofweek", UNIT_DOW, "its day of the week, 0 is Sunday, UTC"),
	PART("dayofyear", UNIT_DOY, "its day of the year, from 1, UTC"),
	PART("hour", UNIT_HOUR, "its hour, 0 to 23, UTC"),
	PART("minute", UNIT_MINUTE, "its minute, 0 to 59"),
	PART("second", UNIT_SECOND, "its second, with the fraction"),
	PART("epoch", UNIT_EPOCH, "seconds since 1970"),
	{ "date_part", 2, "date_part('hour', timestamp): one part of it, as EXTRACT(hour FROM timestamp)", PURE, NULL,
	  call_date_part, NULL, NULL },
	{ "date_trunc", 2, "date_trunc('hour', timestamp): the beginning of its year ... hour ... millisecond, UTC", PURE, NULL,
	  call_date_trunc, NULL, NULL },
	{ "time_bucket", 2, "time_bucket('5 minutes', timestamp): the start of its interval of that length", PURE, NULL,
	  call_time_bucket, NULL, NULL },
	{ "to_timestamp", 1, "to_timestamp('2024-05-01 12:30:00'): seconds since 1970", PURE, NULL, call_to_timestamp, NULL,
	  NULL },
	{ "time_text", 1, "time_text(timestamp): 2024-05-01 12:30:00.000, UTC", PURE, NULL, call_time_text, NULL, NULL },
	{ "interval_seconds", 1, "interval_seconds('5 minutes'): 300, as interval '5 minutes'", PURE, NULL,
	  call_interval_seconds, NULL, NULL },
	{ 0 },
};
/* clang-format on */
