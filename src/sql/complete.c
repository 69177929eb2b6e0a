/* SPDX-License-Identifier: MIT */
/* complete.c - the Tab key: names of tables, columns, functions, words of SQL, commands.
 *
 * Columns of the tables in the statement come before those of others. The common prefix of all candidates is
 * inserted; if it adds nothing, they are listed.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/sql/prompt.h"
#include "src/sql/tables.h"

enum { MAX_WORD = 128, MAX_SHOWN = 120, MAX_NAME = 64 };

static const char words_sql[] =
	" VALUES ('SELECT'), ('FROM'), ('WHERE'), ('GROUP BY'), ('ORDER BY'), ('HAVING'), ('LIMIT'), ('JOIN'),"
	" ('LEFT JOIN'), ('USING'), ('DISTINCT'), ('WITH'), ('RECURSIVE'), ('UNION ALL'), ('CASE'), ('WHEN'), ('THEN'),"
	" ('ELSE'), ('END'), ('BETWEEN'), ('LIKE'), ('GLOB'), ('IS NULL'), ('NOT'), ('EXISTS'), ('OVER'),"
	" ('PARTITION BY'), ('FILTER'), ('DESC'), ('EXPLAIN QUERY PLAN')";

/* Candidates for a word of SQL. ?1: its typed part, ?2: the statement. */
static const char candidates_sql[] =
	"WITH t(schema, name, type) AS (%s), f(name) AS ("
	"SELECT name FROM t UNION SELECT schema || '.' || name FROM t WHERE schema <> 'main'"
	" UNION SELECT column_name FROM information_schema.columns WHERE instr(lower(?2), lower(table_name)) > 0"
	" UNION SELECT name FROM pragma_function_list WHERE name GLOB '[a-z]*'"
	" UNION SELECT CASE WHEN ?1 = lower(?1) AND ?1 <> '' THEN lower(column1) ELSE column1 END FROM (%s)) "
	"SELECT name FROM f WHERE substr(name, 1, length(?1)) = ?1 COLLATE NOCASE ORDER BY name COLLATE NOCASE";

static const char columns_sql[] =
	"SELECT DISTINCT column_name FROM information_schema.columns"
	" WHERE substr(column_name, 1, length(?1)) = ?1 COLLATE NOCASE ORDER BY column_name COLLATE NOCASE";

static const char paths_sql[] =
	"SELECT CASE schema WHEN 'main' THEN '' ELSE schema || '.' END || name AS name FROM (%s)"
	" WHERE substr(name, 1, length(?1)) = ?1 COLLATE NOCASE OR"
	" substr(schema || '.' || name, 1, length(?1)) = ?1 COLLATE NOCASE ORDER BY 1 COLLATE NOCASE";

/* Common prefix of the matching words, and their list. */
struct found {
	unsigned n;
	char common[MAX_NAME];
	struct sql_text list;
};

static void found_done(struct found *found)
{
	sql_text_done(&found->list);
}

static int add(struct found *found, const char *name)
{
	size_t n = 0;
	unsigned width = 0;
	int r;

	if (strlen(name) >= MAX_NAME)
		return 0;
	for (size_t i = 0; name[i]; i++) /* names with other characters need quotes */
		if (iscntrl((unsigned char)name[i]))
			return 0;
	if (found->n++ == 0)
		strcpy(found->common, name);
	while (found->common[n] && tolower((unsigned char)found->common[n]) == tolower((unsigned char)name[n]))
		n++;
	found->common[n] = '\0';
	if (found->n > MAX_SHOWN)
		return 0;
	r = sql_text_put_visible(&found->list, name, strlen(name), &width);
	return r < 0 ? r : sql_text_put(&found->list, "  ", 2);
}

static int add_names(struct found *found, sqlite3 *db, const char *sql, const char *word, const char *statement)
{
	CLEANUP(tables_endp) sqlite3_int64 before = tables_begin();
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *question = NULL;
	int r = 0;

	(void)before;
	if (sqlite3_prepare_v2(db, sql, -1, &question, NULL) != SQLITE_OK)
		return 0; /* a schema that cannot be read has no candidates */
	sqlite3_bind_text(question, 1, word, -1, SQLITE_STATIC);
	if (sqlite3_bind_parameter_count(question) > 1)
		sqlite3_bind_text(question, 2, statement, -1, SQLITE_STATIC);
	while (r >= 0 && sqlite3_step(question) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(question, 0);

		r = name ? add(found, name) : 0;
	}
	return r;
}

static int add_asked(struct found *found, sqlite3 *db, char *sql, const char *word, const char *statement)
{
	int r = sql ? add_names(found, db, sql, word, statement) : -ENOMEM;

	sqlite3_free(sql);
	return r;
}

static int find_sql(struct found *found, sqlite3 *db, const char **word, const char *statement)
{
	const char *dot;
	int r;

	r = add_asked(found, db, sqlite3_mprintf(candidates_sql, tables_sql, words_sql), *word, statement);
	if (r < 0 || found->n > 0)
		return r;
	dot = strrchr(*word, '.'); /* "s.weig": the table of alias s is not looked up */
	if (dot)
		*word = dot + 1;
	return add_names(found, db, columns_sql, *word, statement);
}

/* Add the names of a list that begin with the word. */
static int add_listed(struct found *found, const char *(*nth)(size_t n), const char *word)
{
	int r = 0;

	for (size_t i = 0; nth(i) && r >= 0; i++)
		if (strncmp(nth(i), word, strlen(word)) == 0)
			r = add(found, nth(i));
	return r;
}

static int find_command(struct found *found, sqlite3 *db, const char *line, const char *word)
{
	if (word == line)
		return add_listed(found, prompt_command_name, word);
	if (strncmp(line, ".mode", 5) == 0)
		return add_listed(found, sql_format_name, word);
	if (strncmp(line, ".schema", 7) == 0 || strncmp(line, ".tables", 7) == 0)
		return add_asked(found, db, sqlite3_mprintf(paths_sql, tables_sql), word, "");
	return 0;
}

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || (c & 0x80) != 0;
}

/* The earlier lines of the statement and this one. */
static char *whole_statement(const struct prompt *prompt, const char *line)
{
	char *text;

	return asprintf(&text, "%.*s%s", (int)prompt->statement.n,
			prompt->statement.n > 0 ? prompt->statement.bytes : "", line) < 0
		       ? NULL
		       : text;
}

static int find(struct prompt *prompt, const char *before, const char *whole, const char **word, struct found *found)
{
	CLEANUP(freep) char *statement = NULL;

	if (prompt->statement.n == 0 && before[0] == '.')
		return find_command(found, prompt->session.db, before, *word);
	statement = whole_statement(prompt, whole);
	return statement ? find_sql(found, prompt->session.db, word, statement) : -ENOMEM;
}

static unsigned char show(struct prompt *prompt, const struct found *found)
{
	fprintf(prompt->screen, "\n%.*s%s\n", (int)found->list.n, found->list.bytes, found->n > MAX_SHOWN ? "..." : "");
	return CC_REDISPLAY;
}

unsigned char prompt_complete(EditLine *editor, int key)
{
	CLEANUP(found_done) struct found found = { 0 };
	CLEANUP(freep) char *before = NULL, *whole = NULL;
	const LineInfo *line = el_line(editor);
	struct prompt *prompt = line_editor_data(editor);
	const char *word;
	size_t n;

	(void)key;
	before = strndup(line->buffer, (size_t)(line->cursor - line->buffer));
	whole = strndup(line->buffer, (size_t)(line->lastchar - line->buffer));
	if (!before || !whole)
		return CC_ERROR;
	n = strlen(before);
	while (n > 0 && is_of_word(before[n - 1]))
		n--;
	word = before + n;
	if (strlen(word) >= MAX_WORD || find(prompt, before, whole, &word, &found) < 0 || found.n == 0)
		return CC_REFRESH_BEEP;
	n = strlen(word);
	if (strlen(found.common) > n)
		return el_insertstr(editor, found.common + n) < 0 ? CC_ERROR : CC_REFRESH;
	return found.n > 1 ? show(prompt, &found) : CC_REFRESH;
}
