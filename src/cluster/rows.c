/* SPDX-License-Identifier: MIT */
/* rows.c - the rows of all ranks in one database in memory.
 *
 * A table is made when its first rank comes, and gets a column when a rank has one more: ranks may be of different versions.
 * Names are foreign: those of schemas and tables are plain words, those of columns any text in quotes. No statement has
 * a value in its text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cluster/private.h"
#include "src/cluster/values.h"

enum { MAX_NAME = 64, MAX_COLUMN_NAME = 128, ROW_BITS = 32 };

/* A table of a rank, as it is being read. */
struct rows {
	struct cluster *cluster;
	const struct cluster_rank *rank;
	const char *schema, *name;
	const json_t *columns; /* pairs: name, type */
};

static int code_error(int code)
{
	return code == SQLITE_OK || code == SQLITE_DONE ? 0 : (code & 0xff) == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
}

/* Runs and frees the text; NULL: no memory. */
static int execute(sqlite3 *db, char *sql)
{
	int code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return code_error(code);
}

static bool is_word(const char *name)
{
	return name && name[0] && strlen(name) < MAX_NAME &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
}

/* Names that belong to SQLite, to probing, or to the cluster itself. */
static bool is_reserved(const char *schema, const char *name)
{
	return strcasecmp(schema, "temp") == 0 || strcasecmp(schema, "information_schema") == 0 ||
	       strcasecmp(schema, "cluster") == 0 || strncasecmp(name, "sqlite_", strlen("sqlite_")) == 0;
}

/* The name of a column in the common table, owned by the caller; NULL: no memory. The rowid has the order of ranks. */
static char *column_name(const char *name)
{
	static const char *const ours[] = { "host", "rank", "local_rank", "rowid" };
	bool is_ours = false;

	for (size_t i = 0; i < N_ELEMENTS(ours); i++)
		is_ours |= strcasecmp(name, ours[i]) == 0;
	return sqlite3_mprintf("%.*s%s", MAX_COLUMN_NAME, name, is_ours ? "_" : "");
}

/* Types of SQLite; any other text is none. */
static const char *type_of(const json_t *column)
{
	static const char *const types[] = { "INTEGER", "REAL", "TEXT", "BLOB" };
	const char *type = json_string_value(json_array_get(column, 1));

	for (size_t i = 0; type && i < N_ELEMENTS(types); i++)
		if (strcmp(types[i], type) == 0)
			return types[i];
	return "";
}

static int check_columns(const struct rows *rows)
{
	for (size_t i = 0; i < json_array_size(rows->columns); i++) {
		const char *name = json_string_value(json_array_get(json_array_get(rows->columns, i), 0));

		if (!name || !name[0])
			return -EBADMSG;
	}
	return 0;
}

static int make_table(const struct rows *rows)
{
	sqlite3 *db = rows->cluster->db;
	int r = 0;

	if (!sqlite3_db_filename(db, rows->schema))
		r = execute(db, sqlite3_mprintf("ATTACH ':memory:' AS \"%w\"", rows->schema));
	if (r >= 0)
		r = execute(db, sqlite3_mprintf("CREATE TABLE IF NOT EXISTS \"%w\".\"%w\"(host TEXT, rank INTEGER, "
						"local_rank INTEGER)",
						rows->schema, rows->name));
	return r;
}

static bool has_column(const struct rows *rows, const char *name)
{
	return sqlite3_table_column_metadata(rows->cluster->db, rows->schema, rows->name, name, NULL, NULL, NULL, NULL,
					     NULL) == SQLITE_OK;
}

static int make_columns(const struct rows *rows)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < json_array_size(rows->columns); i++) {
		const json_t *column = json_array_get(rows->columns, i);
		char *name = column_name(json_string_value(json_array_get(column, 0)));

		if (!name)
			return -ENOMEM;
		if (!has_column(rows, name))
			r = execute(rows->cluster->db,
				    sqlite3_mprintf("ALTER TABLE \"%w\".\"%w\" ADD COLUMN \"%w\" %s", rows->schema,
						    rows->name, name, type_of(column)));
		sqlite3_free(name);
	}
	return r;
}

/* INSERT with a parameter for the rowid, the three columns of ours, and each of the rank's. */
static int prepare(const struct rows *rows, sqlite3_stmt **ret)
{
	sqlite3_str *text = sqlite3_str_new(NULL);
	size_t n = json_array_size(rows->columns);
	char *sql;
	int code;

	sqlite3_str_appendf(text, "INSERT INTO \"%w\".\"%w\"(rowid, host, rank, local_rank", rows->schema, rows->name);
	for (size_t i = 0; i < n; i++) {
		char *name = column_name(json_string_value(json_array_get(json_array_get(rows->columns, i), 0)));

		sqlite3_str_appendf(text, ", \"%w\"", name ? name : "");
		sqlite3_free(name);
	}
	sqlite3_str_appendf(text, ") VALUES(?, ?, ?, ?");
	for (size_t i = 0; i < n; i++)
		sqlite3_str_appendall(text, ", ?");
	sqlite3_str_appendall(text, ")");
	sql = sqlite3_str_finish(text);
	code = sql ? sqlite3_prepare_v2(rows->cluster->db, sql, -1, ret, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return code_error(code);
}

/* The rowid before a rank's first row: rows are in the order of ranks. 0: the rank is unknown, its rows come last. */
static int find_place(const struct rows *rows, int64_t *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int64_t first = (rows->rank->identity.rank + 1) << ROW_BITS;
	char *sql = sqlite3_mprintf(
		"SELECT coalesce(max(rowid), ?1) FROM \"%w\".\"%w\" WHERE rowid > ?1 AND rowid < ?2", rows->schema,
		rows->name);
	int code = sql ? sqlite3_prepare_v2(rows->cluster->db, sql, -1, &statement, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	if (code == SQLITE_OK) {
		sqlite3_bind_int64(statement, 1, first);
		sqlite3_bind_int64(statement, 2, first + (INT64_C(1) << ROW_BITS));
		code = sqlite3_step(statement);
	}
	if (code != SQLITE_ROW)
		return code_error(code) < 0 ? code_error(code) : -EINVAL;
	*ret = rows->rank->identity.rank < 0 ? 0 : sqlite3_column_int64(statement, 0);
	return 0;
}

/* Hexadecimal digits of a blob: {"hex": "00ff"}. */
static int bind_blob(sqlite3_stmt *statement, int at, const char *hex)
{
	size_t n = strlen(hex) / 2;
	uint8_t *bytes = sqlite3_malloc64(n + 1);

	if (!bytes)
		return SQLITE_NOMEM;
	for (size_t i = 0; i < n; i++) {
		char digits[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

		bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return sqlite3_bind_blob64(statement, at, bytes, n, sqlite3_free);
}

static int bind(sqlite3_stmt *statement, int at, const json_t *value)
{
	const char *hex = value_text(value, "hex");

	if (json_is_integer(value))
		return sqlite3_bind_int64(statement, at, json_integer_value(value));
	if (json_is_real(value))
		return sqlite3_bind_double(statement, at, json_real_value(value));
	if (json_is_string(value))
		return sqlite3_bind_text64(statement, at, json_string_value(value), json_string_length(value),
					   SQLITE_STATIC, SQLITE_UTF8);
	return hex ? bind_blob(statement, at, hex) : sqlite3_bind_null(statement, at);
}

static int insert(const struct rows *rows, sqlite3_stmt *statement, int64_t rowid, const json_t *row)
{
	const struct rank_identity *identity = &rows->rank->identity;
	const char *host = cluster_host_label(&rows->cluster->hosts[rows->rank->host]);
	size_t n = json_array_size(rows->columns);
	int code = SQLITE_OK;

	if (!json_is_array(row) || json_array_size(row) != n)
		return -EBADMSG;
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	if (rowid > 0)
		sqlite3_bind_int64(statement, 1, rowid);
	code = sqlite3_bind_text(statement, 2, host, -1, SQLITE_STATIC);
	if (identity->rank >= 0)
		sqlite3_bind_int64(statement, 3, identity->rank);
	if (identity->local_rank >= 0)
		sqlite3_bind_int64(statement, 4, identity->local_rank);
	for (size_t i = 0; code == SQLITE_OK && i < n; i++)
		code = bind(statement, (int)i + 5, json_array_get(row, i));
	return code_error(code == SQLITE_OK ? sqlite3_step(statement) : code);
}

static int insert_all(const struct rows *rows, const json_t *values)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int64_t before = 0;
	int r = find_place(rows, &before);

	if (r >= 0)
		r = prepare(rows, &statement);
	for (size_t i = 0; r >= 0 && i < json_array_size(values); i++)
		r = insert(rows, statement, before > 0 ? before + (int64_t)i + 1 : 0, json_array_get(values, i));
	return r;
}

/* Append the reason why a table could not be read. */
static int add_note(struct cluster_rank *rank, const char *schema, const char *name, const char *problem)
{
	char *text;

	if (asprintf(&text, "%s%s%s%s%s: %.512s", rank->note ? rank->note : "", rank->note ? "; " : "",
		     strcmp(schema, "main") == 0 ? "" : schema, strcmp(schema, "main") == 0 ? "" : ".", name,
		     problem) < 0)
		return -ENOMEM;
	free(rank->note);
	rank->note = text;
	return 0;
}

static int read_table(struct cluster *cluster, struct cluster_rank *rank, const json_t *from)
{
	const char *schema = value_text(from, "schema"), *name = value_text(from, "name");
	const char *problem = value_text(from, "problem");
	struct rows rows = { cluster, rank, schema, name, NULL };
	const json_t *values = NULL;
	int r;

	if (!is_word(schema) || !is_word(name) || is_reserved(schema, name))
		return -EBADMSG;
	if (problem && add_note(rank, schema, name, problem) < 0)
		return -ENOMEM;
	r = value_array(from, "columns", CLUSTER_MAX_COLUMNS, &rows.columns);
	if (r >= 0)
		r = value_array(from, "rows", CLUSTER_MAX_BYTES, &values);
	if (r >= 0)
		r = check_columns(&rows);
	if (r >= 0)
		r = make_table(&rows);
	if (r >= 0)
		r = make_columns(&rows);
	return r < 0 ? r : insert_all(&rows, values);
}

/* For another machine: without a database, rows go on as they came. */
static int keep_data(struct cluster_rank *rank, const json_t *data)
{
	if (!json_is_object(data))
		return -EBADMSG;
	free(rank->data);
	rank->data = json_dumps(data, JSON_COMPACT);
	return rank->data ? 0 : -ENOMEM;
}

static int begin(struct cluster *cluster, const char *what)
{
	return execute(cluster->db, sqlite3_mprintf("SAVEPOINT %s", what));
}

static int end(struct cluster *cluster, const char *what, bool is_refused)
{
	int r = is_refused ? execute(cluster->db, sqlite3_mprintf("ROLLBACK TO %s", what)) : 0;
	int released = execute(cluster->db, sqlite3_mprintf("RELEASE %s", what));

	return r < 0 ? r : released;
}

int cluster_rows_begin(struct cluster *cluster)
{
	return cluster->db ? begin(cluster, "document") : 0;
}

int cluster_rows_end(struct cluster *cluster, bool is_refused)
{
	return cluster->db ? end(cluster, "document", is_refused) : 0;
}

int cluster_rows_read(struct cluster *cluster, struct cluster_rank *rank, const json_t *data)
{
	const json_t *tables = NULL;
	int r, ended;

	if (!data)
		return 0;
	if (!cluster->db)
		return keep_data(rank, data);
	r = value_array(data, "tables", CLUSTER_MAX_TABLES, &tables);
	if (r >= 0)
		r = begin(cluster, "rank");
	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < json_array_size(tables); i++)
		r = read_table(cluster, rank, json_array_get(tables, i));
	ended = end(cluster, "rank", r < 0);
	return r < 0 ? r : ended;
}

int cluster_read_rows(struct cluster *cluster, struct cluster_rank *rank, const char *text, size_t n_bytes)
{
	CLEANUP(value_decrefp) json_t *data = NULL;
	int r = value_load(text, n_bytes, &data);

	if (r >= 0 && !json_is_object(data))
		r = -EBADMSG;
	return r < 0 ? r : cluster_rows_read(cluster, rank, data);
}
