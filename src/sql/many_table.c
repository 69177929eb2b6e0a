/* many_table.c - one table of several recordings: the rows of the first file, then of the second ...
 *
 * What a statement wants of it is asked of each file by a statement of its own: the columns that are used, and
 * the comparisons that SQLite can leave to us. It makes them once more itself, so that passing on too few of them is
 * never wrong; passing on one that the file judges in another way would be, and so only those go where
 * the types are alike.
 *
 * SQLite knows a row again by its number: of "a = 1 OR b = 2" it takes the rows of the one, then those of the
 * other that were not among them. Not all tables of a file number their rows, and so it is made of what
 * stands in the row; the n-th of equal rows is always the same one, for a comparison leaves all of them or none.
 *
 * The plan is a text: which columns are used, in hexadecimal, then "COLUMN OPERATOR" for each comparison, in
 * the order of their values: "1f,0=,3>".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"
#include "src/sql/many_private.h"

enum { MAX_COMPARED = 16, MAX_OPERATOR = 3 };

struct table {
	sqlite3_vtab base;
	struct many *many;
	const struct many_table *table;
};

struct compared {
	size_t column;
	char operator[MAX_OPERATOR];
};

struct cursor {
	sqlite3_vtab_cursor base;
	char *plan; /* that the statements are made for; NULL: none yet */
	uint64_t used;
	struct compared compared[MAX_COMPARED];
	sqlite3_value *values[MAX_COMPARED];
	size_t n_compared;
	sqlite3_stmt **statements; /* one per file; NULL: not needed yet */
	size_t file; /* that is being read */
	size_t last; /* behind the last one to be read */
	struct id_map seen; /* how many rows of some contents there were in this scan; for numbering */
	uint64_t number;    /* of the row at hand; 0: not asked for yet */
};

/* ---- Declaring ---- */

/* What a file calls a type is shown, and parsed, again. */
static const char *plain_type(const char *type)
{
	return type[strspn(type, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ")] == '\0' ? type : "";
}

char *many_declaration(const struct many_table *table)
{
	sqlite3_str *text = sqlite3_str_new(NULL);

	for (size_t i = 0; i < table->n_columns; i++) {
		const struct many_column *column = &table->columns[i];

		sqlite3_str_appendf(text, "  \"%w\" %s%s%s%s\n", column->name, plain_type(column->type),
				    i + 1 < table->n_columns ? "," : "", column->doc[0] ? " -- " : "", column->doc);
	}
	return sqlite3_str_finish(text);
}

static const struct many_table *find(const struct many *many, const char *name)
{
	for (size_t i = 0; i < many->n_tables; i++)
		if (strcasecmp(many->tables[i].name, name) == 0)
			return &many->tables[i];
	return NULL;
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret, char **error)
{
	struct many *many = aux;
	const struct many_table *found = argc > 2 ? find(many, argv[2]) : NULL;
	char *columns = found ? many_declaration(found) : NULL, *sql = NULL;
	struct table *table;
	int code = SQLITE_NOMEM;

	if (columns)
		sql = sqlite3_mprintf("CREATE TABLE x(%s)", columns);
	if (sql)
		code = sqlite3_declare_vtab(db, sql);
	sqlite3_free(columns);
	sqlite3_free(sql);
	if (code != SQLITE_OK) {
		*error = sqlite3_mprintf("%s", sqlite3_errmsg(db));
		return code;
	}
	table = calloc(1, sizeof *table);
	if (!table)
		return SQLITE_NOMEM;
	table->many = many;
	table->table = found;
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
	free(base);
	return SQLITE_OK;
}

/* ---- Planning ---- */

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

static bool can_pass_on(const struct table *table, sqlite3_index_info *info, int n)
{
	int column = info->aConstraint[n].iColumn;

	if (!info->aConstraint[n].usable || !operator_of(info->aConstraint[n].op) || column < 0)
		return false;
	if (column != COLUMN_RUN && !table->table->columns[column].is_alike)
		return false;
	return strcmp(sqlite3_vtab_collation(info, n), "BINARY") == 0;
}

/* How many rows will come, and how many are looked at for that. */
struct estimate {
	double rows, cost;
	bool is_found; /* by a key */
};

static void estimate(const struct table *table, int column, bool is_equal, struct estimate *to)
{
	if (is_equal && column == COLUMN_RUN) {
		to->rows /= (double)table->many->n_files;
		to->cost /= (double)table->many->n_files;
	} else if (is_equal && table->table->columns[column].is_key) {
		to->is_found = true;
		to->rows /= 1000;
	} else {
		to->rows /= is_equal ? 20 : 4;
	}
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct table *table = (struct table *)base;
	struct estimate sum = { (double)table->table->n_rows, (double)table->table->n_rows, false };
	sqlite3_str *plan = sqlite3_str_new(NULL);
	int n = 0;

	sqlite3_str_appendf(plan, "%llx", (unsigned long long)info->colUsed);
	for (int i = 0; i < info->nConstraint && n < MAX_COMPARED; i++) {
		int column = info->aConstraint[i].iColumn;

		if (!can_pass_on(table, info, i))
			continue;
		info->aConstraintUsage[i].argvIndex = ++n;
		sqlite3_str_appendf(plan, ",%d%s", column, operator_of(info->aConstraint[i].op));
		estimate(table, column, info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ, &sum);
	}
	info->estimatedRows = (sqlite3_int64)MAX(sum.rows, 1);
	info->estimatedCost = sum.is_found ? MAX(sum.rows, 1) * 20 : sum.cost * 2 + 100;
	info->idxStr = sqlite3_str_finish(plan);
	info->needToFreeIdxStr = 1;
	return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

static int parse_plan(struct cursor *cursor, const char *plan)
{
	char *at;

	cursor->n_compared = 0;
	cursor->used = strtoull(plan, &at, 16);
	while (*at == ',' && cursor->n_compared < MAX_COMPARED) {
		struct compared *to = &cursor->compared[cursor->n_compared++];
		size_t n;

		to->column = strtoul(at + 1, &at, 10);
		n = strspn(at, "<=>");
		if (n == 0 || n >= MAX_OPERATOR)
			return SQLITE_INTERNAL;
		memcpy(to->operator, at, n);
		to->operator[n] = '\0';
		at += n;
	}
	return SQLITE_OK;
}

/* ---- Reading ---- */

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	const struct table *table = (struct table *)base;
	struct cursor *cursor = calloc(1, sizeof *cursor);

	if (cursor)
		cursor->statements = calloc(table->many->n_files, sizeof *cursor->statements);
	if (!cursor || !cursor->statements) {
		free(cursor);
		return SQLITE_NOMEM;
	}
	*ret = &cursor->base;
	return SQLITE_OK;
}

static void forget_values(struct cursor *cursor)
{
	for (size_t i = 0; i < MAX_COMPARED; i++)
		sqlite3_value_free(TAKE(cursor->values[i]));
}

static void forget_statements(struct cursor *cursor, size_t n_files)
{
	for (size_t i = 0; i < n_files; i++)
		sqlite3_finalize(TAKE(cursor->statements[i]));
	free(TAKE(cursor->plan));
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	const struct table *table = (struct table *)base->pVtab;
	struct cursor *cursor = (struct cursor *)base;

	forget_values(cursor);
	forget_statements(cursor, table->many->n_files);
	id_map_done(&cursor->seen);
	free(cursor->statements);
	free(cursor);
	return SQLITE_OK;
}

static bool file_has(const struct table *table, size_t column, size_t file)
{
	return table->table->columns[column].source &&
	       table->table->has[column * table->many->n_files + file];
}

static bool file_has_table(const struct table *table, size_t file)
{
	for (size_t i = 0; i < table->table->n_columns; i++)
		if (file_has(table, i, file))
			return true;
	return false;
}

/* Columns stand where they stand in the table; those that nobody wants are NULL. */
static char *question(const struct table *table, const struct cursor *cursor, size_t file)
{
	sqlite3_str *text = sqlite3_str_new(NULL);
	const char *word = " WHERE";

	for (size_t i = 0; i < table->table->n_columns; i++) {
		bool is_used = (cursor->used >> MIN(i, 63) & 1) != 0;

		sqlite3_str_appendall(text, i == 0 ? "SELECT " : ", ");
		if (is_used && file_has(table, i, file))
			sqlite3_str_appendf(text, "\"%w\"", table->table->columns[i].source);
		else
			sqlite3_str_appendall(text, "NULL");
	}
	sqlite3_str_appendf(text, " FROM main.\"%w\"", table->table->name);
	for (size_t i = 0; i < cursor->n_compared; i++) {
		const struct compared *compared = &cursor->compared[i];

		if (compared->column == COLUMN_RUN)
			continue;
		if (file_has(table, compared->column, file))
			sqlite3_str_appendf(text, "%s \"%w\" %s ?%d", word, table->table->columns[compared->column].source,
					    compared->operator, (int)i + 1);
		else
			sqlite3_str_appendf(text, "%s 0", word); /* NULL compares with nothing */
		word = " AND";
	}
	return sqlite3_str_finish(text);
}

static int fail(struct table *table, size_t file, int code)
{
	sqlite3_free(table->base.zErrMsg);
	table->base.zErrMsg = sqlite3_mprintf("%s: %s", table->many->paths[file],
					      sqlite3_errmsg(table->many->files[file]));
	return code & 0xff;
}

static int prepare(struct table *table, struct cursor *cursor)
{
	char *sql = question(table, cursor, cursor->file);
	int code;

	if (!sql)
		return SQLITE_NOMEM;
	code = sqlite3_prepare_v2(table->many->files[cursor->file], sql, -1, &cursor->statements[cursor->file], NULL);
	sqlite3_free(sql);
	return code;
}

/* Get the statement of the file at hand ready for its first row. */
static int start_file(struct table *table, struct cursor *cursor)
{
	sqlite3_stmt **statement = &cursor->statements[cursor->file];
	int code = SQLITE_OK;

	if (!*statement)
		code = prepare(table, cursor);
	else
		sqlite3_reset(*statement);
	for (size_t i = 0; i < cursor->n_compared && code == SQLITE_OK; i++)
		if ((int)i < sqlite3_bind_parameter_count(*statement))
			code = sqlite3_bind_value(*statement, (int)i + 1, cursor->values[i]);
	return code == SQLITE_OK ? SQLITE_OK : fail(table, cursor->file, code);
}

/* To the next row, of this file or a later one. @is_new: the file at hand has not begun. */
static int advance(struct table *table, struct cursor *cursor, bool is_new)
{
	cursor->number = 0;
	while (cursor->file < cursor->last) {
		int code = SQLITE_DONE;

		if (is_new && file_has_table(table, cursor->file)) {
			code = start_file(table, cursor);
			if (code != SQLITE_OK)
				return code;
		}
		if (cursor->statements[cursor->file] && file_has_table(table, cursor->file))
			code = sqlite3_step(cursor->statements[cursor->file]);
		if (code == SQLITE_ROW)
			return SQLITE_OK;
		if (code != SQLITE_DONE)
			return fail(table, cursor->file, code);
		if (cursor->statements[cursor->file])
			sqlite3_reset(cursor->statements[cursor->file]);
		cursor->file++;
		is_new = true;
	}
	return SQLITE_OK;
}

/* Of the files that a comparison of their numbers leaves; SQLite compares again. */
static void choose_files(const struct table *table, struct cursor *cursor)
{
	cursor->file = 0;
	cursor->last = table->many->n_files;
	for (size_t i = 0; i < cursor->n_compared; i++) {
		const char *operator = cursor->compared[i].operator;
		int64_t value;

		if (cursor->compared[i].column != COLUMN_RUN ||
		    sqlite3_value_type(cursor->values[i]) != SQLITE_INTEGER)
			continue;
		value = MAX(MIN(sqlite3_value_int64(cursor->values[i]), (int64_t)table->many->n_files + 1), 0);
		if (operator[0] == '<')
			cursor->last = MIN(cursor->last, (size_t)value);
		if (operator[0] == '>')
			cursor->file = MAX(cursor->file, (size_t)MAX(value - 1, 0));
		if (operator[0] == '=') {
			cursor->file = MAX(cursor->file, (size_t)MAX(value - 1, 0));
			cursor->last = MIN(cursor->last, (size_t)value);
		}
	}
}

static int take_plan(struct table *table, struct cursor *cursor, const char *plan)
{
	if (cursor->plan && strcmp(cursor->plan, plan) == 0)
		return SQLITE_OK;
	forget_statements(cursor, table->many->n_files);
	cursor->plan = strdup(plan);
	return cursor->plan ? parse_plan(cursor, plan) : SQLITE_NOMEM;
}

static int filter(sqlite3_vtab_cursor *base, int index, const char *plan, int argc, sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	struct table *table = (struct table *)base->pVtab;
	int code;

	(void)index;
	forget_values(cursor);
	code = take_plan(table, cursor, plan);
	for (int i = 0; i < argc && code == SQLITE_OK; i++) {
		cursor->values[i] = sqlite3_value_dup(argv[i]);
		code = cursor->values[i] ? SQLITE_OK : SQLITE_NOMEM;
	}
	if (code != SQLITE_OK)
		return code;
	id_map_clear(&cursor->seen);
	choose_files(table, cursor);
	return advance(table, cursor, true);
}

static int next(sqlite3_vtab_cursor *base)
{
	return advance((struct table *)base->pVtab, (struct cursor *)base, false);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	const struct cursor *cursor = (struct cursor *)base;

	return cursor->file >= cursor->last;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int n)
{
	const struct cursor *cursor = (struct cursor *)base;
	const struct table *table = (struct table *)base->pVtab;

	if (n == COLUMN_RUN)
		sqlite3_result_int64(context, (sqlite3_int64)cursor->file + 1);
	else if (n == COLUMN_FILE && table->table->is_run)
		sqlite3_result_text(context, table->many->paths[cursor->file], -1, SQLITE_TRANSIENT);
	else
		sqlite3_result_value(context, sqlite3_column_value(cursor->statements[cursor->file], n));
	return SQLITE_OK;
}

static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ from[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
	return mix64(hash + n);
}

static uint64_t mix_value(uint64_t hash, sqlite3_stmt *statement, int column)
{
	double real;
	int64_t integer;

	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_INTEGER:
		integer = sqlite3_column_int64(statement, column);
		return mix_bytes(hash + SQLITE_INTEGER, &integer, sizeof integer);
	case SQLITE_FLOAT:
		real = sqlite3_column_double(statement, column);
		return mix_bytes(hash + SQLITE_FLOAT, &real, sizeof real);
	case SQLITE_NULL:
		return mix64(hash + SQLITE_NULL);
	default:
		return mix_bytes(hash + SQLITE_TEXT, sqlite3_column_blob(statement, column),
				 (size_t)sqlite3_column_bytes(statement, column));
	}
}

static int number_row(const struct table *table, struct cursor *cursor)
{
	uint64_t hash = mix64(cursor->file + 1), n = 0;
	struct id_slot *seen;

	for (size_t i = 0; i < table->table->n_columns; i++)
		hash = mix_value(hash, cursor->statements[cursor->file], (int)i);
	hash |= hash == 0;
	seen = id_map_find(&cursor->seen, hash);
	if (seen)
		n = ++seen->id;
	else if (id_map_add(&cursor->seen, hash, 0) < 0)
		return SQLITE_NOMEM;
	cursor->number = mix64(hash + n * UINT64_C(0x9e3779b97f4a7c15));
	cursor->number |= cursor->number == 0;
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	struct cursor *cursor = (struct cursor *)base;
	int code = SQLITE_OK;

	if (cursor->number == 0)
		code = number_row((const struct table *)base->pVtab, cursor);
	*ret = (sqlite3_int64)cursor->number;
	return code;
}

const sqlite3_module many_module = {
	.xCreate = connect_table,
	.xConnect = connect_table,
	.xBestIndex = best_index,
	.xDisconnect = disconnect_table,
	.xDestroy = disconnect_table,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next,
	.xEof = at_end,
	.xColumn = column,
	.xRowid = rowid,
};
