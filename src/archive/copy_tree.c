/* SPDX-License-Identifier: MIT */
/*
 * copy_tree.c - modules, functions, frames and stacks of a source, where equal ones become one.
 *
 * Two rows are equal if all their columns are, after the ids in them have become those of the
 * new file. So rows are read in an order in which referenced rows come first; where that order is unknown
 * (a frame inlined into another), waiting rows are read again.
 *
 * Invariants:
 * 1. A place without name and module equals no other: it is an address in the memory of one process.
 * 2. Inlined frames keep their range of ids, which identifies them (store_drop_inlined()).
 * 3. Each pass but the last assigns at least one id: a cycle is damage, no endless loop.
 */
#include <errno.h>
#include <string.h>

#include "src/archive/copy_private.h"

#define FIRST_INLINED (INT64_C(1) << 32)
enum { MAX_COLUMNS = 16 };

struct column {
	const char *name;
	enum kind leads_to; /* KIND_NONE: a plain value */
};

/* The first column is the row's number. */
struct table {
	const char *name, *what, *order, *index;
	enum kind kind;
	struct column columns[MAX_COLUMNS];
};

/* clang-format off */
static const struct table tables[] = {
	{ "module", "modules", "module", "path, build_id", KIND_MODULE,
	  { { "module", KIND_NONE }, { "path", KIND_NONE }, { "build_id", KIND_NONE } } },
	{ "function", "functions", "function", "name, file, first_line, module, kind", KIND_FUNCTION,
	  { { "function", KIND_NONE }, { "name", KIND_NONE }, { "symbol", KIND_NONE }, { "kind", KIND_NONE },
	    { "role", KIND_NONE }, { "file", KIND_NONE }, { "first_line", KIND_NONE }, { "module", KIND_MODULE } } },
	{ "frame", "frames", "frame DESC", "function, address, line, module, \"column\", inlined_into", KIND_FRAME,
	  { { "frame", KIND_NONE }, { "kind", KIND_NONE }, { "function", KIND_FUNCTION }, { "line", KIND_NONE },
	    { "column", KIND_NONE }, { "end_line", KIND_NONE }, { "end_column", KIND_NONE }, { "module", KIND_MODULE },
	    { "address", KIND_NONE }, { "is_eval", KIND_NONE }, { "without_cfi", KIND_NONE },
	    { "inlined_into", KIND_FRAME } } },
	{ "stack", "stacks", "depth, stack", "frame, parent", KIND_STACK,
	  { { "stack", KIND_NONE }, { "parent", KIND_STACK }, { "frame", KIND_FRAME }, { "depth", KIND_NONE } } },
};
/* clang-format on */

static unsigned n_columns(const struct table *table)
{
	unsigned n = 0;

	while (n < MAX_COLUMNS && table->columns[n].name)
		n++;
	return n;
}

/* Copies the rows of one table. */
struct passage {
	struct copy *copy;
	struct source *source;
	const struct table *table;
	sqlite3_stmt *rows, *find, *insert;
	int64_t next, next_inlined; /* next free numbers */
	uint64_t n_all;
};

static void passage_done(struct passage *passage)
{
	sqlite3_finalize(passage->rows);
	sqlite3_finalize(passage->find);
	sqlite3_finalize(passage->insert);
}

/* Columns missing from older files are NULL. */
static char *select_sql(sqlite3 *db, const struct table *table)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	for (unsigned i = 0; i < n_columns(table); i++) {
		const char *name = table->columns[i].name;
		bool is_there = sqlite3_table_column_metadata(db, "main", table->name, name, NULL, NULL, NULL, NULL,
							      NULL) == SQLITE_OK;

		sqlite3_str_appendf(sql, is_there ? "%s \"%w\"" : "%s NULL AS \"%w\"", i == 0 ? "SELECT" : ",", name);
	}
	sqlite3_str_appendf(sql, " FROM \"%w\" ORDER BY %s", table->name, table->order);
	return sqlite3_str_finish(sql);
}

static char *find_sql(const struct table *table)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "SELECT \"%w\" FROM \"%w\"", table->columns[0].name, table->name);
	for (unsigned i = 1; i < n_columns(table); i++)
		sqlite3_str_appendf(sql, " %s \"%w\" IS ?%u", i == 1 ? "WHERE" : "AND", table->columns[i].name, i + 1);
	return sqlite3_str_finish(sql);
}

static char *insert_sql(const struct table *table)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT INTO \"%w\"", table->name);
	for (unsigned i = 0; i < n_columns(table); i++)
		sqlite3_str_appendf(sql, "%s\"%w\"", i == 0 ? "(" : ", ", table->columns[i].name);
	for (unsigned i = 0; i < n_columns(table); i++)
		sqlite3_str_appendf(sql, "%s?%u", i == 0 ? ") VALUES(" : ", ", i + 1);
	sqlite3_str_appendf(sql, ")");
	return sqlite3_str_finish(sql);
}

static int prepare(sqlite3 *db, char *sql, sqlite3_stmt **ret)
{
	int code = sql ? sqlite3_prepare_v2(db, sql, -1, ret, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return store_errno(db, code);
}

static int next_number(struct passage *passage)
{
	const char *name = passage->table->name;
	char sql[160];
	int r;

	sqlite3_snprintf(sizeof sql, sql, "SELECT coalesce(max(\"%w\"), 0) + 1 FROM \"%w\" WHERE \"%w\" < %lld", name,
			 name, name, (long long)FIRST_INLINED);
	r = copy_number(passage->copy->db, sql, &passage->next);
	if (r < 0)
		return r;
	sqlite3_snprintf(sizeof sql, sql, "SELECT max(coalesce(max(\"%w\"), 0) + 1, %lld) FROM \"%w\"", name,
			 (long long)FIRST_INLINED, name);
	return copy_number(passage->copy->db, sql, &passage->next_inlined);
}

static int open_passage(struct passage *passage)
{
	const struct table *table = passage->table;
	char sql[256];
	int64_t n = 0;
	int r;

	sqlite3_snprintf(sizeof sql, sql, "SELECT count(*) FROM \"%w\"", table->name);
	r = copy_number(passage->source->db, sql, &n);
	passage->n_all = (uint64_t)n;
	sqlite3_snprintf(sizeof sql, sql, "CREATE INDEX IF NOT EXISTS \"copy_%w\" ON \"%w\"(%s)", table->name,
			 table->name, table->index);
	if (r >= 0)
		r = store_errno(passage->copy->db, sqlite3_exec(passage->copy->db, sql, NULL, NULL, NULL));
	if (r >= 0)
		r = next_number(passage);
	if (r >= 0)
		r = prepare(passage->copy->db, find_sql(table), &passage->find);
	if (r >= 0)
		r = prepare(passage->copy->db, insert_sql(table), &passage->insert);
	if (r >= 0)
		r = prepare(passage->source->db, select_sql(passage->source->db, table), &passage->rows);
	return r;
}

/* Bind the row's values with new numbers. 1: a referenced row was not copied yet. */
static int bind_row(const struct passage *passage, sqlite3_stmt *to)
{
	const struct table *table = passage->table;
	int code = SQLITE_OK;

	for (unsigned i = 1; i < n_columns(table) && code == SQLITE_OK; i++) {
		enum kind kind = table->columns[i].leads_to;
		sqlite3_value *value = sqlite3_column_value(passage->rows, (int)i);
		int64_t number = 0;

		if (kind == KIND_NONE || sqlite3_value_type(value) == SQLITE_NULL) {
			code = sqlite3_bind_value(to, (int)i + 1, value);
			continue;
		}
		if (!numbers_find(&passage->source->numbers[kind], sqlite3_value_int64(value), &number))
			return 1;
		code = sqlite3_bind_int64(to, (int)i + 1, number);
	}
	return store_errno(passage->copy->db, code);
}

/* See invariant 1. */
static bool may_be_known(const struct passage *passage)
{
	return passage->table->kind != KIND_FRAME || sqlite3_column_type(passage->rows, 2) != SQLITE_NULL ||
	       sqlite3_column_type(passage->rows, 7) != SQLITE_NULL;
}

static int find_row(struct passage *passage, int64_t *ret)
{
	int code, r;

	r = may_be_known(passage) ? bind_row(passage, passage->find) : 0;
	if (r != 0)
		return r;
	code = may_be_known(passage) ? sqlite3_step(passage->find) : SQLITE_DONE;
	if (code == SQLITE_ROW)
		*ret = sqlite3_column_int64(passage->find, 0);
	sqlite3_reset(passage->find);
	return store_errno(passage->copy->db, code);
}

static int insert_row(struct passage *passage, int64_t old, int64_t *ret)
{
	int64_t number = passage->table->kind == KIND_FRAME && old >= FIRST_INLINED ? passage->next_inlined++
										    : passage->next++;
	int code, r;

	sqlite3_bind_int64(passage->insert, 1, number);
	r = bind_row(passage, passage->insert);
	if (r != 0)
		return r;
	code = sqlite3_step(passage->insert);
	sqlite3_reset(passage->insert);
	if (code == SQLITE_DONE)
		*ret = number;
	return copy_write_errno(passage->copy->db, code);
}

/* 1: the row has to wait. */
static int take_row(struct passage *passage)
{
	struct numbers *numbers = &passage->source->numbers[passage->table->kind];
	int64_t old = sqlite3_column_int64(passage->rows, 0), new = 0;
	int r;

	if (numbers_find(numbers, old, &new) && old != 0)
		return 0;
	r = find_row(passage, &new);
	if (r == 0 && new == 0)
		r = insert_row(passage, old, &new);
	return r != 0 ? r : numbers_add(numbers, old, new);
}

/* Go through all rows once; @ret: number of waiting rows. */
static int pass(struct passage *passage, uint64_t *ret)
{
	struct copy *copy = passage->copy;
	uint64_t n_waiting = 0;
	int code, r = 0;

	copy->progress.n_done = 0;
	while (r >= 0 && (code = sqlite3_step(passage->rows)) == SQLITE_ROW) {
		r = take_row(passage);
		n_waiting += r == 1;
		if (r >= 0)
			r = copy_step(copy, passage->table->what, passage->n_all);
	}
	if (r >= 0)
		r = store_errno(passage->source->db, code);
	sqlite3_reset(passage->rows);
	*ret = n_waiting;
	return r;
}

static int copy_table(struct copy *copy, struct source *source, const struct table *table)
{
	CLEANUP(passage_done) struct passage passage = { .copy = copy, .source = source, .table = table };
	uint64_t n_waiting = UINT64_MAX, n_before;
	int r;

	r = open_passage(&passage);
	do {
		n_before = n_waiting;
		if (r >= 0)
			r = pass(&passage, &n_waiting);
	} while (r >= 0 && n_waiting > 0 && n_waiting < n_before);
	if (r >= 0 && n_waiting > 0)
		r = copy_damaged(copy, source, table->what);
	return r == -EBADMSG ? copy_damaged(copy, source, table->what) : r;
}

int copy_tree(struct copy *copy, struct source *source)
{
	int r = 0;

	for (size_t i = 0; i < N_ELEMENTS(tables) && r >= 0; i++)
		r = copy_table(copy, source, &tables[i]);
	return r;
}
