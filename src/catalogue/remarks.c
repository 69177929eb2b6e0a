/* SPDX-License-Identifier: MIT */
/*
 * remarks.c - the catalogue as SQL functions, from which information_schema is made.
 */
#include "src/catalogue/private.h"

enum about { ABOUT_REMARKS, ABOUT_TYPE, ABOUT_UNIT };

static const char *text_of(sqlite3_value *value)
{
	const char *text = (const char *)sqlite3_value_text(value);

	return text ? text : "";
}

static const struct catalogue_table *find(sqlite3_value **arguments)
{
	return catalogue_find(text_of(arguments[0]), text_of(arguments[1]));
}

/* NULL becomes SQL NULL. */
static void answer(sqlite3_context *context, const char *text)
{
	sqlite3_result_text(context, text, -1, SQLITE_STATIC);
}

static void table_remarks(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	const struct catalogue_table *table = find(arguments);

	(void)n;
	answer(context, table ? table->doc : NULL);
}

static void column_about(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	const struct catalogue_table *table = find(arguments);
	const struct catalogue_column *column = table ? catalogue_find_column(table, text_of(arguments[2])) : NULL;

	(void)n;
	if (!column)
		return;
	switch ((enum about)(size_t)sqlite3_user_data(context)) {
	case ABOUT_REMARKS:
		answer(context, column->doc);
		break;
	case ABOUT_TYPE:
		answer(context, column->type[0] == 'A' ? "" : column->type);
		break;
	case ABOUT_UNIT:
		answer(context, column->unit);
		break;
	}
}

/* Another tool's view may refer to a missing table: then its columns are unknown. */
static void can_be_read(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	sqlite3_stmt *statement = NULL;
	const char *schema = text_of(arguments[0]);
	int code = SQLITE_NOMEM;
	char *sql;

	(void)n;
	if (sqlite3_stricmp(schema, "main") == 0) /* or its replacement in temp */
		sql = sqlite3_mprintf("SELECT 1 FROM \"%w\" LIMIT 0", text_of(arguments[1]));
	else
		sql = sqlite3_mprintf("SELECT 1 FROM \"%w\".\"%w\" LIMIT 0", schema, text_of(arguments[1]));
	if (sql)
		code = sqlite3_prepare_v2(sqlite3_context_db_handle(context), sql, -1, &statement, NULL);
	sqlite3_finalize(statement);
	sqlite3_free(sql);
	if (code == SQLITE_NOMEM)
		sqlite3_result_error_nomem(context);
	else
		sqlite3_result_int(context, code == SQLITE_OK);
}

int remarks_register(sqlite3 *db)
{
	static const struct {
		const char *name;
		int n;
		enum about about;
		void (*call)(sqlite3_context *context, int n, sqlite3_value **arguments);
	} functions[] = {
		{ "probing_table_remarks", 2, ABOUT_REMARKS, table_remarks },
		{ "probing_column_remarks", 3, ABOUT_REMARKS, column_about },
		{ "probing_column_type", 3, ABOUT_TYPE, column_about },
		{ "probing_column_unit", 3, ABOUT_UNIT, column_about },
		{ "probing_can_be_read", 2, ABOUT_REMARKS, can_be_read },
	};
	int code = SQLITE_OK;

	for (size_t i = 0; i < sizeof functions / sizeof functions[0] && code == SQLITE_OK; i++)
		code = sqlite3_create_function_v2(db, functions[i].name, functions[i].n, SQLITE_UTF8,
						  (void *)(size_t)functions[i].about, functions[i].call, NULL, NULL,
						  NULL);
	return code;
}
