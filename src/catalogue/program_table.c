/* SPDX-License-Identifier: MIT */
/* program_table.c - see program_table.h. */
#include "src/catalogue/catalogue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct catalogue_column first = {
	.name = "timestamp",
	.type = "REAL",
	.unit = "seconds since 1970",
	.doc = "when the row was appended",
	.not_null = true,
};
static const struct catalogue_column hidden[PROGRAM_N_HIDDEN] = {
	{ .name = "time_ns", .type = "INTEGER HIDDEN", .unit = "ns", .doc = "the same, CLOCK_MONOTONIC" },
	{ .name = "process", .type = "INTEGER HIDDEN", .doc = "PID of the process that appended it" },
};

char *program_table_name(const char *name)
{
	const char *before = sqlite3_strnicmp(name, "sqlite_", 7) == 0 ? "_" : "";
	char *made;

	return asprintf(&made, "%s%s%s", before, name, catalogue_find(PROGRAM_SCHEMA, name) ? "_" : "") < 0 ? NULL
													    : made;
}

int program_table_begin(const char *name, struct catalogue_table *ret)
{
	struct catalogue_column *columns = calloc(PROGRAM_MAX_COLUMNS + PROGRAM_N_HIDDEN, sizeof *columns);

	*ret = (struct catalogue_table){ .schema = PROGRAM_SCHEMA, .doc = "", .kind = CATALOGUE_VIRTUAL };
	ret->name = program_table_name(name);
	ret->columns = columns;
	if (!columns || !ret->name)
		return -ENOMEM;
	columns[0] = first;
	ret->n_columns = 1;
	return 0;
}

static bool is_ours(const char *name)
{
	bool is = sqlite3_stricmp(name, first.name) == 0;

	for (size_t i = 0; i < PROGRAM_N_HIDDEN; i++)
		is |= sqlite3_stricmp(name, hidden[i].name) == 0;
	return is;
}

/* @name: taken over if it becomes a column. */
static uint16_t find_or_add(struct catalogue_table *table, char **name, const char *type)
{
	struct catalogue_column *columns = (struct catalogue_column *)(uintptr_t)table->columns;

	for (size_t i = 0; i < table->n_columns; i++)
		if (sqlite3_stricmp(columns[i].name, *name) == 0) {
			if (strcmp(columns[i].type, type) != 0)
				columns[i].type = "ANY";
			return (uint16_t)i;
		}
	if (table->n_columns == PROGRAM_MAX_COLUMNS)
		return PROGRAM_NO_COLUMN;
	columns[table->n_columns] = (struct catalogue_column){ .name = *name, .type = type, .doc = "" };
	*name = NULL;
	return (uint16_t)table->n_columns++;
}

/* Also "timestamp_" gets one more: else it would be one column with the program's "timestamp". */
static bool needs_underscore(const char *name)
{
	size_t n = strlen(name);

	while (n > 0 && name[n - 1] == '_')
		n--;
	if (n == strlen(first.name) && sqlite3_strnicmp(name, first.name, (int)n) == 0)
		return true;
	for (size_t i = 0; i < PROGRAM_N_HIDDEN; i++)
		if (n == strlen(hidden[i].name) && sqlite3_strnicmp(name, hidden[i].name, (int)n) == 0)
			return true;
	return false;
}

int program_table_add(struct catalogue_table *table, const char *name, const char *type, uint16_t *ret)
{
	char *made;

	if (asprintf(&made, "%s%s", name, needs_underscore(name) ? "_" : "") < 0)
		return -ENOMEM;
	*ret = find_or_add(table, &made, type);
	free(made);
	return 0;
}

void program_table_end(struct catalogue_table *table)
{
	struct catalogue_column *columns = (struct catalogue_column *)(uintptr_t)table->columns;

	for (size_t i = 0; i < PROGRAM_N_HIDDEN; i++)
		columns[table->n_columns++] = hidden[i];
}

void program_table_done(struct catalogue_table *table)
{
	for (size_t i = 1; i < table->n_columns; i++)
		if (!is_ours(table->columns[i].name))
			free((char *)(uintptr_t)table->columns[i].name);
	free((struct catalogue_column *)(uintptr_t)table->columns);
	free((char *)(uintptr_t)table->name);
	*table = (struct catalogue_table){ 0 };
}
