/* SPDX-License-Identifier: MIT */
/* row_cursor.h - values of an answer in ClickHouse's format RowBinary.
 *
 * The bytes come from a server: a value that does not fit into the rest marks the cursor as damaged, and all values from
 * there on are 0 or "".
 * Source: ClickHouse documentation, Interfaces, Formats, RowBinary.
 */
#ifndef PROBING_FLEET_ROW_CURSOR_H
#define PROBING_FLEET_ROW_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_cursor {
	const uint8_t *at, *end;
	bool is_damaged;
};

struct row_cursor row_cursor_of(const void *bytes, size_t n);
/* Whether another row begins. */
bool row_cursor_more(const struct row_cursor *cursor);

/* row_cursor_number - a UInt of n bytes (1 to 8), little-endian. row_cursor_int32 - an Int32. row_cursor_real - a Float64. */
uint64_t row_cursor_number(struct row_cursor *cursor, unsigned n_bytes);
int32_t row_cursor_int32(struct row_cursor *cursor);
double row_cursor_real(struct row_cursor *cursor);
/* row_cursor_count - the length of an Array; its elements, of at least one byte each, follow. */
size_t row_cursor_count(struct row_cursor *cursor);
/* row_cursor_text - a String, with '?' for NUL; owned by the caller. -ENOMEM. */
int row_cursor_text(struct row_cursor *cursor, char **ret);

#endif
