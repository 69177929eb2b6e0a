/* SPDX-License-Identifier: MIT */
/* row_vtab.h - what the virtual tables over blocks of rows share: their plans, values and failures. Private. */
#ifndef PROBING_STORE_ROW_VTAB_H
#define PROBING_STORE_ROW_VTAB_H

#include <sqlite3.h>

#include "src/store/program_rows.h"

/* Bounds that a plan has, in idxNum; their values come in this order. ROW_VTAB_AT is alone: one moment, as a join by time asks for. */
enum { ROW_VTAB_SINCE = 1, ROW_VTAB_UNTIL = 2, ROW_VTAB_AT = 4 };

/* row_vtab_plan - xBestIndex: bounds of the column with the time choose blocks; SQLite checks each row again. */
void row_vtab_plan(sqlite3_index_info *info, int time_column);

/* row_vtab_give - xColumn: a value of a row. */
void row_vtab_give(sqlite3_context *context, const struct row_value *value);

/* row_vtab_fail - SQLite's code for an error of reading a block of a table with this name. @error: -EBADMSG, -EPROTONOSUPPORT, -ENOMEM. */
int row_vtab_fail(sqlite3_vtab *base, int error, const char *name);

/* row_vtab_judge - the result of NAME_block_error(): @error of reading a block, and whether it has as many rows as its column rows says. */
void row_vtab_judge(sqlite3_context *context, int error, sqlite3_value *n_said, size_t n_found);

#endif
