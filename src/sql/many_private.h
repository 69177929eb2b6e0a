/* many_private.h - what the files of "several recordings as one" share. */
#ifndef PROBING_SQL_MANY_PRIVATE_H
#define PROBING_SQL_MANY_PRIVATE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct many_column {
	char *name;   /* as it is asked for */
	char *source; /* as the files have it; NULL: it is made here (run, file) */
	char *type;   /* as the first file that has it declares it; "" */
	char *doc;
	bool is_alike; /* all files that have it declare the same type: they compare as we do */
	bool is_key;   /* rows are found by it without reading others */
};

struct many_table {
	char *name;
	bool is_view;
	bool is_run; /* the table run, whose key is the file's number */
	struct many_column *columns;
	size_t n_columns, columns_allocated;
	bool *has; /* column c of file f: [c * n_files + f] */
	int64_t n_rows; /* of all files, as far as that is known at once: a guess */
};

struct many {
	char **paths;
	sqlite3 **files;
	size_t n_files;
	struct many_table *tables;
	size_t n_tables, tables_allocated;
};

enum { COLUMN_RUN, COLUMN_FILE /* of the table run */ };

/* many_read.c: what the n-th file has is added to the tables. Errors: -EBADMSG and others of reading; -ENOMEM. */
int many_read_file(struct many *many, size_t n);
void many_table_done(struct many_table *table);

/* many_table.c: the virtual table; the module's client data is the struct many. */
extern const sqlite3_module many_module;

/* ---- many_plan.c ---- */

/* What is asked of each file. */
enum { MANY_MAX_COMPARED = 16, MANY_MAX_OPERATOR = 3 };
struct many_plan {
	uint64_t used; /* a bit for each column, the last one for all from 63 on */
	struct many_compared {
		size_t column;
		char operator[MANY_MAX_OPERATOR];
	} compared[MANY_MAX_COMPARED]; /* with a value each */
	size_t n_compared;
};

/* xBestIndex of the module. Returns SQLite's code, as the next one does. */
int many_plan_make(const struct many *many, const struct many_table *table, sqlite3_index_info *info);
int many_plan_parse(const char *text, struct many_plan *ret);

bool many_file_has(const struct many *many, const struct many_table *table, size_t file);

/*
 * many_question - the statement for one file: its columns stand where they stand in the table.
 * Parameter n is the value of the n-th comparison, from 1; those of the file's number are not in it.
 * Of sqlite3_malloc(), NULL: no memory.
 */
char *many_question(const struct many *many, const struct many_table *table, const struct many_plan *plan, size_t file);

/* The columns as between the brackets of CREATE TABLE, with comments; of sqlite3_malloc(), NULL: no memory. */
char *many_declaration(const struct many_table *table);

#endif
