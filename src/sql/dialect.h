/* SPDX-License-Identifier: MIT */
/* dialect.h - translates the SQL that users type into SQLite's.
 *
 *	now() - interval '5 minutes'            in seconds, as all times here
 *	percentile_cont(0.99) WITHIN GROUP (ORDER BY x DESC)
 *	x::integer                              CAST
 *	EXTRACT(hour FROM timestamp)
 *	a ILIKE b
 *	SHOW TABLES, SHOW COLUMNS FROM t, SHOW SCHEMAS, SHOW FUNCTIONS, DESCRIBE t
 *
 * Leaves SQLite's own syntax unchanged, byte for byte.
 */
#ifndef PROBING_SQL_DIALECT_H
#define PROBING_SQL_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

#include "src/sql/edits.h"

enum { DIALECT_MAX_MISTAKE = 200 };

struct dialect {
	const char *typed; /* borrowed */
	char *text;        /* for SQLite */
	struct piece *pieces;
	size_t n_pieces;
	/* The first mistake; from there on the text is unchanged. */
	bool has_mistake;
	size_t mistake_at;         /* in the user's text */
	size_t mistaken_statement; /* where its statement begins: behind a ';', or at 0 */
	char mistake[DIALECT_MAX_MISTAKE];
};

/*
 * sql_dialect_rewrite - rewrite a text of any number of statements.
 * @typed: must outlive @ret.
 * @ret:   ended with dialect_done(). A mistake is in there, and no error.
 * Errors: -ENOMEM.
 */
int sql_dialect_rewrite(const char *typed, struct dialect *ret);
void dialect_done(struct dialect *dialect);

/* The position in the user's text behind a position in text. */
size_t dialect_origin(const struct dialect *dialect, size_t at);

#endif
