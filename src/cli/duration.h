/* SPDX-License-Identifier: MIT */
/* duration.h - lengths of time, as people write them. */
#ifndef PROBING_CLI_DURATION_H
#define PROBING_CLI_DURATION_H

/*
 * duration_parse - "90", "1.5" (seconds), "500ms", "250us", "90s", "2m", "2min", "1h", "1h30m", "2d", in seconds.
 * @ret: not below 0, finite. Errors: -EINVAL it is none of these.
 */
int duration_parse(const char *text, double *ret);

#endif
