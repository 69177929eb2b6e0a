/* SPDX-License-Identifier: MIT */
/* multi_db_private.h - declarations that the files of multi_db share. */
#ifndef PROBING_SQL_MULTI_DB_PRIVATE_H
#define PROBING_SQL_MULTI_DB_PRIVATE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct multi_db_column {
	char *name;   /* in SQL */
	char *source; /* in the files; NULL: computed here (run, file) */
	char *type;   /* as the first file that has it declares it; "" */
	char *doc;
	bool is_alike; /* all files that have it declare the same type: they compare as we do */
	bool is_key;   /* rows are found by it without reading others */
};

struct multi_db_table {
	char *name;
	bool is_view;
	bool is_program; /* programs wrote its rows: it is in the schema python, in the files and here */
	bool is_run;     /* the table run, whose key is the file's number */
	struct multi_db_column *columns;
	size_t n_columns, columns_allocated;
	bool *has;      /* column c of file f: [c * n_files + f] */
	int64_t n_rows; /* of all files, as far as that is known at once: a guess */
};

struct multi_db {
	char **paths;
	sqlite3 **files;
	size_t n_files;
	struct multi_db_table *tables;
	size_t n_tables, tables_allocated;
};

enum { COLUMN_RUN, COLUMN_FILE /* of the table run */ };

/* multi_db_read.c: add the tables of the n-th file. Errors: -EBADMSG and others of reading; -ENOMEM. */
int multi_db_read_file(struct multi_db *multi_db, size_t n);
void multi_db_table_done(struct multi_db_table *table);

/* multi_db_table.c: the virtual table; the module's client data is the struct multi_db. */
extern const sqlite3_module multi_db_module;

/* ---- multi_db_plan.c ---- */

/* The query for each file. */
enum { MULTI_DB_MAX_COMPARED = 16, MULTI_DB_MAX_OPERATOR = 3 };
struct multi_db_plan {
	uint64_t used; /* a bit for each column, the last one for all from 63 on */
	struct multi_db_compared {
		size_t column;
		char operator[MULTI_DB_MAX_OPERATOR];
	} compared[MULTI_DB_MAX_COMPARED]; /* with a value each */
	size_t n_compared;
};

/* xBestIndex of the module. Returns SQLite's code, as the next one does. */
int multi_db_plan_make(const struct multi_db *multi_db, const struct multi_db_table *table, sqlite3_index_info *info);
int multi_db_plan_parse(const char *text, struct multi_db_plan *ret);

bool multi_db_file_has(const struct multi_db *multi_db, const struct multi_db_table *table, size_t file);

/*
 * multi_db_question - the statement for one file: its columns have the positions of the table's.
 * Parameter n is the value of the n-th comparison, from 1; comparisons with the file's number are not in it.
 * Allocated by sqlite3_malloc(); NULL: no memory.
 */
char *multi_db_question(const struct multi_db *multi_db, const struct multi_db_table *table,
			const struct multi_db_plan *plan, size_t file);

/* The columns as between the brackets of CREATE TABLE, with comments; of sqlite3_malloc(), NULL: no memory. */
char *multi_db_declaration(const struct multi_db_table *table);

#endif
