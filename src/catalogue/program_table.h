/* SPDX-License-Identifier: MIT */
/* program_table.h - a part of catalogue.h: descriptions of tables that a program writes: names and columns are the program's.
 *
 * They are in the schema python. Names of ours stay ours: a table or column whose name is taken gets "_" appended. The
 * first column is timestamp; the last two are hidden: time_ns and process.
 */
#ifndef PROBING_CATALOGUE_PROGRAM_TABLE_H
#define PROBING_CATALOGUE_PROGRAM_TABLE_H

#include <stdint.h>

struct catalogue_table;

enum {
	PROGRAM_MAX_COLUMNS = 512, /* of a table, with ours */
	PROGRAM_N_HIDDEN = 2,
};
#define PROGRAM_NO_COLUMN UINT16_MAX
#define PROGRAM_SCHEMA "python"

/* program_table_begin - an empty table. @ret: ended with program_table_done(), also after an error. -ENOMEM. */
int program_table_begin(const char *name, struct catalogue_table *ret);

/*
 * program_table_add - add a column, or find that one of that name is there.
 * @type: INTEGER, REAL, TEXT or ANY. One that is there with another type becomes ANY.
 * @ret:  its place; PROGRAM_NO_COLUMN: there are too many.
 * -ENOMEM.
 */
int program_table_add(struct catalogue_table *table, const char *name, const char *type, uint16_t *ret);

/* program_table_end - add the hidden columns; no more can be added. */
void program_table_end(struct catalogue_table *table);
void program_table_done(struct catalogue_table *table);

/* program_table_name - the name in SQL of a program's table. Owned by the caller; NULL: no memory. */
char *program_table_name(const char *name);

#endif
