/* SPDX-License-Identifier: MIT */
/* cell.h - text in a column of a terminal. */
#ifndef PROBING_REPORT_CELL_H
#define PROBING_REPORT_CELL_H

#include <stdint.h>
#include <stdio.h>

/* The part of a text that is cut if it does not fit. */
enum cell_cut { CELL_CUT_MIDDLE, CELL_CUT_START };

/*
 * cell_put - write a name in at most @columns columns.
 * Control characters and bytes that are not UTF-8 never reach the terminal.
 * Returns the columns used.
 */
unsigned cell_put(FILE *out, const char *text, unsigned columns, enum cell_cut cut);

/*
 * cell_put_source - write a line of a source in at most @columns columns, 0: no limit.
 * Tabs become spaces; control characters "^[", other invisible ones "<U+202E>", and bytes that are not
 * UTF-8 "\xff".
 */
void cell_put_source(FILE *out, const char *text, unsigned columns);

/* A duration in at most 7 columns: "12.34 s", "5m 03s". @to: at least 24 bytes. */
void cell_format_ns(uint64_t ns, char *to, size_t n_bytes);

/* A number in at most 7 columns: "1234", "56.7 k", "8.90 M". @to: at least 24 bytes. */
void cell_format_count(uint64_t n, char *to, size_t n_bytes);

#endif
