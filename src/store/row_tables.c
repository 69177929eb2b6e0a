/* SPDX-License-Identifier: MIT */
/*
 * row_tables.c - rows that programs wrote, as tables of the schema python: the same names and columns as of a running
 * process.
 *
 * A table has the rows of all rings of one name, of all processes. It exists only in the connection: nothing that the
 * file says becomes SQL but names, which are quoted.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/row_block.h"
#include "src/store/row_vtab.h"
#include "src/store/store_private.h"

enum {
	MAX_TABLES = 1024, /* others are left out */
	MAX_RINGS = 1 << 16,
	MAX_NAME_BYTES = 255,
	MAX_POSITIONS = 64, /* columns of a ring */
};

/* Where the columns of a ring are in the table. */
struct row_ring {
	int64_t row_table;
	size_t n;
	uint16_t places[MAX_POSITIONS];
};

struct row_tab {
	sqlite3_vtab base; /* first: SQLite casts pointers to it */
	sqlite3 *db;
	char *name; /* in the file */
	struct catalogue_table described;
	struct row_ring *rings; /* by row_table */
	size_t n_rings, rings_allocated;
};

struct row_cursor {
	sqlite3_vtab_cursor base; /* first: SQLite casts pointers to it */
	sqlite3_stmt *blocks;
	struct row_block block;
	int64_t pid, offset_ns, number;                            /* the last one: of the block */
	int16_t positions[PROGRAM_MAX_COLUMNS + PROGRAM_N_HIDDEN]; /* in the ring, of each column; -1: none */
	bool is_at_end;
};

/* ---- Description ---- */

static const char *type_of(const char *name)
{
	static const char *const types[] = { "INTEGER", "REAL", "TEXT" };

	for (size_t i = 0; name && i < N_ELEMENTS(types); i++)
		if (strcmp(types[i], name) == 0)
			return types[i];
	return "ANY";
}

/* Recorders write no other name. */
static bool is_name(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == '\x7f')
			return false;
	return n > 0 && n <= MAX_NAME_BYTES;
}

static int add_column(struct row_tab *table, sqlite3_stmt *row)
{
	int64_t row_table = sqlite3_column_int64(row, 0);
	const char *name = (const char *)sqlite3_column_text(row, 1);
	struct row_ring *ring = table->n_rings > 0 ? &table->rings[table->n_rings - 1] : NULL;
	int r;

	if (!ring || ring->row_table != row_table) {
		if (table->n_rings == MAX_RINGS)
			return 0;
		r = grow(&table->rings, table->n_rings, &table->rings_allocated, sizeof *table->rings);
		if (r < 0)
			return r;
		ring = &table->rings[table->n_rings++];
		*ring = (struct row_ring){ .row_table = row_table };
	}
	if (ring->n == MAX_POSITIONS)
		return 0;
	ring->places[ring->n++] = PROGRAM_NO_COLUMN;
	return is_name(name)
		       ? program_table_add(&table->described, name, type_of((const char *)sqlite3_column_text(row, 2)),
					   &ring->places[ring->n - 1])
		       : 0;
}

static const char columns_sql[] =
	"SELECT c.row_table, c.name, c.type FROM main.row_table AS t JOIN main.row_column AS c USING (row_table)"
	" WHERE t.name = ?1 COLLATE NOCASE ORDER BY c.row_table, c.position";

/* @table->name is there. */
static int describe(struct row_tab *table)
{
	sqlite3_stmt *rows = NULL;
	int code, r;

	r = program_table_begin(table->name, &table->described);
	if (r < 0)
		return SQLITE_NOMEM;
	code = sqlite3_prepare_v2(table->db, columns_sql, -1, &rows, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(rows, 1, table->name, -1, SQLITE_STATIC);
	while (code == SQLITE_OK && r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		code = SQLITE_OK;
		r = add_column(table, rows);
	}
	sqlite3_finalize(rows);
	program_table_end(&table->described);
	if (r < 0)
		return SQLITE_NOMEM;
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static void table_free(struct row_tab *table)
{
	program_table_done(&table->described);
	free(table->rings);
	free(table->name);
	sqlite3_free(table);
}

/* The name in the file of a table of SQL. @ret: owned by the caller; NULL: there is none. */
static int find_name(sqlite3 *db, const char *table, char **ret)
{
	sqlite3_stmt *rows = NULL;
	int code;

	code = sqlite3_prepare_v2(db, "SELECT DISTINCT name FROM main.row_table", -1, &rows, NULL);
	while (code == SQLITE_OK && !*ret && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(rows, 0);
		char *shown = name ? program_table_name(name) : NULL;

		code = SQLITE_OK;
		if (shown && sqlite3_stricmp(shown, table) == 0)
			*ret = strdup(name);
		free(shown);
	}
	sqlite3_finalize(rows);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* ---- SQLite's callbacks. Source: sqlite.org/vtab.html ---- */

/* @arguments: module, schema, name, columns. */
static int connect(sqlite3 *db, void *data, int n, const char *const *arguments, sqlite3_vtab **ret, char **error)
{
	struct row_tab *table = sqlite3_malloc(sizeof *table);
	int code;

	(void)data;
	if (!table)
		return SQLITE_NOMEM;
	*table = (struct row_tab){ .db = db };
	code = n >= 3 ? find_name(db, arguments[2], &table->name) : SQLITE_ERROR;
	if (code == SQLITE_OK && !table->name) {
		*error = sqlite3_mprintf("the recording has no rows of that table");
		code = SQLITE_ERROR;
	}
	if (code == SQLITE_OK)
		code = describe(table);
	if (code == SQLITE_OK)
		code = catalogue_declare(db, &table->described);
	if (code == SQLITE_OK) /* it only reads what its user may read anyway, so our view may use it */
		code = sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	if (code != SQLITE_OK) {
		table_free(table);
		return code;
	}
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base)
{
	table_free((struct row_tab *)base);
	return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	(void)base;
	row_vtab_plan(info, 0);
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	struct row_cursor *cursor = calloc(1, sizeof *cursor);

	(void)base;
	if (!cursor)
		return SQLITE_NOMEM;
	*ret = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct row_cursor *cursor = (struct row_cursor *)base;

	sqlite3_finalize(cursor->blocks);
	row_block_done(&cursor->block);
	free(cursor);
	return SQLITE_OK;
}

static int fail(sqlite3_vtab *base, int error)
{
	return row_vtab_fail(base, error, ((struct row_tab *)base)->name);
}

static const struct row_ring *find_ring(const struct row_tab *table, int64_t row_table)
{
	size_t low = 0, high = table->n_rings;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->rings[middle].row_table < row_table)
			low = middle + 1;
		else
			high = middle;
	}
	return low < table->n_rings && table->rings[low].row_table == row_table ? &table->rings[low] : NULL;
}

/* The next block of a ring that was there when the table was connected. Returns SQLite's code. */
static int next_block(struct row_cursor *cursor)
{
	struct row_tab *table = (struct row_tab *)cursor->base.pVtab;
	const struct row_ring *ring = NULL;
	int code = SQLITE_ROW, r;

	while (!ring && (code = sqlite3_step(cursor->blocks)) == SQLITE_ROW)
		ring = find_ring(table, sqlite3_column_int64(cursor->blocks, 0));
	if (code != SQLITE_ROW)
		return code;
	cursor->pid = sqlite3_column_int64(cursor->blocks, 1);
	cursor->offset_ns = sqlite3_column_int64(cursor->blocks, 2);
	cursor->number = sqlite3_column_int64(cursor->blocks, 4);
	memset(cursor->positions, 0xff, sizeof cursor->positions);
	for (size_t i = 0; i < ring->n; i++)
		if (ring->places[i] != PROGRAM_NO_COLUMN)
			cursor->positions[ring->places[i]] = (int16_t)i;
	r = row_block_open(&cursor->block, sqlite3_column_blob(cursor->blocks, 3),
			   (size_t)sqlite3_column_bytes(cursor->blocks, 3));
	return r < 0 ? fail(cursor->base.pVtab, r) : SQLITE_ROW;
}

static int next(sqlite3_vtab_cursor *base)
{
	struct row_cursor *cursor = (struct row_cursor *)base;
	int r, code;

	while ((r = row_block_next(&cursor->block)) == 0) {
		code = next_block(cursor);
		cursor->is_at_end = code == SQLITE_DONE;
		if (code != SQLITE_ROW)
			return code == SQLITE_DONE ? SQLITE_OK : code;
	}
	return r < 0 ? fail(base->pVtab, r) : SQLITE_OK;
}

static const char blocks_sql[] =
	"SELECT b.row_table, t.pid, t.realtime_offset_ns, b.data, b.row_block FROM main.row_block AS b CROSS JOIN main.row_table AS t"
	" USING (row_table) WHERE t.name = ?1 COLLATE NOCASE AND (?2 IS NULL OR b.last_ns + t.realtime_offset_ns >= ?2)"
	" AND (?3 IS NULL OR b.first_ns + t.realtime_offset_ns <= ?3) ORDER BY b.row_block";

/* Seconds as nanoseconds, for a bound that may be a little too wide. NULL where it is no number. */
static void bind_bound(sqlite3_stmt *statement, int n, sqlite3_value *value, double slack_ns)
{
	double ns = sqlite3_value_double(value) * 1e9 + slack_ns;
	int type = sqlite3_value_numeric_type(value);

	if ((type == SQLITE_INTEGER || type == SQLITE_FLOAT) && fabs(ns) < 9e18)
		sqlite3_bind_int64(statement, n, (sqlite3_int64)ns);
}

/* A join asks again and again. */
static int prepare_blocks(const struct row_tab *table, struct row_cursor *cursor)
{
	int code;

	if (cursor->blocks) {
		sqlite3_reset(cursor->blocks);
		sqlite3_bind_null(cursor->blocks, 2);
		sqlite3_bind_null(cursor->blocks, 3);
		return SQLITE_OK;
	}
	code = sqlite3_prepare_v2(table->db, blocks_sql, -1, &cursor->blocks, NULL);
	return code == SQLITE_OK ? sqlite3_bind_text(cursor->blocks, 1, table->name, -1, SQLITE_STATIC) : code;
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int argc, sqlite3_value **argv)
{
	struct row_cursor *cursor = (struct row_cursor *)base;
	struct row_tab *table = (struct row_tab *)base->pVtab;
	const double slack_ns = 1e4;
	int code, n = 0;

	(void)text;
	(void)argc;
	row_block_close(&cursor->block);
	cursor->is_at_end = false;
	code = prepare_blocks(table, cursor);
	if (code != SQLITE_OK)
		return code;
	if (plan & ROW_VTAB_AT) {
		bind_bound(cursor->blocks, 2, argv[0], -slack_ns);
		bind_bound(cursor->blocks, 3, argv[0], slack_ns);
	}
	if (plan & ROW_VTAB_SINCE)
		bind_bound(cursor->blocks, 2, argv[n++], -slack_ns);
	if (plan & ROW_VTAB_UNTIL)
		bind_bound(cursor->blocks, 3, argv[n], slack_ns);
	return next(base);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	return ((struct row_cursor *)base)->is_at_end;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int n)
{
	const struct row_cursor *cursor = (struct row_cursor *)base;
	const struct row_tab *table = (struct row_tab *)base->pVtab;
	size_t after = (size_t)n + PROGRAM_N_HIDDEN - table->described.n_columns;

	if (n == 0)
		sqlite3_result_double(context, ((double)cursor->block.time_ns + (double)cursor->offset_ns) / 1e9);
	else if ((size_t)n + PROGRAM_N_HIDDEN >= table->described.n_columns)
		sqlite3_result_int64(context, after == 0 ? (int64_t)cursor->block.time_ns : cursor->pid);
	else if (cursor->positions[n] >= 0 && (size_t)cursor->positions[n] < cursor->block.n_columns)
		row_vtab_give(context, &cursor->block.values[cursor->positions[n]]);
	return SQLITE_OK;
}

/* The same number whatever condition finds the row: of "a OR b" SQLite takes the rows of a, then those of b that are not among them. */
static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	const struct row_cursor *cursor = (struct row_cursor *)base;

	*ret = (sqlite3_int64)((uint64_t)cursor->number * ROW_BLOCK_MAX_ROWS + cursor->block.row - 1);
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.xCreate = connect,
	.xConnect = connect,
	.xBestIndex = best_index,
	.xDisconnect = disconnect,
	.xDestroy = disconnect,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next,
	.xEof = at_end,
	.xColumn = column,
	.xRowid = rowid,
};

/* ---- Attach ---- */

static void check_block(sqlite3_context *context, int n_arguments, sqlite3_value **arguments)
{
	const void *bytes = sqlite3_value_blob(arguments[1]);
	struct row_block block = { 0 };
	int r, more = 0;

	(void)n_arguments;
	r = bytes ? row_block_open(&block, bytes, (size_t)sqlite3_value_bytes(arguments[1])) : -EBADMSG;
	while (r >= 0 && (more = row_block_next(&block)) > 0)
		continue;
	row_vtab_judge(context, r < 0 ? r : more, arguments[0], block.n_rows);
	row_block_done(&block);
}

int row_block_register(sqlite3 *db)
{
	return sqlite3_create_function_v2(db, "row_block_error", 2,
					  SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, check_block,
					  NULL, NULL, NULL);
}

/* "CREATE TABLE ..." of a plain table, under a name that is free there. sqlite3_free(); NULL: no memory. */
static char *plain_sql(const struct catalogue_table *table, const char *name)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	for (size_t i = 0; i < table->n_columns; i++) {
		const struct catalogue_column *column = &table->columns[i];
		int n = (int)strcspn(column->type, " "); /* without HIDDEN */

		sqlite3_str_appendf(sql, i == 0 ? "CREATE TABLE \"%w\"(\n  " : ",\n  %.0s", name);
		sqlite3_str_appendf(sql, "\"%w\" %.*s", column->name, strcmp(column->type, "ANY") == 0 ? 0 : n,
				    column->type);
	}
	sqlite3_str_appendall(sql, ")");
	return sqlite3_str_finish(sql);
}

/* All columns of one row after the other; hidden ones are not in *. */
static int copy_plain(sqlite3 *from, const char *select, sqlite3 *to, const char *insert)
{
	sqlite3_stmt *rows = NULL, *write = NULL;
	int code = sqlite3_prepare_v2(from, select, -1, &rows, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(to, insert, -1, &write, NULL);
	while (code == SQLITE_OK && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		code = SQLITE_OK;
		for (int i = 0; i < sqlite3_column_count(rows) && code == SQLITE_OK; i++)
			code = sqlite3_bind_value(write, i + 1, sqlite3_column_value(rows, i));
		if (code == SQLITE_OK)
			code = sqlite3_step(write) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(to);
		sqlite3_reset(write);
	}
	sqlite3_finalize(rows);
	sqlite3_finalize(write);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static char *insert_sql(const char *name, size_t n)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT INTO \"%w\" VALUES(?", name);
	for (size_t i = 1; i < n; i++)
		sqlite3_str_appendall(sql, ",?");
	sqlite3_str_appendall(sql, ")");
	return sqlite3_str_finish(sql);
}

static int copy_and_drop(sqlite3 *db, const struct catalogue_table *table, sqlite3 *to)
{
	bool is_taken = catalogue_find("main", table->name) ||
			sqlite3_table_column_metadata(to, "main", table->name, NULL, NULL, NULL, NULL, NULL, NULL) ==
				SQLITE_OK;
	char *name = sqlite3_mprintf("%s%s", table->name, is_taken ? "_" : "");
	char *select = sqlite3_mprintf("SELECT *, time_ns, process FROM temp.\"%w\"", table->name);
	char *drop = sqlite3_mprintf("DROP TABLE temp.\"%w\"", table->name);
	char *create = name ? plain_sql(table, name) : NULL, *insert = name ? insert_sql(name, table->n_columns) : NULL;
	int code = SQLITE_NOMEM;

	if (select && drop && create && insert) {
		code = sqlite3_exec(to, create, NULL, NULL, NULL);
		if (code == SQLITE_OK)
			code = copy_plain(db, select, to, insert);
		if (code == SQLITE_OK)
			code = catalogue_execute(db, drop);
	}
	sqlite3_free(name);
	sqlite3_free(select);
	sqlite3_free(drop);
	sqlite3_free(create);
	sqlite3_free(insert);
	return code;
}

/* A table of metrics, or their view, that metric_tables_attach() made has the name of a program's. All its rows are copied by now. */
static int make_way(sqlite3 *db, const char *name)
{
	char *sql = sqlite3_mprintf("SELECT type FROM temp.sqlite_schema WHERE name = %Q COLLATE NOCASE", name),
	     *drop = NULL;
	sqlite3_stmt *row = NULL;
	int code = sql ? sqlite3_prepare_v2(db, sql, -1, &row, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	if (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW)
		drop = sqlite3_mprintf(
			"DROP %s temp.\"%w\"",
			strcmp((const char *)sqlite3_column_text(row, 0), "view") == 0 ? "VIEW" : "TABLE", name);
	sqlite3_finalize(row);
	if (code != SQLITE_ROW)
		return code == SQLITE_DONE ? SQLITE_OK : code;
	code = drop ? catalogue_execute(db, drop) : SQLITE_NOMEM;
	sqlite3_free(drop);
	return code;
}

/* @schema: where the table is made. @to: a database that gets a plain table with its rows, whereupon it is dropped; NULL: none. */
static int create_table(sqlite3 *db, const char *name, const char *schema, sqlite3 *to)
{
	struct row_tab table = { .db = db, .name = strdup(name) };
	int code = table.name ? describe(&table) : SQLITE_NOMEM;

	table.described.schema = schema;
	if (code == SQLITE_OK && to)
		code = make_way(db, table.described.name);
	if (code == SQLITE_OK)
		code = catalogue_create_virtual(db, &table.described, "probing_rows");
	if (code == SQLITE_OK && to) {
		code = copy_and_drop(db, &table.described, to);
	} else if (code != SQLITE_OK && code != SQLITE_NOMEM) {
		store_notice("the rows of %.64s cannot be a table: %s", name, sqlite3_errmsg(db));
		code = SQLITE_OK;
	}
	program_table_done(&table.described);
	free(table.rings);
	free(table.name);
	return code;
}

static bool has_rows(sqlite3 *db)
{
	return sqlite3_table_column_metadata(db, "main", "row_table", NULL, NULL, NULL, NULL, NULL, NULL) ==
		       SQLITE_OK &&
	       sqlite3_table_column_metadata(db, "main", "row_block", NULL, NULL, NULL, NULL, NULL, NULL) ==
		       SQLITE_OK &&
	       sqlite3_table_column_metadata(db, "main", "row_column", NULL, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

/* A bare name means the table in the first schema that has it: torch.steps comes before python.steps. */
static bool is_hidden(sqlite3 *db, const char *name)
{
	static const char sql[] =
		"SELECT 1 FROM pragma_table_list WHERE name = ?1 COLLATE NOCASE AND schema NOT IN ('main', 'temp', '" PROGRAM_SCHEMA
		"') AND NOT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = ?1 COLLATE NOCASE)";
	sqlite3_stmt *row = NULL;
	bool is = sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK &&
		  sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW;

	sqlite3_finalize(row);
	return is;
}

static int each_table(sqlite3 *db, const char *schema, sqlite3 *to)
{
	static const char sql[] =
		"SELECT name FROM main.row_table GROUP BY name COLLATE NOCASE ORDER BY min(row_table) LIMIT ?1";
	sqlite3_stmt *names = NULL;
	int code;

	if (!catalogue_is_recording(db) || !has_rows(db))
		return SQLITE_OK;
	code = sqlite3_create_module_v2(db, "probing_rows", &module, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(db, sql, -1, &names, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int(names, 1, MAX_TABLES);
	while (code == SQLITE_OK && (code = sqlite3_step(names)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(names, 0);

		code = is_name(name) ? create_table(db, name, schema, to) : SQLITE_OK;
		if (code == SQLITE_OK && is_name(name) && !to && is_hidden(db, name))
			code = create_table(db, name, "temp", NULL);
	}
	sqlite3_finalize(names);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* python.variables as of a running process: its ring has a column for numbers and one for texts. */
static int add_variables(sqlite3 *db)
{
	static const char *const columns[] = { "step", "func", "name", "number", "text", "tid" };

	for (size_t i = 0; i < N_ELEMENTS(columns); i++)
		if (sqlite3_table_column_metadata(db, PROGRAM_SCHEMA, "probing_variables", columns[i], NULL, NULL, NULL,
						  NULL, NULL) != SQLITE_OK)
			return SQLITE_OK;
	return catalogue_execute(
		db, "CREATE VIEW IF NOT EXISTS " PROGRAM_SCHEMA ".variables(timestamp, step, func, name, value, tid) AS"
		    " SELECT timestamp, step, func, name, coalesce(number, text), tid FROM probing_variables");
}

int row_tables_attach(sqlite3 *db)
{
	int code = each_table(db, PROGRAM_SCHEMA, NULL);

	return code == SQLITE_OK ? add_variables(db) : code;
}

int row_tables_copy(sqlite3 *from, sqlite3 *to)
{
	return store_read_errno(from, each_table(from, "temp", to));
}
