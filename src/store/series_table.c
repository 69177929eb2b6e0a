/* SPDX-License-Identifier: MIT */
/*
 * series_table.c - the table `sample`: its declaration, and the plan of a query.
 *
 * A query's constraints on time, number, thread and words go to the cursor (series_cursor.c), which skips
 * blocks and rows. For times and threads it does so exactly, for any compared value, and SQLite is told
 * not to check each row again: that would be half the work for the samples of a short time. All other constraints
 * SQLite checks again: those that are unusable here (a text compared with a number, another collation) are simply not
 * used.
 *
 * Only the order of numbers is guaranteed; times within it vary a little, because a wait is stored at its end, with the
 * time of its beginning.
 */
#include <string.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/metric_table.h"
#include "src/store/series_table.h"

enum { LOOK_UP_COST = 300 }; /* in rows: each lookup decodes a block */

#define NEEDS_MOMENT (BLOCK_HAS(BLOCK_TIME) | BLOCK_HAS(BLOCK_THREAD))

/* Columns of the block to decode for a column of the table. */
static const unsigned needs[SAMPLE_N_COLUMNS] = {
	[SAMPLE_TIMESTAMP] = BLOCK_HAS(BLOCK_TIME),
	[SAMPLE_PID] = BLOCK_HAS(BLOCK_THREAD),
	[SAMPLE_TID] = BLOCK_HAS(BLOCK_THREAD),
	[SAMPLE_CPU] = BLOCK_HAS(BLOCK_CPU),
	[SAMPLE_WEIGHT] = BLOCK_HAS(BLOCK_WEIGHT),
	[SAMPLE_VERDICT] = BLOCK_HAS(BLOCK_FLAGS),
	[SAMPLE_END] = BLOCK_HAS(BLOCK_FLAGS),
	[SAMPLE_STACK] = BLOCK_HAS(BLOCK_STACK),
	[SAMPLE_GIL] = BLOCK_HAS(BLOCK_FLAGS),
	[SAMPLE_GC] = BLOCK_HAS(BLOCK_FLAGS),
	[SAMPLE_STATE] = BLOCK_HAS(BLOCK_FLAGS),
	[SAMPLE_IDLE] = BLOCK_HAS(BLOCK_FLAGS),
	[SAMPLE_STEP] = NEEDS_MOMENT,
	[SAMPLE_SPAN] = NEEDS_MOMENT,
	[SAMPLE_PHASE] = NEEDS_MOMENT,
	[SAMPLE_TORCH_MODULE] = NEEDS_MOMENT,
	[SAMPLE_TORCH_STAGE] = NEEDS_MOMENT,
	[SAMPLE_HOST] = BLOCK_HAS(BLOCK_THREAD),
	[SAMPLE_RANK] = BLOCK_HAS(BLOCK_THREAD),
	[SAMPLE_LOCAL_RANK] = BLOCK_HAS(BLOCK_THREAD),
};

/* ---- Connect ---- */

/* Returns "CREATE TABLE ...", to free with sqlite3_free(); NULL: out of memory. */
static char *table_sql(const struct catalogue_table *described, const struct series_fields *fields, bool has_run)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "CREATE TABLE sample(");
	for (size_t i = 0; i < described->n_columns; i++)
		sqlite3_str_appendf(sql, "%s%s %s%s", i > 0 ? ", " : "", described->columns[i].name,
				    described->columns[i].type, described->columns[i].not_null ? " NOT NULL" : "");
	for (int i = 0; i < fields->n; i++)
		sqlite3_str_appendf(sql, ", \"%w\"", fields->names[i]);
	sqlite3_str_appendf(sql, "%s)", has_run ? ", run INTEGER" : "");
	return sqlite3_str_finish(sql);
}

static int declare(sqlite3 *db, const struct catalogue_table *described, const struct series_fields *fields,
		   bool has_run)
{
	char *sql = table_sql(described, fields, has_run);
	int code = sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;

	sqlite3_free(sql);
	/* The table only reads what its user may read anyway, so views may use it. */
	return code == SQLITE_OK ? sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS) : code;
}

/* A tracepoint may have a field of that name. */
static bool has_field_run(const struct series_fields *fields)
{
	for (int i = 0; i < fields->n; i++)
		if (sqlite3_stricmp(fields->names[i], "run") == 0)
			return true;
	return false;
}

static int connect(sqlite3 *db, void *data, int n_arguments, const char *const *arguments, sqlite3_vtab **ret,
		   char **ret_error)
{
	const struct catalogue_table *described = catalogue_find("main", "sample");
	struct series_table *table = sqlite3_malloc(sizeof *table);
	int code;

	(void)data;
	(void)n_arguments;
	(void)arguments;
	(void)ret_error;
	if (!table)
		return SQLITE_NOMEM;
	*table = (struct series_table){ .db = db };
	code = series_fields_read(db, described, &table->fields);
	table->has_run = process_runs_are_there(db) && !has_field_run(&table->fields);
	if (code == SQLITE_OK)
		code = declare(db, described, &table->fields, table->has_run);
	if (code != SQLITE_OK) {
		series_fields_done(&table->fields);
		sqlite3_free(table);
		return code;
	}
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base)
{
	struct series_table *table = (struct series_table *)base;

	series_fields_done(&table->fields);
	activity_free(table->activity);
	activity_free(table->passes);
	sqlite3_free(table);
	return SQLITE_OK;
}

/* ---- Plan ---- */

static bool is_equal(unsigned op)
{
	return op == SQLITE_INDEX_CONSTRAINT_EQ || op == SQLITE_INDEX_CONSTRAINT_IS;
}

static char time_want_of(unsigned op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
	case SQLITE_INDEX_CONSTRAINT_IS:
		return WANT_AT;
	case SQLITE_INDEX_CONSTRAINT_GE:
		return WANT_SINCE;
	case SQLITE_INDEX_CONSTRAINT_GT:
		return WANT_AFTER;
	case SQLITE_INDEX_CONSTRAINT_LE:
		return WANT_UNTIL;
	case SQLITE_INDEX_CONSTRAINT_LT:
		return WANT_BEFORE;
	default:
		return 0;
	}
}

/* Exact, so that a query can skip a damaged block. */
static char number_want_of(unsigned op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
	case SQLITE_INDEX_CONSTRAINT_IS:
		return WANT_NUMBER;
	case SQLITE_INDEX_CONSTRAINT_GE:
		return WANT_FIRST;
	case SQLITE_INDEX_CONSTRAINT_GT:
		return WANT_ABOVE;
	case SQLITE_INDEX_CONSTRAINT_LE:
		return WANT_LAST;
	case SQLITE_INDEX_CONSTRAINT_LT:
		return WANT_BELOW;
	default:
		return 0;
	}
}

/* The letter that tells the cursor about a constraint; 0: not supported. */
static char want_of(int column, unsigned op)
{
	static const char equal[SAMPLE_N_COLUMNS] = {
		[SAMPLE_PID] = WANT_PID,     [SAMPLE_TID] = WANT_TID,     [SAMPLE_VERDICT] = WANT_VERDICT,
		[SAMPLE_END] = WANT_END,     [SAMPLE_STACK] = WANT_STACK, [SAMPLE_GIL] = WANT_GIL,
		[SAMPLE_GC] = WANT_GC,       [SAMPLE_STATE] = WANT_STATE, [SAMPLE_IDLE] = WANT_IDLE,
		[SAMPLE_EVENT] = WANT_EVENT,
	};

	if (column == -1)
		return number_want_of(op);
	if (column == SAMPLE_TIMESTAMP)
		return time_want_of(op);
	return column < SAMPLE_N_COLUMNS && is_equal(op) ? equal[column] : 0;
}

/* An IN would scan everything once per value; allow it for sample numbers only, which are looked up. */
static bool can_use(sqlite3_index_info *info, int i, char want)
{
	return want != 0 && info->aConstraint[i].usable && strcmp(sqlite3_vtab_collation(info, i), "BINARY") == 0 &&
	       (want == WANT_NUMBER || !sqlite3_vtab_in(info, i, -1));
}

static int use_conditions(sqlite3_index_info *info, char **ret)
{
	char *wants = sqlite3_malloc(info->nConstraint + 1);
	int n = 0;

	if (!wants)
		return SQLITE_NOMEM;
	for (int i = 0; i < info->nConstraint; i++) {
		char want = want_of(info->aConstraint[i].iColumn, info->aConstraint[i].op);

		if (!can_use(info, i, want))
			continue;
		wants[n++] = want;
		info->aConstraintUsage[i].argvIndex = n;
		info->aConstraintUsage[i].omit = strchr(WANT_EXACT, want) != NULL;
	}
	wants[n] = '\0';
	*ret = wants;
	return SQLITE_OK;
}

int64_t series_count(sqlite3 *db)
{
	static const char sql[] =
		"SELECT (SELECT first + samples FROM main.sample_block ORDER BY first DESC LIMIT 1) - min(first)"
		" FROM main.sample_block";
	sqlite3_stmt *statement = NULL;
	int64_t n = 0;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
		n = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return MAX(n, 1);
}

/* A rough estimate: the table is long, and even a filter that leaves few rows has a cost. */
static void estimate(sqlite3_index_info *info, int64_t n, const char *wants)
{
	bool has_since = strpbrk(wants, WANT_SINCES), has_until = strpbrk(wants, WANT_UNTILS);
	double rows = (double)n, cost;

	if (strchr(wants, WANT_NUMBER)) {
		info->estimatedRows = 1;
		info->estimatedCost = LOOK_UP_COST;
		info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
		return;
	}
	rows /= strchr(wants, WANT_AT) ? 1000 : has_since && has_until ? 20 : has_since || has_until ? 3 : 1;
	rows /= strpbrk(wants, WANT_NUMBERS) ? 4 : 1;
	cost = rows;
	for (const char *want = wants; *want; want++)
		rows /= strchr(WANT_WORDS, *want) ? 3 : 1;
	info->estimatedRows = (sqlite3_int64)rows + 1;
	info->estimatedCost = LOOK_UP_COST + cost / 4 + rows;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct series_table *table = (struct series_table *)base;
	unsigned columns = 0;
	char *wants = NULL;
	int code;

	code = use_conditions(info, &wants);
	if (code != SQLITE_OK)
		return code;
	for (int i = 0; i < SAMPLE_N_COLUMNS; i++)
		columns |= info->colUsed >> i & 1 ? needs[i] : 0;
	if (table->has_run && info->colUsed >> MIN(SAMPLE_N_COLUMNS + table->fields.n, 63) & 1)
		columns |= NEEDS_MOMENT; /* bit 63 is of all columns from there on */
	estimate(info, series_count(table->db), wants);
	info->idxNum = (int)(columns << 1);
	if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn == -1) {
		info->orderByConsumed = 1;
		info->idxNum |= info->aOrderBy[0].desc;
	}
	info->idxStr = wants;
	info->needToFreeIdxStr = 1;
	return SQLITE_OK;
}

const sqlite3_module series_table_module = {
	.iVersion = 0,
	.xConnect = connect,
	.xBestIndex = best_index,
	.xDisconnect = disconnect,
	.xOpen = series_cursor_open,
	.xClose = series_cursor_close,
	.xFilter = series_cursor_filter,
	.xNext = series_cursor_next,
	.xEof = series_cursor_eof,
	.xColumn = series_cursor_column,
	.xRowid = series_cursor_rowid,
};

int series_register(sqlite3 *db)
{
	int code;

	code = sqlite3_create_module_v2(db, "sample", &series_table_module, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_create_module_v2(db, "sample_total", &series_total_module, NULL, NULL);
	if (code == SQLITE_OK)
		code = series_register_check(db);
	if (code == SQLITE_OK)
		code = row_block_register(db);
	if (code == SQLITE_OK)
		code = metric_register(db);
	return code;
}
