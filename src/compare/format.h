/* SPDX-License-Identifier: MIT */
/* format.h - how numbers and changes are written, in every output the same. */
#ifndef PROBING_COMPARE_FORMAT_H
#define PROBING_COMPARE_FORMAT_H

#include "src/compare/compare.h"

/*
 * say_change - "+10.8 %", "new", "gone"; "~" where nothing is known to have changed.
 * say_interval - "[+8.1, +13.4] %", "" where there is none.
 * @to: at least 48 bytes.
 */
void say_change(const struct estimate *estimate, char *to, size_t n_bytes);
void say_interval(const struct estimate *estimate, char *to, size_t n_bytes);

/* "passed", "cannot tell", "REGRESSED". */
const char *say_outcome(enum outcome outcome);

/* "102 ms to 113 ms, +10.8 % [+8.1, +13.4] %, p 0.001; why" */
void say_finding(const struct compare *compare, const struct compare_finding *finding, FILE *out);

/* "10 runs of base.db, other.db" of a side. */
void say_runs(const struct compare *compare, enum side side, FILE *out);

/* One sentence a line on what the reader has to know: what differs, what cannot be told. Each after prefix. */
void say_remarks(const struct compare *compare, const char *prefix, FILE *out);

/* A stack's functions, outermost first, separated by ";". */
void say_path(const struct compare *compare, uint32_t node, FILE *out);

/* How many of the rows of a table are written: those asked for, and none that says nothing. */
size_t say_rows(size_t n, unsigned max_rows);

#endif
