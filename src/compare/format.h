/* SPDX-License-Identifier: MIT */
/* format.h - how numbers and changes are written, in every output the same. */
#ifndef PROBING_COMPARE_FORMAT_H
#define PROBING_COMPARE_FORMAT_H

#include "src/compare/compare.h"

/*
 * format_change - "+10.8 %", "new", "gone"; "~" for no significant change.
 * format_interval - "[+8.1, +13.4] %", "" if there is none.
 * @to: at least 48 bytes.
 */
void format_change(const struct estimate *estimate, char *to, size_t n_bytes);
void format_interval(const struct estimate *estimate, char *to, size_t n_bytes);

/* "passed", "cannot tell", "REGRESSED". */
const char *outcome_text(enum outcome outcome);

/* "102 ms to 113 ms, +10.8 % [+8.1, +13.4] %, p 0.001; why" */
void print_finding(const struct compare *compare, const struct compare_finding *finding, FILE *out);

/* "10 runs of base.db, other.db" of a side. */
void print_runs(const struct compare *compare, enum side side, FILE *out);

/* Remarks for the reader, one sentence a line: differences of the runs, inconclusive parts. Each after prefix. */
void print_remarks(const struct compare *compare, const char *prefix, FILE *out);

/* A stack's functions, outermost first, separated by ";". */
void print_path(const struct compare *compare, uint32_t node, FILE *out);

/* Number of rows of a table to write: as requested, without those that have no information. */
size_t row_limit(size_t n, unsigned max_rows);

#endif
