/* SPDX-License-Identifier: MIT */
/*
 * checksum.c - one number over all contents of a finished recording.
 *
 * SQLite detects a damaged page if its structure is broken, not if a value in it is. So a finished file
 * has a checksum of its contents, as the counter 'checksum'; check computes it again.
 *
 * Invariants:
 * 1. It depends on values, not on pages: VACUUM, a log or another page size do not change it.
 * 2. A file that is being changed has none: the first transaction of a change removes it, and the end
 *    of the change writes a new one. A process killed in between leaves a file without one, never with a wrong one.
 * 3. One flipped bit anywhere in a value always yields another number: each step of the sum is
 *    invertible, so two different sums stay different.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/store/store_private.h"

enum { MAX_TABLES = 4096 };
#define PRIME UINT64_C(0x100000001b3)

/* Add eight bytes: a bijection of the sum, and of the added word. */
static void add_word(uint64_t *sum, uint64_t word)
{
	*sum = mix64((*sum ^ word) * PRIME + 1);
}

static void add_bytes(uint64_t *sum, const uint8_t *bytes, size_t n)
{
	uint64_t word;

	add_word(sum, n);
	for (; n >= sizeof word; bytes += sizeof word, n -= sizeof word) {
		memcpy(&word, bytes, sizeof word);
		add_word(sum, le64toh(word));
	}
	word = 0;
	for (size_t i = 0; i < n; i++)
		word |= (uint64_t)bytes[i] << (8 * i);
	add_word(sum, word);
}

static void add_value(uint64_t *sum, sqlite3_stmt *row, int column)
{
	int type = sqlite3_column_type(row, column);
	double real;
	uint64_t word;

	add_word(sum, (uint64_t)type);
	switch (type) {
	case SQLITE_INTEGER:
		add_word(sum, (uint64_t)sqlite3_column_int64(row, column));
		break;
	case SQLITE_FLOAT:
		real = sqlite3_column_double(row, column);
		memcpy(&word, &real, sizeof word);
		add_word(sum, word);
		break;
	case SQLITE_TEXT:
	case SQLITE_BLOB: {
		const uint8_t *bytes = sqlite3_column_blob(row, column);

		add_bytes(sum, bytes, (size_t)sqlite3_column_bytes(row, column));
		break;
	}
	default:
		break;
	}
}

static int add_rows(sqlite3 *db, const char *sql, uint64_t *sum)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code;

	code = sqlite3_prepare_v2(db, sql, -1, &rows, NULL);
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		code = sqlite3_step(rows);
		if (code == SQLITE_ROW)
			for (int i = 0; i < sqlite3_column_count(rows); i++)
				add_value(sum, rows, i);
	}
	return store_read_errno(db, code);
}

/* Rows with a rowid include it in the sum, such as samples. */
static int add_table(sqlite3 *db, const char *name, bool has_rowid, uint64_t *sum)
{
	bool is_counter = strcmp(name, "counter") == 0;
	char *sql = sqlite3_mprintf("SELECT %s* FROM main.\"%w\"%s", has_rowid ? "rowid, " : "", name,
				    is_counter ? " WHERE name <> '" STORE_SEAL "'" : "");
	int r;

	if (!sql)
		return -ENOMEM;
	r = add_rows(db, sql, sum);
	sqlite3_free(sql);
	return r;
}

static bool has_rowid(sqlite3 *db, const char *table)
{
	return sqlite3_table_column_metadata(db, "main", table, "rowid", NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

static int add_tables(sqlite3 *db, uint64_t *sum)
{
	/* Not pragma_table_list: it expands all views to count their columns. */
	static const char sql[] = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name";
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *tables = NULL;
	const char *name;
	int code, r = 0;

	code = sqlite3_prepare_v2(db, sql, -1, &tables, NULL);
	for (unsigned i = 0; r >= 0 && (code == SQLITE_OK || code == SQLITE_ROW); i++) {
		code = sqlite3_step(tables);
		if (code != SQLITE_ROW)
			break;
		name = (const char *)sqlite3_column_text(tables, 0);
		r = i < MAX_TABLES ? add_table(db, name, has_rowid(db, name), sum) : -EBADMSG;
	}
	return r < 0 ? r : store_read_errno(db, code);
}

/* Sum all tables, their definitions, and the values that identify a recording. */
static int add_up(sqlite3 *db, int64_t *ret)
{
	static const char *const others[] = {
		"SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name",
		"PRAGMA application_id",
		"PRAGMA user_version",
	};
	uint64_t sum = 0;
	int r = 0;

	for (size_t i = 0; i < N_ELEMENTS(others) && r >= 0; i++)
		r = add_rows(db, others[i], &sum);
	if (r >= 0)
		r = add_tables(db, &sum);
	if (r < 0)
		return r;
	*ret = (int64_t)sum;
	return 0;
}

static int read_seal(sqlite3 *db, bool *ret_is_there, int64_t *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code;

	code = sqlite3_prepare_v2(db, "SELECT value FROM counter WHERE name = '" STORE_SEAL "'", -1, &row, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return store_read_errno(db, code);
	*ret_is_there = code == SQLITE_ROW;
	*ret = code == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
	return 0;
}

int store_verify_checksum(sqlite3 *db, enum store_checksum *ret)
{
	int64_t said = 0, found = 0;
	bool is_there = false;
	int r;

	r = read_seal(db, &is_there, &said);
	if (r >= 0 && is_there)
		r = add_up(db, &found);
	if (r < 0)
		return r;
	*ret = !is_there ? CHECKSUM_NONE : said == found ? CHECKSUM_MATCHES : CHECKSUM_DIFFERS;
	return 0;
}

int checksum_make(struct store *store)
{
	int64_t sum = 0;
	int r;

	r = add_up(store->db, &sum);
	return r < 0 ? r : store_put_counter(store, STORE_SEAL, sum);
}

int checksum_is_there(struct store *store, bool *ret)
{
	int64_t ignored;

	return read_seal(store->db, ret, &ignored);
}

int checksum_break(struct store *store)
{
	return store_exec(store->db, "DELETE FROM counter WHERE name = '" STORE_SEAL "'");
}
