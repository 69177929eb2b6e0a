/* mistake.h - what SQLite says about a statement, as a sentence with its place. */
#ifndef PROBING_SQL_MISTAKE_H
#define PROBING_SQL_MISTAKE_H

#include <sqlite3.h>
#include <stddef.h>

/*
 * mistake_explain - describe the connection's last error.
 * @text:      the whole text that is being run.
 * @statement: where in it the statement starts.
 * @to:        "line 1, column 8: no such column: nmae (did you mean name?)",
 *             then, where the place is known, the line and a caret under it.
 */
void mistake_explain(sqlite3 *db, const char *text, const char *statement, char *to,
		     size_t n_bytes);

/* The same with a sentence of our own, placed at the statement's beginning. */
void mistake_refuse(const char *sentence, const char *text, const char *statement, char *to,
		    size_t n_bytes);

#endif
