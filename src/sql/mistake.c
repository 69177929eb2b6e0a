/* SPDX-License-Identifier: MIT */
/* mistake.c - from an error of SQLite to a sentence that helps.
 *
 * SQLite gives the byte offset of many mistakes, but not of all: for a table
 * or a column that does not exist the name in its message is looked up in the
 * statement. For such names the nearest one of the schema is offered.
 * Asking the schema changes the connection's last error, so that is copied first.
 */
#include "src/sql/mistake.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/util.h"
#include "src/sql/sql.h"
#include "src/sql/tables.h"
#include "src/sql/text.h"

enum {
	MAX_MESSAGE = 600, /* the longest explains why a process may not be read */
	MAX_NAME = 64,
	CONTEXT = 30, /* bytes of the statement shown on each side of the position */
};

/* Messages that end in a name, and the query for similar names; columns come with their tables. */
static const struct {
	const char *prefix;
	const char *candidates;
} unknown_names[] = {
	{ "no such table: ", "SELECT name FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%'"
			     " UNION SELECT schema || '.' || name FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%'"
			     " UNION SELECT name FROM pragma_module_list WHERE name = 'sample'" },
	{ "no such column: ", "SELECT c.name, t.name FROM pragma_table_list t,"
			      " pragma_table_xinfo(t.name, t.schema) c"
			      " WHERE t.name NOT LIKE 'sqlite_%'"
			      " UNION SELECT name, 'sample' FROM pragma_table_xinfo('sample')" },
	{ "no such function: ",
	  "SELECT DISTINCT name FROM pragma_function_list WHERE name NOT LIKE 'probing\\_%' ESCAPE '\\'" },
	{ "no such schema: ", "SELECT name FROM pragma_database_list" },
	{ "unknown database ", "SELECT name FROM pragma_database_list" },
};

/* Tables that the older probing has or documents, and what has such rows here. */
static const struct {
	const char *name, *instead;
} older_tables[] = {
	{ "python.torch_trace",
	  "probing config PID probing.torch.profiling=on makes each pass of torch's modules a row of it, from the start "
	  "PROBING=1 PROBING_TORCH_PROFILING=on does" },
	{ "profiling_data",
	  "probing config PID probing.trace=train.step makes each call of that function a row of it, and python.function_time "
	  "has sums after probing attach PID --config FILE" },
	{ "training_logs",
	  "probing.log(epoch=1, loss=0.5) in a program with the agent writes it; python.variables has the values of "
	  "variables after probing config PID probing.watch_vars=loss@train" },
	{ "python.memory", "memory_usage has the memory of a process" },
};

/* The column that several recordings have, asked of one file. */
static const char run_column[] = "several recordings as arguments have it, and samples of a merged one";

/* A hint for a name that has a better one than a similar name; NULL: none. */
static const char *special_name(const char *message, const char *name)
{
	if (strncmp(message, "no such column: ", strlen("no such column: ")) == 0)
		return strcasecmp(name, "run") == 0 ? run_column : NULL;
	for (size_t i = 0; i < N_ELEMENTS(older_tables); i++)
		if (strcasecmp(name, older_tables[i].name) == 0)
			return older_tables[i].instead;
	return NULL;
}

/* SHOW TABLES FROM x queries a table that every schema has (dialect_show.c). */
static void explain_schema(char *message)
{
	static const char table[] = "no such table: ", hidden[] = ".sqlite_schema";
	size_t n = strlen(message);
	char copy[MAX_MESSAGE];

	if (strncmp(message, table, strlen(table)) != 0 || n < strlen(hidden) ||
	    strcmp(message + n - strlen(hidden), hidden) != 0)
		return;
	snprintf(copy, sizeof copy, "no such schema: %.*s", (int)(n - strlen(hidden) - strlen(table)),
		 message + strlen(table));
	memcpy(message, copy, sizeof copy);
}

/* @owner: a column's table; otherwise "". */
static void find_nearest(sqlite3 *db, const char *candidates, const char *name, char *nearest, char *owner)
{
	CLEANUP(tables_endp) sqlite3_int64 before = tables_begin();
	sqlite3_stmt *statement = NULL;
	unsigned best = ~0u;

	(void)before;
	nearest[0] = owner[0] = '\0';
	if (sqlite3_prepare_v2(db, candidates, -1, &statement, NULL) != SQLITE_OK)
		return; /* a schema that cannot be read has no candidates */
	while (sqlite3_step(statement) == SQLITE_ROW) {
		const char *candidate = (const char *)sqlite3_column_text(statement, 0);

		if (!candidate || !name_is_near(name, candidate) || name_distance(name, candidate) >= best)
			continue;
		best = name_distance(name, candidate);
		snprintf(nearest, MAX_NAME, "%s", candidate);
		if (sqlite3_column_count(statement) > 1)
			snprintf(owner, MAX_NAME, "%s", (const char *)sqlite3_column_text(statement, 1));
	}
	sqlite3_finalize(statement);
}

/* The unknown name: the text after the prefix, for a column without its table. */
static bool unknown_name(const char *message, char *name, const char **ret_candidates)
{
	for (size_t i = 0; i < N_ELEMENTS(unknown_names); i++) {
		size_t n = strlen(unknown_names[i].prefix);
		const char *dot;

		if (strncmp(message, unknown_names[i].prefix, n) != 0)
			continue;
		dot = strstr(unknown_names[i].prefix, "column") ? strrchr(message + n, '.') : NULL;
		snprintf(name, MAX_NAME, "%s", dot ? dot + 1 : message + n);
		*ret_candidates = unknown_names[i].candidates;
		return true;
	}
	return false;
}

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (c & 0x80) != 0;
}

/* Find a name as a whole word in a statement; NULL: not found. */
static const char *find_word(const char *statement, const char *name)
{
	size_t n = strlen(name);

	if (n == 0)
		return NULL;
	for (const char *at = strcasestr(statement, name); at; at = strcasestr(at + 1, name))
		if ((at == statement || !is_name_byte(at[-1])) && !is_name_byte(at[n]))
			return at;
	return NULL;
}

static unsigned n_characters(const char *from, const char *to)
{
	unsigned n = 0;

	for (; from < to; from++)
		n += ((unsigned char)*from & 0xc0) != 0x80;
	return n;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Print the line and a caret below the position, escaped for a terminal. */
static void print_context(FILE *out, const char *line, const char *at)
{
	struct sql_text shown = { 0 };
	const char *from = at - line > CONTEXT ? at - CONTEXT : line;
	const char *to = at + strcspn(at, "\n");
	unsigned before = 0, all;

	if (to - at > CONTEXT)
		to = at + CONTEXT;
	while (from < at && is_continuation(*from))
		from++;
	while (to > at && is_continuation(*to))
		to--;
	if (sql_text_put_visible(&shown, from, (size_t)(at - from), &before) == 0) {
		all = before;
		if (sql_text_put_visible(&shown, at, (size_t)(to - at), &all) == 0)
			fprintf(out, "\n  %.*s\n  %*s^", (int)shown.n, shown.n ? shown.bytes : "", (int)before, "");
	}
	sql_text_done(&shown);
}

static void explain_at(const char *sentence, const char *text, const char *at, char *to, size_t n_bytes)
{
	unsigned n_line = 1;
	const char *line = text;
	FILE *out;

	out = fmemopen(to, n_bytes, "w");
	if (!out) {
		snprintf(to, n_bytes, "%s", sentence);
		return;
	}
	for (const char *p = text; at && p < at; p++)
		if (*p == '\n') {
			n_line++;
			line = p + 1;
		}
	if (at)
		fprintf(out, "line %u, column %u: ", n_line, n_characters(line, at) + 1);
	fputs(sentence, out);
	if (at)
		print_context(out, line, at);
	putc('\0', out);
	fclose(out);
	to[n_bytes - 1] = '\0';
}

/* Map a position in the rewritten statement to the typed one. */
static const char *typed_place(const struct dialect *dialect, const char *at)
{
	return dialect->typed + dialect_origin(dialect, (size_t)(at - dialect->text));
}

void mistake_explain(sqlite3 *db, const struct dialect *dialect, const char *statement, char *to, size_t n_bytes)
{
	char message[MAX_MESSAGE], name[MAX_NAME], nearest[MAX_NAME] = "", owner[MAX_NAME] = "";
	char sentence[MAX_MESSAGE + MAX_NAME + 32];
	const char *candidates, *instead = NULL, *at = NULL;
	int offset = sqlite3_error_offset(db);

	snprintf(message, sizeof message, "%s", sqlite3_errmsg(db));
	explain_schema(message);
	if (offset >= 0 && (size_t)offset <= strlen(statement))
		at = typed_place(dialect, statement + offset);
	else if (strcmp(message, "incomplete input") == 0)
		at = typed_place(dialect, statement + strlen(statement));
	if (unknown_name(message, name, &candidates)) {
		if (!at)
			at = find_word(typed_place(dialect, statement), name);
		find_nearest(db, candidates, name, nearest, owner);
		instead = special_name(message, name);
	}
	if (instead)
		snprintf(sentence, sizeof sentence, "%s (%s)", message, instead);
	else if (owner[0] && strcasecmp(nearest, name) == 0)
		snprintf(sentence, sizeof sentence, "%s (%s has one)", message, owner);
	else if (nearest[0])
		snprintf(sentence, sizeof sentence, "%s (did you mean %s?)", message, nearest);
	else
		snprintf(sentence, sizeof sentence, "%s", message);
	explain_at(sentence, dialect->typed, at, to, n_bytes);
}

void mistake_refuse(const char *sentence, const struct dialect *dialect, const char *statement, char *to,
		    size_t n_bytes)
{
	const char *at = statement + strspn(statement, " \t\r\n");

	explain_at(sentence, dialect->typed, typed_place(dialect, at), to, n_bytes);
}

void mistake_of_dialect(const struct dialect *dialect, char *to, size_t n_bytes)
{
	explain_at(dialect->mistake, dialect->typed, dialect->typed + dialect->mistake_at, to, n_bytes);
}
