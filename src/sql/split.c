/* SPDX-License-Identifier: MIT */
/* split.c - one statement for many databases: sql.h.
 *
 * The text is split by its tokens. Each aggregate becomes columns a0, a1 ... of the part, each key of GROUP BY a column k0,
 * k1 ...; the whole has an expression of them in its place, and all else as it was typed. What is not understood is not split.
 */
#include "src/sql/sql.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "src/sql/dialect.h"
#include "src/sql/functions.h"
#include "src/sql/tokens.h"

enum { MAX_ITEMS = 64 };

/* Tokens from first to before end. */
struct range {
	size_t first, end;
};

struct item {
	struct range of; /* without its alias */
	size_t alias;    /* token; 0: none */
};

struct splitter {
	struct tokens tokens;
	sqlite3 *db; /* knows functions */
	bool is_exact, is_approximate;
	const char *reason; /* the first one */
	struct item items[MAX_ITEMS];
	size_t n_items, n_aggregates;
	struct range keys[MAX_ITEMS], orders[MAX_ITEMS];
	size_t n_keys, n_orders;
	struct range from, where, having, limit; /* empty: there is none */
	bool has_group;
	sqlite3_str *columns; /* of the part */
	sqlite3_str *whole;
};

static void refuse(struct splitter *splitter, const char *reason)
{
	if (!splitter->reason)
		splitter->reason = reason;
}

static bool is(const struct splitter *splitter, size_t at, const char *word)
{
	return token_is(&splitter->tokens, at, word);
}

static bool is_any(const struct splitter *splitter, size_t at, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is(splitter, at, words[i]))
			return true;
	return false;
}

/* The text of tokens, as it was typed. */
static const char *text_of(const struct splitter *splitter, struct range range, int *ret_n)
{
	const struct token *first = token_at(&splitter->tokens, range.first);
	const struct token *last = token_at(&splitter->tokens, range.end - 1);

	*ret_n = range.end > range.first ? (int)(last->at + last->n - first->at) : 0;
	return splitter->tokens.text + first->at;
}

static void append(const struct splitter *splitter, sqlite3_str *to, struct range range)
{
	int n;
	const char *text = text_of(splitter, range, &n);

	sqlite3_str_append(to, text, n);
}

/* The token behind the bracket that closes the one at a place; the end, if none does. */
static size_t behind_bracket(const struct splitter *splitter, size_t at, size_t end)
{
	int depth = 0;

	for (; at < end; at++) {
		depth += is(splitter, at, "(") ? 1 : is(splitter, at, ")") ? -1 : 0;
		if (depth == 0)
			return at + 1;
	}
	return end;
}

/* Columns that only the whole has. */
static bool is_identity(const struct splitter *splitter, struct range range)
{
	static const char *const names[] = { "host", "rank", "local_rank" };

	return range.end == range.first + 1 && is_any(splitter, range.first, names, N_ELEMENTS(names));
}

/* Whether a database can compute it by itself. */
static bool is_own(const struct splitter *splitter, struct range range)
{
	static const char *const ours[] = { "host",        "rank",  "local_rank", "host_", "rank_",
					    "local_rank_", "rowid", "rowid_",     "oid",   "_rowid_" };

	for (size_t i = range.first; i < range.end; i++) {
		enum token_kind kind = token_at(&splitter->tokens, i)->kind;

		if (is_any(splitter, i, ours, N_ELEMENTS(ours)) || is(splitter, i, "SELECT") ||
		    is(splitter, i, "OVER") || is(splitter, i, "COLLATE") || is(splitter, i, "FILTER") ||
		    kind == TOKEN_PARAMETER || kind == TOKEN_QUOTED)
			return false;
	}
	return true;
}

static bool is_empty(struct range range)
{
	return range.end == range.first;
}

/* ---- Clauses ---- */

/* Up to one of the words, outside of brackets. */
static size_t find_end(const struct splitter *splitter, size_t at, const char *const *words, size_t n)
{
	size_t end = splitter->tokens.n;

	while (at < end && !is_any(splitter, at, words, n) && !is(splitter, at, ";"))
		at = is(splitter, at, "(") ? behind_bracket(splitter, at, end) : at + 1;
	return at;
}

/* Parts between commas, outside of brackets. */
static size_t part_list(struct splitter *splitter, struct range range, struct range *ret)
{
	size_t n = 0, first = range.first;

	for (size_t i = range.first; i <= range.end;) {
		if (i < range.end && !is(splitter, i, ",")) {
			i = is(splitter, i, "(") ? behind_bracket(splitter, i, range.end) : i + 1;
			continue;
		}
		if (n == MAX_ITEMS || i == first) {
			refuse(splitter, "its list is empty, or too long");
			return 0;
		}
		ret[n++] = (struct range){ first, i };
		first = ++i;
	}
	return n;
}

/* Words of expressions that are no names. */
static const char *const keywords[] = { "AND",    "OR",     "NOT",     "IS",     "NULL",    "CASE",    "WHEN",
					"THEN",   "ELSE",   "END",     "IN",     "LIKE",    "GLOB",    "CAST",
					"AS",     "REAL",   "INTEGER", "TEXT",   "BETWEEN", "ISNULL",  "NOTNULL",
					"ESCAPE", "EXISTS", "COLLATE", "REGEXP", "MATCH",   "DISTINCT" };

static bool is_keyword(const struct splitter *splitter, size_t at)
{
	return token_at(&splitter->tokens, at)->kind == TOKEN_NAME &&
	       is_any(splitter, at, keywords, N_ELEMENTS(keywords));
}

/* "expression AS name", "expression name". */
static struct item make_item(const struct splitter *splitter, struct range range)
{
	static const char *const ends[] = { "END", "NULL", "ISNULL", "NOTNULL" };
	struct item item = { .of = range };
	const struct token *last = token_at(&splitter->tokens, range.end - 1);
	const struct token *before = token_at(&splitter->tokens, range.end - 2);

	if (range.end - range.first >= 3 && is(splitter, range.end - 2, "AS")) {
		item.alias = range.end - 1;
		item.of.end -= 2;
	} else if (range.end - range.first >= 2 && (last->kind == TOKEN_NAME || last->kind == TOKEN_QUOTED) &&
		   !is_keyword(splitter, range.end - 1) &&
		   (!is_keyword(splitter, range.end - 2) || is_any(splitter, range.end - 2, ends, N_ELEMENTS(ends))) &&
		   (before->kind == TOKEN_NAME || before->kind == TOKEN_NUMBER || before->kind == TOKEN_STRING ||
		    is(splitter, range.end - 2, ")"))) {
		item.alias = range.end - 1;
		item.of.end -= 1;
	}
	return item;
}

static bool is_equal(const struct splitter *splitter, size_t a, size_t b)
{
	const struct token *left = token_at(&splitter->tokens, a), *right = token_at(&splitter->tokens, b);

	return left->n == right->n &&
	       strncasecmp(splitter->tokens.text + left->at, splitter->tokens.text + right->at, left->n) == 0;
}

static bool has_name(const struct splitter *splitter, struct range range, size_t name)
{
	for (size_t i = range.first; i < range.end; i++)
		if (is_equal(splitter, i, name))
			return true;
	return false;
}

/* Whether it has a column's new name, which the table of a part lacks. "avg(x) AS x" is none: x is a column there, too. */
static bool has_new_name(const struct splitter *splitter, struct range range)
{
	for (size_t i = 0; i < splitter->n_items; i++)
		if (splitter->items[i].alias && has_name(splitter, range, splitter->items[i].alias) &&
		    !has_name(splitter, splitter->items[i].of, splitter->items[i].alias))
			return true;
	return false;
}

static void read_from(struct splitter *splitter)
{
	struct range from = splitter->from;
	size_t n = from.end - from.first, name = from.first;

	for (size_t i = from.first; i < from.end; i++)
		if (token_at(&splitter->tokens, i)->kind != TOKEN_NAME && !is(splitter, i, ".")) {
			refuse(splitter, "it is not of one table by name");
			return;
		}
	if (n >= 3 && is(splitter, name + 1, "."))
		name += 2;
	if (is(splitter, from.first, "cluster") || is(splitter, from.first, "information_schema"))
		refuse(splitter, ""); /* no table of a process */
	else if (n == 0 || is(splitter, name, "nodes") || from.end - name > 3)
		refuse(splitter, "it is not of one table of a process");
	else if (from.end - name == 3 && !is(splitter, name + 1, "AS"))
		refuse(splitter, "it is not of one table by name");
}

/* A number without point, exponent or prefix; -1: another token. */
static long whole_number(const struct splitter *splitter, size_t at)
{
	const struct token *token = token_at(&splitter->tokens, at);
	const char *text = splitter->tokens.text + token->at;

	if (token->kind != TOKEN_NUMBER || strspn(text, "0123456789") < token->n)
		return -1;
	return strtol(text, NULL, 10);
}

/* SQLite takes (2) for the number of a column, too. */
static bool is_constant(const struct splitter *splitter, struct range range)
{
	for (size_t i = range.first; i < range.end; i++)
		if (token_at(&splitter->tokens, i)->kind == TOKEN_NAME)
			return false;
	return true;
}

/* GROUP BY 1, or an expression. */
static void read_key(struct splitter *splitter, struct range *key)
{
	const struct token *token = token_at(&splitter->tokens, key->first);

	if (key->end == key->first + 1 && token->kind == TOKEN_NUMBER) {
		long number = whole_number(splitter, key->first);

		if (number < 1 || (size_t)number > splitter->n_items) {
			refuse(splitter, "GROUP BY has a number of no column");
			return;
		}
		*key = splitter->items[number - 1].of;
	} else if (has_new_name(splitter, *key))
		refuse(splitter, "GROUP BY has a column's new name: give its expression, or its number");
	if (is_constant(splitter, *key))
		refuse(splitter, "GROUP BY has a constant");
	for (size_t i = 0; i < splitter->n_items; i++)
		if (splitter->items[i].alias && key->end == key->first + 1 && token->kind == TOKEN_NAME) {
			const struct token *alias = token_at(&splitter->tokens, splitter->items[i].alias);

			if (alias->n == token->n && strncasecmp(splitter->tokens.text + alias->at,
								splitter->tokens.text + token->at, token->n) == 0)
				refuse(splitter,
				       "GROUP BY has a column's new name: give its expression, or its number");
		}
	if (!is_identity(splitter, *key) && !is_own(splitter, *key))
		refuse(splitter, "GROUP BY has an expression of host, rank or local_rank, or a quoted name");
}

static struct range clause(const struct splitter *splitter, size_t *at, const char *word, const char *second)
{
	static const char *const ends[] = { "WHERE",  "GROUP", "HAVING", "ORDER",    "LIMIT",
					    "WINDOW", "UNION", "EXCEPT", "INTERSECT" };
	struct range range = { *at, *at };

	if (!is(splitter, *at, word) || (second && !is(splitter, *at + 1, second)))
		return range;
	range.first = *at + (second ? 2 : 1);
	range.end = find_end(splitter, range.first, ends, N_ELEMENTS(ends));
	*at = range.end;
	return range;
}

/* A letter of ours and a number: ORDER BY in our statements would take such a new name for our column. */
static bool is_our_name(const struct splitter *splitter, size_t at)
{
	const struct token *token = token_at(&splitter->tokens, at);
	const char *text = splitter->tokens.text + token->at;
	size_t first = token->kind == TOKEN_QUOTED ? 1 : 0;

	return token->n > first && strchr("aAkKoOxX", text[first]) && token->n > first + 1 &&
	       strspn(text + first + 1, "0123456789") >= token->n - 2 * first - 1;
}

static void read_items(struct splitter *splitter, struct range range)
{
	struct range list[MAX_ITEMS];

	splitter->n_items = part_list(splitter, range, list);
	for (size_t i = 0; i < splitter->n_items; i++)
		splitter->items[i] = make_item(splitter, list[i]);
	for (size_t i = 0; i < splitter->n_items; i++) {
		struct range of = splitter->items[i].of;

		if ((splitter->items[i].alias && is_our_name(splitter, splitter->items[i].alias)) ||
		    (of.end > of.first && is_our_name(splitter, of.end - 1)))
			refuse(splitter, "a column has a name such as a0, k1 or x2, which its parts use");
	}
}

static void read_clauses(struct splitter *splitter)
{
	static const char *const from[] = { "FROM" };
	struct range group, order;
	size_t at = 1;

	if (!is(splitter, 0, "SELECT") || is(splitter, 1, "DISTINCT") || is(splitter, 1, "ALL")) {
		refuse(splitter, "it is no plain SELECT");
		return;
	}
	at = find_end(splitter, 1, from, 1);
	read_items(splitter, (struct range){ 1, at });
	splitter->from = clause(splitter, &at, "FROM", NULL);
	splitter->where = clause(splitter, &at, "WHERE", NULL);
	group = clause(splitter, &at, "GROUP", "BY");
	splitter->having = clause(splitter, &at, "HAVING", NULL);
	order = clause(splitter, &at, "ORDER", "BY");
	splitter->limit = clause(splitter, &at, "LIMIT", NULL);
	if (is(splitter, at, ";"))
		at++;
	if (at != splitter->tokens.n)
		refuse(splitter, "it is no plain SELECT");
	if (splitter->n_items == 1 && is(splitter, splitter->items[0].of.first, "*") && is_empty(splitter->where) &&
	    is_empty(group) && is_empty(order) && is_empty(splitter->limit))
		refuse(splitter, ""); /* all rows are asked for */
	read_from(splitter);
	if (has_new_name(splitter, splitter->where))
		refuse(splitter, "its conditions have a column's new name: give its expression");
	if (!is_own(splitter, splitter->where))
		refuse(splitter, "its conditions have host, rank, local_rank, a quoted name or a SELECT");
	if (splitter->limit.end > splitter->limit.first &&
	    (splitter->limit.end != splitter->limit.first + 1 ||
	     token_at(&splitter->tokens, splitter->limit.first)->kind != TOKEN_NUMBER))
		refuse(splitter, "its LIMIT is not a single number");
	splitter->has_group = group.end > group.first;
	if (splitter->has_group)
		splitter->n_keys = part_list(splitter, group, splitter->keys);
	for (size_t i = 0; i < splitter->n_keys; i++)
		read_key(splitter, &splitter->keys[i]);
	if (order.end > order.first)
		splitter->n_orders = part_list(splitter, order, splitter->orders);
}

/* ---- Aggregates ---- */

/* What a database counts, and how the counts become one. %s: the argument; %d: the number of the first column. */
struct aggregate {
	const char *name;
	const char *columns; /* of the part */
	const char *whole;
};

static const struct aggregate aggregates[] = {
	{ "count", "count(%s) AS a%d", "coalesce(sum(a%d), 0)" },
	{ "sum", "sum(%s) AS a%d", "sum(a%d)" },
	{ "total", "total(%s) AS a%d", "total(a%d)" },
	{ "min", "min(%s) AS a%d", "min(a%d)" },
	{ "max", "max(%s) AS a%d", "max(a%d)" },
	{ "median", "percentile_sketch(%s) AS a%d", "percentile_cont_of_sketches(a%d, 0.5)" },
};

/* Percentiles with a share: the value, then the share, or WITHIN GROUP: the share, the value, whether it descends. */
static const char *const percentiles[] = { "approx_percentile", "percentile_cont", "percentile_disc" };

/* Whether SQLite knows a function of that name as an aggregate, or not at all. */
static bool may_be_aggregate(const struct splitter *splitter, size_t at)
{
	const struct token *token = token_at(&splitter->tokens, at);
	sqlite3_stmt *statement = NULL;
	bool may = true;

	if (sqlite3_prepare_v2(splitter->db, "SELECT max(type <> 's') FROM pragma_function_list WHERE name = lower(?1)",
			       -1, &statement, NULL) != SQLITE_OK)
		return true;
	sqlite3_bind_text(statement, 1, splitter->tokens.text + token->at, (int)token->n, SQLITE_STATIC);
	if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL)
		may = sqlite3_column_int(statement, 0) != 0;
	sqlite3_finalize(statement);
	return may;
}

/* min(a, b) and max(a, b) are none. */
static bool is_aggregate(struct splitter *splitter, size_t at, size_t end)
{
	struct range arguments = { at + 2, end - 1 }, list[MAX_ITEMS];

	if (token_at(&splitter->tokens, at)->kind != TOKEN_NAME || !is(splitter, at + 1, "("))
		return false;
	if (is(splitter, at, "min") || is(splitter, at, "max"))
		return arguments.end > arguments.first && part_list(splitter, arguments, list) == 1;
	return may_be_aggregate(splitter, at);
}

static bool has_aggregate(struct splitter *splitter, struct range range)
{
	for (size_t i = range.first; i + 1 < range.end; i++)
		if (is(splitter, i + 1, "(") && is_aggregate(splitter, i, behind_bracket(splitter, i + 1, range.end)))
			return true;
	return false;
}

static void begin_column(struct splitter *splitter)
{
	if (sqlite3_str_length(splitter->columns) > 0)
		sqlite3_str_appendall(splitter->columns, ", ");
}

static void put_mean(struct splitter *splitter, struct range value)
{
	size_t n = splitter->n_aggregates;

	splitter->n_aggregates += 2;
	begin_column(splitter);
	sqlite3_str_appendall(splitter->columns, "total(");
	append(splitter, splitter->columns, value);
	sqlite3_str_appendf(splitter->columns, ") AS a%d, count(", (int)n);
	append(splitter, splitter->columns, value);
	sqlite3_str_appendf(splitter->columns, ") AS a%d", (int)n + 1);
	sqlite3_str_appendf(splitter->whole, "(total(a%d) / nullif(sum(a%d), 0))", (int)n, (int)n + 1);
}

static void put_percentile(struct splitter *splitter, const char *name, struct range *list, size_t n)
{
	struct range value = n == 3 ? list[1] : list[0], share = n == 3 ? list[0] : list[1];

	if (token_at(&splitter->tokens, share.first)->kind != TOKEN_NUMBER || share.end != share.first + 1) {
		refuse(splitter, "the share of a percentile is not a number");
		return;
	}
	begin_column(splitter);
	sqlite3_str_appendall(splitter->columns, "percentile_sketch(");
	append(splitter, splitter->columns, value);
	sqlite3_str_appendf(splitter->columns, ") AS a%d", (int)splitter->n_aggregates);
	sqlite3_str_appendf(splitter->whole, "%s_of_sketches(a%d, ", name, (int)splitter->n_aggregates++);
	append(splitter, splitter->whole, share);
	if (n == 3) {
		sqlite3_str_appendall(splitter->whole, ", ");
		append(splitter, splitter->whole, list[2]);
	}
	sqlite3_str_appendall(splitter->whole, ")");
}

static void put_simple(struct splitter *splitter, const struct aggregate *aggregate, struct range arguments)
{
	int n;
	const char *text = text_of(splitter, arguments, &n);
	char *argument = sqlite3_mprintf("%.*s", n, text);

	begin_column(splitter);
	sqlite3_str_appendf(splitter->columns, aggregate->columns, argument ? argument : "",
			    (int)splitter->n_aggregates);
	sqlite3_str_appendf(splitter->whole, aggregate->whole, (int)splitter->n_aggregates++);
	sqlite3_free(argument);
}

/* @end: behind its bracket. */
static void put_aggregate(struct splitter *splitter, size_t at, size_t end)
{
	struct range arguments = { at + 2, end - 1 }, list[MAX_ITEMS];
	size_t n = arguments.end > arguments.first ? part_list(splitter, arguments, list) : 0;
	bool is_percentile = is_any(splitter, at, percentiles, N_ELEMENTS(percentiles));

	if (is(splitter, at + 2, "DISTINCT") || is(splitter, end, "FILTER") || is(splitter, end, "OVER") ||
	    !is_own(splitter, arguments) || has_aggregate(splitter, arguments)) {
		refuse(splitter,
		       "it has an aggregate with DISTINCT, FILTER, OVER, ORDER BY, or of host, rank or local_rank");
		return;
	}
	if (is_percentile || is(splitter, at, "median")) {
		if (splitter->is_exact && !is(splitter, at, "approx_percentile"))
			refuse(splitter, "percentiles are to be exact");
		splitter->is_approximate = true;
	}
	for (size_t i = 0; i < N_ELEMENTS(percentiles); i++)
		if (is(splitter, at, percentiles[i]) && (n == 2 || n == 3)) {
			put_percentile(splitter, percentiles[i], list, n);
			return;
		}
	if (is(splitter, at, "avg") && n == 1) {
		put_mean(splitter, arguments);
		return;
	}
	for (size_t i = 0; i < N_ELEMENTS(aggregates); i++)
		if (is(splitter, at, aggregates[i].name) && (n == 1 || (i == 0 && n == 0))) {
			put_simple(splitter, &aggregates[i], arguments);
			return;
		}
	refuse(splitter, "it has an aggregate whose parts cannot be combined");
}

/* ---- Expressions of the whole ---- */

static bool is_same(const struct splitter *splitter, struct range a, size_t at, size_t end)
{
	size_t n = a.end - a.first;

	if (n == 0 || at + n > end || is(splitter, at + n, ".") || is(splitter, at + n, "("))
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct token *left = token_at(&splitter->tokens, a.first + i);
		const struct token *right = token_at(&splitter->tokens, at + i);

		if (left->kind != right->kind || left->n != right->n ||
		    strncmp(splitter->tokens.text + left->at, splitter->tokens.text + right->at, left->n) != 0)
			return false;
	}
	return true;
}

/* Whether the tokens are an operand of no operator: "x + y" in "2 * x + y" is not that sum. */
static bool is_alone(const struct splitter *splitter, struct range range, size_t at, size_t end)
{
	static const char *const before[] = { "(", ",", "CASE", "WHEN", "THEN", "ELSE" };
	static const char *const behind[] = { ")", ",", "WHEN", "THEN", "ELSE", "END" };

	return (at == range.first || is_any(splitter, at - 1, before, N_ELEMENTS(before))) &&
	       (end == range.end || is_any(splitter, end, behind, N_ELEMENTS(behind)));
}

/* Whether operators beside it cannot part it: one token, or one call. CAST('7' AS TEXT) = 7 holds; of its answer it does not. */
static bool is_operand(const struct splitter *splitter, struct range key)
{
	for (size_t i = key.first; i < key.end; i++)
		if (is(splitter, i, "CAST"))
			return false;
	return key.end == key.first + 1 || (key.end == key.first + 3 && is(splitter, key.first + 1, ".")) ||
	       (is(splitter, key.first, "(") && behind_bracket(splitter, key.first, key.end) == key.end) ||
	       (token_at(&splitter->tokens, key.first)->kind == TOKEN_NAME && !is_keyword(splitter, key.first) &&
		is(splitter, key.first + 1, "(") && behind_bracket(splitter, key.first + 1, key.end) == key.end);
}

/* Whether a bracket is of a call or a list, as in abs(x) and y IN (x). */
static bool is_of_call(const struct splitter *splitter, struct range range, size_t at)
{
	return is(splitter, at, "(") && at > range.first && token_at(&splitter->tokens, at - 1)->kind == TOKEN_NAME &&
	       (!is_keyword(splitter, at - 1) || is(splitter, at - 1, "IN"));
}

/* Puts a key that begins here, in an expression. Returns the number of its tokens. */
static size_t put_key(const struct splitter *splitter, struct range range, size_t at)
{
	size_t best = 0, which = 0, end = range.end;

	for (size_t i = 0; i < splitter->n_keys; i++)
		if (is_same(splitter, splitter->keys[i], at, end) && !is_of_call(splitter, range, at) &&
		    splitter->keys[i].end - splitter->keys[i].first > best &&
		    (is_operand(splitter, splitter->keys[i]) ||
		     is_alone(splitter, range, at, at + splitter->keys[i].end - splitter->keys[i].first))) {
			best = splitter->keys[i].end - splitter->keys[i].first;
			which = i;
		}
	if (best == 0)
		return 0;
	if (is_identity(splitter, splitter->keys[which]))
		append(splitter, splitter->whole, splitter->keys[which]);
	else
		sqlite3_str_appendf(splitter->whole, "k%d", (int)which);
	return best;
}

/* Whether nothing is between the token and the one before: operators such as >= are two tokens. */
static bool is_joined(const struct splitter *splitter, size_t at)
{
	const struct token *before = token_at(&splitter->tokens, at - 1);

	return before->at + before->n == token_at(&splitter->tokens, at)->at;
}

/* An expression of keys and aggregates. */
static void put_expression(struct splitter *splitter, struct range range)
{
	for (size_t at = range.first, n; at < range.end && !splitter->reason; at += n) {
		const struct token *token = token_at(&splitter->tokens, at);

		if (at == range.first || !is_joined(splitter, at))
			sqlite3_str_appendall(splitter->whole, " ");
		n = put_key(splitter, range, at);
		if (n > 0)
			continue;
		n = 1;
		if (token->kind == TOKEN_NAME && at + 1 < range.end && is(splitter, at + 1, "(") &&
		    !is_keyword(splitter, at)) {
			size_t end = behind_bracket(splitter, at + 1, range.end);

			if (is_aggregate(splitter, at, end)) {
				put_aggregate(splitter, at, end);
				n = end - at;
				continue;
			}
		} else if (token->kind == TOKEN_NAME && !is_keyword(splitter, at)) {
			refuse(splitter, "it has a column that is neither in GROUP BY nor in an aggregate");
		} else if (is(splitter, at, "COLLATE") || is(splitter, at, "SELECT")) {
			refuse(splitter, "it has COLLATE");
		} else if (token->kind == TOKEN_QUOTED || token->kind == TOKEN_PARAMETER || token->kind == TOKEN_CAST ||
			   is(splitter, at, "*")) {
			if (token->kind != TOKEN_MARK || at == range.first)
				refuse(splitter, "it has a quoted name, a parameter or *");
		}
		append(splitter, splitter->whole, (struct range){ at, at + 1 });
	}
}

/* The name that SQLite would give the column. */
static void put_name(struct splitter *splitter, const struct item *item)
{
	struct range range = item->alias ? (struct range){ item->alias, item->alias + 1 } : item->of;
	const char *text;
	int n;

	if (!item->alias && range.end - range.first == 3 && is(splitter, range.first + 1, "."))
		range.first += 2;
	text = text_of(splitter, range, &n);
	if (item->alias && token_at(&splitter->tokens, item->alias)->kind == TOKEN_QUOTED)
		sqlite3_str_appendf(splitter->whole, " AS %.*s", n, text);
	else {
		char *name = sqlite3_mprintf("%.*s", n, text);

		sqlite3_str_appendf(splitter->whole, " AS \"%w\"", name ? name : "");
		sqlite3_free(name);
	}
}

/* ORDER BY: the number of a column, or its new name; -1: neither. */
static int ordered_item(const struct splitter *splitter, struct range expression)
{
	const struct token *token = token_at(&splitter->tokens, expression.first);

	if (expression.end != expression.first + 1)
		return -1;
	if (token->kind == TOKEN_NUMBER) {
		long number = whole_number(splitter, expression.first);

		return number >= 1 && (size_t)number <= splitter->n_items ? (int)number - 1 : -1;
	}
	for (size_t i = 0; i < splitter->n_items; i++) {
		const struct token *alias = token_at(&splitter->tokens, splitter->items[i].alias);

		if (splitter->items[i].alias && token->kind != TOKEN_STRING && alias->n == token->n &&
		    strncasecmp(splitter->tokens.text + alias->at, splitter->tokens.text + token->at, token->n) == 0)
			return (int)i;
	}
	return -1;
}

/* Parts "x DESC NULLS LAST" into the expression and the rest. */
static struct range without_direction(const struct splitter *splitter, struct range range)
{
	static const char *const words[] = { "ASC", "DESC", "NULLS", "FIRST", "LAST" };

	while (range.end > range.first + 1 && is_any(splitter, range.end - 1, words, N_ELEMENTS(words)))
		range.end--;
	return range;
}

/* ((x)) is x to SQLite, too. */
static struct range without_brackets(const struct splitter *splitter, struct range range)
{
	while (range.end > range.first + 2 && is(splitter, range.first, "(") &&
	       behind_bracket(splitter, range.first, range.end) == range.end)
		range = (struct range){ range.first + 1, range.end - 1 };
	return range;
}

static void put_rest(struct splitter *splitter, sqlite3_str *to)
{
	if (splitter->limit.end > splitter->limit.first) {
		sqlite3_str_appendall(to, " LIMIT ");
		append(splitter, to, splitter->limit);
	}
}

/* ---- Groups ---- */

static void split_groups(struct splitter *splitter)
{
	for (size_t i = 0; i < splitter->n_keys; i++) {
		if (is_identity(splitter, splitter->keys[i]))
			continue;
		begin_column(splitter);
		append(splitter, splitter->columns, splitter->keys[i]);
		sqlite3_str_appendf(splitter->columns, " AS k%d", (int)i);
	}
	sqlite3_str_appendall(splitter->whole, "SELECT");
	for (size_t i = 0; i < splitter->n_items; i++) {
		sqlite3_str_appendall(splitter->whole, i > 0 ? "," : "");
		put_expression(splitter, splitter->items[i].of);
		put_name(splitter, &splitter->items[i]);
	}
	sqlite3_str_appendall(splitter->whole, " FROM answer");
	for (size_t i = 0; i < splitter->n_keys; i++) {
		sqlite3_str_appendall(splitter->whole, i > 0 ? ", " : " GROUP BY ");
		put_key(splitter, splitter->keys[i], splitter->keys[i].first);
	}
	if (splitter->having.end > splitter->having.first) {
		sqlite3_str_appendall(splitter->whole, " HAVING");
		put_expression(splitter, splitter->having);
	}
	for (size_t i = 0; i < splitter->n_orders; i++) {
		struct range expression = without_direction(splitter, splitter->orders[i]);
		int item = ordered_item(splitter, without_brackets(splitter, expression));

		sqlite3_str_appendall(splitter->whole, i > 0 ? ", " : " ORDER BY ");
		if (item >= 0)
			sqlite3_str_appendf(splitter->whole, "%d ", item + 1);
		else
			put_expression(splitter, expression);
		sqlite3_str_appendall(splitter->whole, " ");
		append(splitter, splitter->whole, (struct range){ expression.end, splitter->orders[i].end });
	}
	put_rest(splitter, splitter->whole);
}

/* ---- Rows ---- */

/* The first of an order: each database sends its own first ones. */
static void split_rows(struct splitter *splitter, sqlite3_str *part_order)
{
	sqlite3_str_appendall(splitter->whole, "SELECT");
	for (size_t i = 0; i < splitter->n_items; i++) {
		struct range of = splitter->items[i].of;

		sqlite3_str_appendall(splitter->whole, i > 0 ? ", " : " ");
		if (is_identity(splitter, of)) {
			append(splitter, splitter->whole, of);
		} else if (!is_own(splitter, of) || is(splitter, of.end - 1, "*")) {
			refuse(splitter, "it has * or an expression of host, rank or local_rank");
		} else {
			begin_column(splitter);
			append(splitter, splitter->columns, of);
			sqlite3_str_appendf(splitter->columns, " AS x%d", (int)i);
			sqlite3_str_appendf(splitter->whole, "x%d", (int)i);
		}
		put_name(splitter, &splitter->items[i]);
	}
	sqlite3_str_appendall(splitter->whole, " FROM answer");
	for (size_t i = 0; i < splitter->n_orders; i++) {
		struct range expression = without_direction(splitter, splitter->orders[i]);
		struct range direction = { expression.end, splitter->orders[i].end };
		int item = ordered_item(splitter, without_brackets(splitter, expression));
		bool is_of_all = item >= 0 ? is_identity(splitter, splitter->items[item].of)
					   : is_identity(splitter, expression);

		sqlite3_str_appendall(splitter->whole, i > 0 ? ", " : " ORDER BY ");
		if (item >= 0)
			sqlite3_str_appendf(splitter->whole, "%d ", item + 1);
		else if (is_of_all)
			append(splitter, splitter->whole, expression);
		else if (has_new_name(splitter, expression))
			refuse(splitter, "ORDER BY has a column's new name in an expression");
		else if (!is_own(splitter, expression) || is_constant(splitter, expression))
			refuse(splitter, "ORDER BY has an expression of host, rank or local_rank, or a number");
		else {
			begin_column(splitter);
			append(splitter, splitter->columns, expression);
			sqlite3_str_appendf(splitter->columns, " AS o%d", (int)i);
			sqlite3_str_appendf(splitter->whole, "o%d", (int)i);
		}
		sqlite3_str_appendall(splitter->whole, " ");
		append(splitter, splitter->whole, direction);
		if (is_of_all)
			continue; /* equal in each database */
		sqlite3_str_appendall(part_order, sqlite3_str_length(part_order) > 0 ? ", " : " ORDER BY ");
		sqlite3_str_appendf(part_order, item >= 0 ? "x%d " : "o%d ", item >= 0 ? item : (int)i);
		append(splitter, part_order, direction);
	}
	put_rest(splitter, splitter->whole);
	put_rest(splitter, part_order);
}

/* ---- Both ---- */

static bool has_groups(struct splitter *splitter)
{
	bool has = splitter->has_group || splitter->having.end > splitter->having.first;

	for (size_t i = 0; i < splitter->n_items; i++)
		has |= has_aggregate(splitter, splitter->items[i].of);
	for (size_t i = 0; i < splitter->n_orders; i++)
		has |= has_aggregate(splitter, splitter->orders[i]);
	return has;
}

/* @rest: what follows WHERE in the part. */
static char *make_part(struct splitter *splitter, sqlite3_str *rest)
{
	sqlite3_str *part = sqlite3_str_new(NULL);
	char *text = sqlite3_str_finish(rest);
	bool has_key = false;

	sqlite3_str_appendf(part, "SELECT %s FROM ",
			    sqlite3_str_length(splitter->columns) > 0 ? sqlite3_str_value(splitter->columns)
								      : "1 AS k");
	append(splitter, part, splitter->from);
	if (splitter->where.end > splitter->where.first) {
		sqlite3_str_appendall(part, " WHERE ");
		append(splitter, part, splitter->where);
	}
	for (size_t i = 0; i < splitter->n_keys; i++) {
		if (is_identity(splitter, splitter->keys[i]))
			continue;
		sqlite3_str_appendall(part, has_key ? ", " : " GROUP BY ");
		append(splitter, part, splitter->keys[i]);
		has_key = true;
	}
	if (splitter->has_group && !has_key) /* a database without rows has no group */
		sqlite3_str_appendall(part, " GROUP BY NULL");
	sqlite3_str_appendall(part, text ? text : "");
	sqlite3_free(text);
	return sqlite3_str_finish(part);
}

static void split(struct splitter *splitter, struct sql_split *ret)
{
	sqlite3_str *rest = sqlite3_str_new(NULL);

	read_clauses(splitter);
	if (splitter->reason)
		;
	else if (has_groups(splitter))
		split_groups(splitter);
	else
		split_rows(splitter, rest);
	ret->part = make_part(splitter, rest);
	ret->whole = sqlite3_mprintf("%s",
				     sqlite3_str_value(splitter->whole) ? sqlite3_str_value(splitter->whole) : "");
	ret->is_approximate = splitter->is_approximate;
}

int sql_split(const char *sql, bool is_exact, struct sql_split *ret)
{
	struct splitter splitter = { .is_exact = is_exact };
	struct dialect dialect = { 0 };
	int r = sql_dialect_rewrite(sql, &dialect);

	*ret = (struct sql_split){ 0 };
	if (r < 0)
		return r;
	if (dialect.has_mistake)
		splitter.reason = "it has a mistake";
	r = tokens_read(dialect.text, &splitter.tokens);
	if (r >= 0 &&
	    (sqlite3_open(":memory:", &splitter.db) != SQLITE_OK || sql_functions_register(splitter.db) != SQLITE_OK))
		r = -ENOMEM;
	splitter.columns = sqlite3_str_new(NULL);
	splitter.whole = sqlite3_str_new(NULL);
	if (r >= 0 && !splitter.reason)
		split(&splitter, ret);
	sqlite3_free(sqlite3_str_finish(splitter.columns));
	sqlite3_free(sqlite3_str_finish(splitter.whole));
	sqlite3_close(splitter.db);
	tokens_done(&splitter.tokens);
	dialect_done(&dialect);
	if (r >= 0 && !splitter.reason && (!ret->part || !ret->whole))
		r = -ENOMEM;
	if (r < 0 || splitter.reason) {
		sql_split_done(ret);
		ret->reason = splitter.reason;
	}
	return r;
}

void sql_split_done(struct sql_split *split)
{
	sqlite3_free(split->part);
	sqlite3_free(split->whole);
	*split = (struct sql_split){ 0 };
}
