/* SPDX-License-Identifier: MIT */
/* csv.h - a line of values with commas between them, some in quotes. */
#ifndef PROBING_IMPORT_CSV_H
#define PROBING_IMPORT_CSV_H

#include "src/import/sink.h"

enum { CSV_MAX_FIELDS = 64 };

/*
 * csv_split - the values of a line; a doubled quote within quotes stays doubled.
 * Returns how many; drops those beyond CSV_MAX_FIELDS.
 */
size_t csv_split(struct piece line, struct piece fields[CSV_MAX_FIELDS]);

#endif
