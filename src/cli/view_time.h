/* SPDX-License-Identifier: MIT */
/* view_time.h - moments of a recording, as people write them. */
#ifndef PROBING_CLI_VIEW_TIME_H
#define PROBING_CLI_VIEW_TIME_H

/* All zero: none was given. */
struct view_time {
	enum { VIEW_TIME_NONE, VIEW_TIME_OFFSET, VIEW_TIME_MOMENT, VIEW_TIME_OF_DAY } type;
	const char *text; /* as it was given; borrowed */
	double seconds;   /* since the recording's start, since 1970, since midnight */
};

/*
 * view_time_parse - "12.5", "90s", "2m", "1h", since the start; "14:05", "14:05:30.5" of the day when the recording
 * began, "2026-03-01 14:05", with T for the space, both local time unless a Z follows the date's; a number from
 * 10^9 on means seconds since 1970. Errors: -EINVAL any other text.
 */
int view_time_parse(const char *text, struct view_time *ret);

/* view_time_resolve - in seconds since 1970. @started: when the recording began, likewise. */
double view_time_resolve(const struct view_time *time, double started);

#endif
