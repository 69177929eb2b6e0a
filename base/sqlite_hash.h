/* SPDX-License-Identifier: MIT */
/* sqlite_hash.h - a row's values as a number: that of a row whose table has no numbers. */
#ifndef PROBING_BASE_SQLITE_HASH_H
#define PROBING_BASE_SQLITE_HASH_H

#include <sqlite3.h>

#include "base/util.h"

static inline uint64_t sqlite_hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	return mix64(hash_bytes(hash, bytes, n) + n);
}

/* sqlite_hash - continues hash with a value of the row that a statement is at. Equal values of other types are others. */
static inline uint64_t sqlite_hash(uint64_t hash, sqlite3_stmt *statement, int column)
{
	double real;
	int64_t integer;

	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_INTEGER:
		integer = sqlite3_column_int64(statement, column);
		return sqlite_hash_bytes(hash + SQLITE_INTEGER, &integer, sizeof integer);
	case SQLITE_FLOAT:
		real = sqlite3_column_double(statement, column);
		return sqlite_hash_bytes(hash + SQLITE_FLOAT, &real, sizeof real);
	case SQLITE_NULL:
		return mix64(hash + SQLITE_NULL);
	default:
		return sqlite_hash_bytes(hash + SQLITE_TEXT, sqlite3_column_blob(statement, column),
					 (size_t)sqlite3_column_bytes(statement, column));
	}
}

#endif
