/* SPDX-License-Identifier: MIT */
/* interval.h - lengths of time as people write them. */
#ifndef PROBING_SQL_INTERVAL_H
#define PROBING_SQL_INTERVAL_H

#include <stddef.h>

/*
 * interval_parse - "5 minutes", "1 day 2 hours", "1.5h", "-30 s", "01:30:00" in seconds.
 * @text, @n: need not end in a NUL; a number without a unit is in seconds.
 * Errors: -EINVAL no interval; -ERANGE months or years, whose length is not fixed.
 */
int interval_parse(const char *text, size_t n, double *ret_seconds);

/* interval_unit - seconds of one "minute", "h", "weeks" ... Errors: as above. */
int interval_unit(const char *name, size_t n, double *ret_seconds);

#endif
