/* SPDX-License-Identifier: MIT */
/* row_vtab.c - see row_vtab.h. Source: sqlite.org/vtab.html */
#include "src/store/row_vtab.h"

#include <errno.h>

void row_vtab_plan(sqlite3_index_info *info, int time_column)
{
	int since = -1, until = -1, at = -1, n = 0;

	for (int i = 0; i < info->nConstraint; i++) {
		unsigned op = info->aConstraint[i].op;

		if (info->aConstraint[i].iColumn != time_column || !info->aConstraint[i].usable)
			continue;
		if (op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE)
			since = i;
		if (op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE)
			until = i;
		if (op == SQLITE_INDEX_CONSTRAINT_EQ)
			at = i;
	}
	if (at >= 0) {
		info->aConstraintUsage[at].argvIndex = 1;
		info->idxNum = ROW_VTAB_AT;
		info->estimatedRows = 10;
		info->estimatedCost = 100;
		return;
	}
	if (since >= 0)
		info->aConstraintUsage[since].argvIndex = ++n;
	if (until >= 0)
		info->aConstraintUsage[until].argvIndex = ++n;
	info->idxNum = (since >= 0 ? ROW_VTAB_SINCE : 0) | (until >= 0 ? ROW_VTAB_UNTIL : 0);
	info->estimatedRows = n > 0 ? 1000 : 10000;
	info->estimatedCost = (double)info->estimatedRows;
}

void row_vtab_give(sqlite3_context *context, const struct row_value *value)
{
	switch (value->kind) {
	case ROW_NULL:
		break;
	case ROW_INTEGER:
		sqlite3_result_int64(context, value->integer);
		break;
	case ROW_REAL:
		sqlite3_result_double(context, value->real);
		break;
	case ROW_TEXT:
		sqlite3_result_text64(context, value->text, value->n_text, SQLITE_TRANSIENT, SQLITE_UTF8);
		break;
	}
}

int row_vtab_fail(sqlite3_vtab *base, int error, const char *name)
{
	if (error == -ENOMEM)
		return SQLITE_NOMEM;
	sqlite3_free(base->zErrMsg);
	base->zErrMsg = sqlite3_mprintf(error == -EPROTONOSUPPORT ? "rows of %s are of a newer version of probing"
								  : "a block of rows of %s is damaged",
					name);
	return SQLITE_ERROR;
}

void row_vtab_judge(sqlite3_context *context, int error, sqlite3_value *n_said, size_t n_found)
{
	if (error < 0)
		sqlite3_result_text(context,
				    error == -ENOMEM            ? "not enough memory"
				    : error == -EPROTONOSUPPORT ? "of a newer version"
								: "damaged",
				    -1, SQLITE_STATIC);
	else if (sqlite3_value_int64(n_said) != (int64_t)n_found)
		sqlite3_result_text(context, "another number of rows", -1, SQLITE_STATIC);
}
