/* SPDX-License-Identifier: MIT */
/* decimal.h - numbers in texts, independent of the locale. */
#ifndef PROBING_IMPORT_DECIMAL_H
#define PROBING_IMPORT_DECIMAL_H

#include "src/import/sink.h"

/* A whole text as "12", "1.5", "-3e+06"; false: it is no number. */
bool piece_decimal(struct piece piece, double *ret);

/* A time in nvprof's form, "1.6160us": whole nanoseconds; false: it is no time. */
bool piece_time(struct piece piece, int64_t *ret_ns);

/* Nanoseconds of a unit ("ns", "us", "ms", "s", "min"); 0: it is none. */
double time_unit(struct piece unit);

/* The nearest whole number; false: it does not fit. */
bool whole_number(double value, int64_t *ret);

#endif
