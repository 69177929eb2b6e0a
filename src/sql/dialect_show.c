/* SPDX-License-Identifier: MIT */
/*
 * dialect_show.c - SHOW and DESCRIBE, as queries of information_schema.
 *
 * The names in them are put where SQLite resolves them, so that it reports a missing one
 * with its position in the user's text.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/dialect_rules.h"

/* Tokens of one statement, from the current one on. */
struct show {
	struct rewriting *rewriting;
	const struct tokens *tokens;
	size_t first, at;
};

static bool take(struct show *show, const char *word)
{
	if (!token_is(show->tokens, show->at, word))
		return false;
	show->at++;
	return true;
}

static bool is_name(const struct show *show, size_t i)
{
	enum token_kind kind = token_at(show->tokens, i)->kind;

	return kind == TOKEN_NAME || kind == TOKEN_QUOTED;
}

/* An unquoted name as an SQL string, for free(3). NULL: out of memory. */
static char *literal(const struct show *show, size_t i)
{
	const struct token *token = token_at(show->tokens, i);
	const char *from = show->tokens->text + token->at;
	size_t n = token->n, quotes = token->kind == TOKEN_QUOTED;
	char *text, *to;

	text = malloc(2 * n + 3);
	if (!text)
		return NULL;
	to = text;
	*to++ = '\'';
	for (size_t k = quotes; k + quotes < n; k++) {
		*to++ = from[k];
		if (from[k] == '\'')
			*to++ = '\'';
		else if (quotes && from[k] == from[0] && k + 2 < n)
			k++; /* doubled quote */
	}
	*to++ = '\'';
	*to = '\0';
	return text;
}

/* Replace the consumed tokens by a text. */
static int replace_taken(struct show *show, const char *instead)
{
	return rewriting_replace(show->rewriting, show->first, show->at - 1, instead);
}

static bool is_over(const struct show *show)
{
	return show->at >= show->tokens->n || token_is(show->tokens, show->at, ";");
}

static int refuse(struct show *show)
{
	return rewriting_refuse(
		show->rewriting, show->at,
		"there are SHOW TABLES [FROM schema] [LIKE pattern], SHOW COLUMNS FROM table, SHOW SCHEMAS, "
		"SHOW FUNCTIONS [LIKE pattern] and DESCRIBE table");
}

/*
 * Parse [LIKE 'pattern'] and the end.
 * @more: appended to the query. @order: the result's order.
 */
static int end_with_like(struct show *show, const char *more, const char *column, const char *order)
{
	CLEANUP(freep) char *like = NULL, *end = NULL;
	size_t word = show->at;
	int r;

	if (!take(show, "like") && !take(show, "ilike")) {
		if (!is_over(show))
			return refuse(show);
		if (asprintf(&end, "%s%s", more, order) < 0)
			return -ENOMEM;
		return rewriting_behind(show->rewriting, show->at - 1, end);
	}
	if (token_at(show->tokens, show->at)->kind != TOKEN_STRING)
		return refuse(show);
	show->at++;
	if (!is_over(show))
		return refuse(show);
	if (asprintf(&like, "%s AND %s LIKE", more, column) < 0)
		return -ENOMEM;
	r = rewriting_replace(show->rewriting, word, word, like);
	return r < 0 ? r : rewriting_behind(show->rewriting, show->at - 1, order);
}

static int show_tables(struct show *show)
{
	static const char select[] =
		"SELECT table_schema, table_name, table_type, remarks FROM information_schema.tables WHERE ";
	static const char order[] = " ORDER BY table_schema <> 'main', table_schema, table_name";
	CLEANUP(freep) char *name = NULL, *head = NULL, *tail = NULL;
	int r;

	if (!token_is(show->tokens, show->at, "from") && !token_is(show->tokens, show->at, "in")) {
		if (asprintf(&head, "%stable_schema <> 'information_schema'", select) < 0)
			return -ENOMEM;
		r = replace_taken(show, head);
		return r < 0 ? r : end_with_like(show, "", "table_name", order);
	}
	show->at++;
	if (!is_name(show, show->at))
		return refuse(show);
	name = literal(show, show->at);
	if (!name || asprintf(&head, "%s(1 OR EXISTS(SELECT 1 FROM ", select) < 0 ||
	    asprintf(&tail, ".sqlite_schema)) AND table_schema = %s COLLATE NOCASE", name) < 0)
		return -ENOMEM;
	r = replace_taken(show, head);
	show->at++;
	return r < 0 ? r : end_with_like(show, tail, "table_name", order);
}

/* Parse [schema.]table and the end. */
static int describe(struct show *show)
{
	static const char head[] =
		"SELECT column_name, data_type, is_nullable, unit, remarks FROM information_schema.columns"
		" WHERE (1 OR EXISTS(SELECT 1 FROM ";
	CLEANUP(freep) char *schema = NULL, *table = NULL, *tail = NULL;
	size_t name = show->at;
	int r;

	if (!is_name(show, name))
		return refuse(show);
	if (token_is(show->tokens, name + 1, ".") && is_name(show, name + 2)) {
		schema = literal(show, name);
		show->at += 2;
	}
	table = literal(show, show->at);
	if (!table || (show->at != name && !schema))
		return -ENOMEM;
	show->at++;
	if (!is_over(show))
		return refuse(show);
	r = schema ? asprintf(&tail,
			      ")) AND table_schema = %s COLLATE NOCASE AND table_name = %s COLLATE NOCASE"
			      " ORDER BY ordinal_position",
			      schema, table)
		   : asprintf(&tail,
			      ")) AND table_name = %s COLLATE NOCASE AND table_schema = (SELECT table_schema"
			      " FROM information_schema.tables WHERE table_name = %s COLLATE NOCASE"
			      " ORDER BY table_schema <> 'main' LIMIT 1) ORDER BY ordinal_position",
			      table, table);
	if (r < 0)
		return -ENOMEM;
	r = rewriting_replace(show->rewriting, show->first, name - 1, head);
	return r < 0 ? r : rewriting_behind(show->rewriting, show->at - 1, tail);
}

static int show_columns(struct show *show)
{
	if (!take(show, "from") && !take(show, "in"))
		return refuse(show);
	return describe(show);
}

static int show_schemas(struct show *show)
{
	int r = replace_taken(show, "SELECT table_schema, count(*) AS tables FROM information_schema.tables WHERE 1");

	return r < 0 ? r
		     : end_with_like(show, "", "table_schema",
				     " GROUP BY table_schema ORDER BY table_schema <> 'main', 1");
}

static int show_functions(struct show *show)
{
	int r = replace_taken(
		show, "SELECT name AS function_name, CASE min(type) WHEN 's' THEN 'scalar' WHEN 'a' THEN 'aggregate'"
		      " ELSE 'window' END AS function_type, probing_function_remarks(name) AS remarks"
		      " FROM pragma_function_list WHERE name NOT LIKE 'probing\\_%' ESCAPE '\\'"
		      " AND name GLOB '[a-z]*'");

	return r < 0 ? r : end_with_like(show, "", "name", " GROUP BY name ORDER BY name");
}

int rule_show(struct rewriting *rewriting, size_t i)
{
	struct show show = { .rewriting = rewriting, .tokens = rewriting->tokens, .first = i, .at = i };

	if (take(&show, "describe") || take(&show, "desc"))
		return describe(&show);
	if (!take(&show, "show"))
		return 0;
	if (take(&show, "tables"))
		return show_tables(&show);
	if (take(&show, "columns") || take(&show, "fields"))
		return show_columns(&show);
	if (take(&show, "schemas") || take(&show, "databases"))
		return show_schemas(&show);
	if (take(&show, "functions"))
		return show_functions(&show);
	return refuse(&show);
}
