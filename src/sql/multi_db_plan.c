/* SPDX-License-Identifier: MIT */
/* multi_db_plan.c - the constraints that SQLite passes to us, and the query for a file.
 *
 * A plan is a text, because SQLite passes it on as one: the used columns, in hexadecimal, then "COLUMN OPERATOR" for
 * each comparison, in the order of their values: "1f,0=,3>".
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/sql/multi_db_private.h"
#include "src/sql/tables.h"

/* A declared type is printed and parsed again, so keep only plain ones. */
static const char *plain_type(const char *type)
{
	return type[strspn(type, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ")] == '\0' ? type : "";
}

char *multi_db_declaration(const struct multi_db_table *table)
{
	sqlite3_str *text = sqlite3_str_new(NULL);

	for (size_t i = 0; i < table->n_columns; i++) {
		const struct multi_db_column *column = &table->columns[i];

		sqlite3_str_appendf(text, "  \"%w\" %s%s%s%s\n", column->name, plain_type(column->type),
				    i + 1 < table->n_columns ? "," : "", column->doc[0] ? " -- " : "", column->doc);
	}
	return sqlite3_str_finish(text);
}

static const char *operator_of(int op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return "=";
	case SQLITE_INDEX_CONSTRAINT_LT:
		return "<";
	case SQLITE_INDEX_CONSTRAINT_LE:
		return "<=";
	case SQLITE_INDEX_CONSTRAINT_GT:
		return ">";
	case SQLITE_INDEX_CONSTRAINT_GE:
		return ">=";
	default:
		return NULL;
	}
}

static bool can_pass_on(const struct multi_db_table *table, sqlite3_index_info *info, int n)
{
	int column = info->aConstraint[n].iColumn;

	if (!info->aConstraint[n].usable || !operator_of(info->aConstraint[n].op) || column < 0)
		return false;
	if (column != COLUMN_RUN && !table->columns[column].is_alike)
		return false;
	return strcmp(sqlite3_vtab_collation(info, n), "BINARY") == 0;
}

/* Estimated number of rows, and cost in rows read. */
struct estimate {
	double rows, cost;
	bool is_found; /* by key */
};

static void estimate(const struct multi_db *multi_db, const struct multi_db_table *table, int column, bool is_equal,
		     struct estimate *to)
{
	if (is_equal && column == COLUMN_RUN) {
		to->rows /= (double)multi_db->n_files;
		to->cost /= (double)multi_db->n_files;
	} else if (is_equal && table->columns[column].is_key) {
		to->is_found = true;
		to->rows /= 1000;
	} else {
		to->rows /= is_equal ? 20 : 4;
	}
}

int multi_db_plan_make(const struct multi_db *multi_db, const struct multi_db_table *table, sqlite3_index_info *info)
{
	struct estimate sum = { (double)table->n_rows, (double)table->n_rows, false };
	sqlite3_str *plan = sqlite3_str_new(NULL);
	int n = 0;

	sqlite3_str_appendf(plan, "%llx", (unsigned long long)info->colUsed);
	for (int i = 0; i < info->nConstraint && n < MULTI_DB_MAX_COMPARED; i++) {
		int column = info->aConstraint[i].iColumn;

		if (!can_pass_on(table, info, i))
			continue;
		info->aConstraintUsage[i].argvIndex = ++n;
		sqlite3_str_appendf(plan, ",%d%s", column, operator_of(info->aConstraint[i].op));
		estimate(multi_db, table, column, info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ, &sum);
	}
	info->estimatedRows = (sqlite3_int64)MAX(sum.rows, 1);
	info->estimatedCost = sum.is_found ? MAX(sum.rows, 1) * 20 : sum.cost * 2 + 100;
	info->idxStr = sqlite3_str_finish(plan);
	info->needToFreeIdxStr = 1;
	return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

int multi_db_plan_parse(const char *text, struct multi_db_plan *ret)
{
	struct multi_db_plan plan = { 0 };
	char *at;

	plan.used = strtoull(text, &at, 16);
	while (*at == ',' && plan.n_compared < MULTI_DB_MAX_COMPARED) {
		struct multi_db_compared *to = &plan.compared[plan.n_compared++];
		size_t n;

		to->column = strtoul(at + 1, &at, 10);
		n = strspn(at, "<=>");
		if (n == 0 || n >= MULTI_DB_MAX_OPERATOR)
			return SQLITE_INTERNAL;
		memcpy(to->operator, at, n);
		to->operator[n] = '\0';
		at += n;
	}
	*ret = plan;
	return SQLITE_OK;
}

static bool has_column(const struct multi_db *multi_db, const struct multi_db_table *table, size_t column, size_t file)
{
	return table->columns[column].source && table->has[column * multi_db->n_files + file];
}

bool multi_db_file_has(const struct multi_db *multi_db, const struct multi_db_table *table, size_t file)
{
	for (size_t i = 0; i < table->n_columns; i++)
		if (has_column(multi_db, table, i, file))
			return true;
	return false;
}

/* Columns keep their positions; unused ones are NULL. */
char *multi_db_question(const struct multi_db *multi_db, const struct multi_db_table *table,
			const struct multi_db_plan *plan, size_t file)
{
	sqlite3_str *text = sqlite3_str_new(NULL);
	const char *word = " WHERE";

	for (size_t i = 0; i < table->n_columns; i++) {
		bool is_used = (plan->used >> MIN(i, 63) & 1) != 0;

		sqlite3_str_appendall(text, i == 0 ? "SELECT " : ", ");
		if (is_used && has_column(multi_db, table, i, file))
			sqlite3_str_appendf(text, "\"%w\"", table->columns[i].source);
		else
			sqlite3_str_appendall(text, "NULL");
	}
	sqlite3_str_appendf(text, " FROM %s.\"%w\"",
			    table->is_program ? PROGRAM_SCHEMA : tables_schema(multi_db->files[file], table->name),
			    table->name);
	for (size_t i = 0; i < plan->n_compared; i++) {
		const struct multi_db_compared *compared = &plan->compared[i];

		if (compared->column == COLUMN_RUN)
			continue;
		if (has_column(multi_db, table, compared->column, file))
			sqlite3_str_appendf(text, "%s \"%w\" %s ?%d", word, table->columns[compared->column].source,
					    compared->operator,(int) i + 1);
		else
			sqlite3_str_appendf(text, "%s 0", word); /* a comparison with NULL matches nothing */
		word = " AND";
	}
	return sqlite3_str_finish(text);
}
