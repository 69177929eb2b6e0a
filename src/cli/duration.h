/* SPDX-License-Identifier: MIT */
/* duration.h - lengths of time, as people write them. */
#ifndef PROBING_CLI_DURATION_H
#define PROBING_CLI_DURATION_H

#include <stdint.h>

/*
 * duration_parse - "90", "1.5" (seconds), "500ms", "250us", "90s", "2m", "2min", "1h", "1h30m", "2d", in seconds.
 * @ret: not below 0, finite. Errors: -EINVAL it is none of these.
 */
int duration_parse(const char *text, double *ret);

/*
 * duration_format_left - ", 12 s left", from the rate of work so far; "" in the first two seconds, whose rate says little,
 * at the end, and if @n_all is unknown (0).
 */
enum { DURATION_LEFT_BYTES = 32 };
void duration_format_left(uint64_t elapsed_ns, uint64_t n_done, uint64_t n_all, char to[DURATION_LEFT_BYTES]);

#endif
