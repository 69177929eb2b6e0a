/* SPDX-License-Identifier: MIT */
/* mistake.h - SQLite's error for a statement, as a sentence with its position. */
#ifndef PROBING_SQL_MISTAKE_H
#define PROBING_SQL_MISTAKE_H

#include <sqlite3.h>
#include <stddef.h>

#include "src/sql/dialect.h"

/*
 * mistake_explain - describe the connection's last error.
 * @dialect:   the whole text of the query; positions refer to the user's text.
 * @statement: start of the statement in dialect->text.
 * @to:        "line 1, column 8: no such column: nmae (did you mean name?)",
 *             then, if the position is known, the line and a caret under it.
 */
void mistake_explain(sqlite3 *db, const struct dialect *dialect, const char *statement, char *to, size_t n_bytes);

/* The same with a sentence of our own, placed at the statement's beginning. */
void mistake_refuse(const char *sentence, const struct dialect *dialect, const char *statement, char *to,
		    size_t n_bytes);

/* The same for a mistake that the dialect found. */
void mistake_of_dialect(const struct dialect *dialect, char *to, size_t n_bytes);

#endif
