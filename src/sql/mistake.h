/* SPDX-License-Identifier: MIT */
/* mistake.h - what SQLite says about a statement, as a sentence with its place. */
#ifndef PROBING_SQL_MISTAKE_H
#define PROBING_SQL_MISTAKE_H

#include <sqlite3.h>
#include <stddef.h>

#include "src/sql/dialect.h"

/*
 * mistake_explain - describe the connection's last error.
 * @dialect:   the whole text that is being run; places are told in what was typed.
 * @statement: where in dialect->text the statement starts.
 * @to:        "line 1, column 8: no such column: nmae (did you mean name?)",
 *             then, where the place is known, the line and a caret under it.
 */
void mistake_explain(sqlite3 *db, const struct dialect *dialect, const char *statement, char *to, size_t n_bytes);

/* The same with a sentence of our own, placed at the statement's beginning. */
void mistake_refuse(const char *sentence, const struct dialect *dialect, const char *statement, char *to,
		    size_t n_bytes);

/* The same for what the dialect could not understand. */
void mistake_of_dialect(const struct dialect *dialect, char *to, size_t n_bytes);

#endif
