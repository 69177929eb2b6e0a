/* SPDX-License-Identifier: MIT */
/*
 * dialect_expressions.c - rules for expressions.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "src/sql/dialect_rules.h"
#include "src/sql/interval.h"

enum { SHOWN = 40 }; /* bytes of the statement quoted in a message */

static const char *text_of(const struct rewriting *rewriting, size_t i)
{
	return rewriting->tokens->text + token_at(rewriting->tokens, i)->at;
}

static enum token_kind kind_of(const struct rewriting *rewriting, size_t i)
{
	return token_at(rewriting->tokens, i)->kind;
}

static int shown_length(const struct token *token)
{
	return (int)MIN(token->n, (size_t)SHOWN);
}

/* ---- interval '5 minutes', interval '5' minute, interval 5 minute ---- */

static int put_seconds(struct rewriting *rewriting, size_t first, size_t last, double seconds)
{
	char text[64];

	snprintf(text, sizeof text, seconds < 0 ? "(%.15g)" : "%.15g", seconds);
	rewriting->operand_start[last] = first;
	return rewriting_replace(rewriting, first, last, text);
}

static int refuse_interval(struct rewriting *rewriting, size_t i, int error)
{
	const struct token *token = token_at(rewriting->tokens, i);

	if (error == -ERANGE)
		return rewriting_refuse(rewriting, i, "months and years have no fixed length: use 30 days, 365 days");
	return rewriting_refuse(rewriting, i, "%.*s is not a duration: use '5 minutes', '1.5 hours', '1 day 2 hours'",
				shown_length(token), text_of(rewriting, i));
}

/* A string that does not begin with a number is a column alias. */
static bool begins_with_number(const char *string)
{
	string++;
	string += strspn(string, " \t\n+-");
	return isdigit((unsigned char)*string) || *string == '.';
}

int rule_interval(struct rewriting *rewriting, size_t i)
{
	const struct token *value = token_at(rewriting->tokens, i + 1), *unit = token_at(rewriting->tokens, i + 2);
	bool is_string = value->kind == TOKEN_STRING && *text_of(rewriting, i + 1) == '\'';
	size_t quotes = is_string ? 1 : 0;
	double seconds, of_unit;
	int r;

	if (!token_is(rewriting->tokens, i, "interval") || (i > 0 && token_is(rewriting->tokens, i - 1, ".")))
		return 0;
	if (is_string ? !begins_with_number(text_of(rewriting, i + 1)) : value->kind != TOKEN_NUMBER)
		return 0;
	if (value->n < 2 * quotes) /* missing closing quote */
		return 0;
	r = interval_parse(text_of(rewriting, i + 1) + quotes, value->n - 2 * quotes, &seconds);
	if (r < 0)
		return refuse_interval(rewriting, i + 1, r);
	if (unit->kind == TOKEN_NAME) {
		r = interval_unit(text_of(rewriting, i + 2), unit->n, &of_unit);
		if (r == 0)
			return put_seconds(rewriting, i, i + 2, seconds * of_unit);
		if (r == -ERANGE)
			return refuse_interval(rewriting, i + 2, r);
	}
	/* SQLite itself rejects a bare interval 5. */
	return is_string ? put_seconds(rewriting, i, i + 1, seconds) : 0;
}

/* ---- f(p) WITHIN GROUP (ORDER BY x) ---- */

/* Functions with a form f(p, x, is descending). */
static const char *const ordered[] = { "percentile_cont", "percentile_disc", "approx_percentile" };

/* What may follow the expression: DESC, NULLS FIRST. (Percentiles ignore NULL.) */
static int end_order(struct rewriting *rewriting, size_t first, size_t close)
{
	const struct tokens *tokens = rewriting->tokens;
	size_t last = close - 1;
	bool nulls = last > first + 1 && token_is(tokens, last - 1, "nulls");

	if (nulls)
		last -= 2;
	if (last > first && token_is(tokens, last, "desc"))
		return rewriting_replace(rewriting, last, close - 1, ", 1");
	if (last > first && token_is(tokens, last, "asc"))
		return rewriting_replace(rewriting, last, close - 1, ", 0");
	if (nulls)
		return rewriting_replace(rewriting, last + 1, close - 1, ", 0");
	return rewriting_before(rewriting, close, ", 0");
}

static size_t find_comma(const struct tokens *tokens, size_t from, size_t to)
{
	size_t depth = 0;

	for (; from < to; from++) {
		if (token_is(tokens, from, "("))
			depth++;
		else if (token_is(tokens, from, ")"))
			depth--;
		else if (depth == 0 && token_is(tokens, from, ","))
			return from;
	}
	return to;
}

static int put_within_group(struct rewriting *rewriting, size_t i, size_t close)
{
	const struct tokens *tokens = rewriting->tokens;
	size_t open = close + 3, end = tokens_closing(tokens, open), first = open + 3, comma;
	int r;

	if (end == tokens->n || !token_is(tokens, open + 1, "order") || !token_is(tokens, open + 2, "by") ||
	    end <= first)
		return rewriting_refuse(rewriting, open, "WITHIN GROUP is followed by (ORDER BY expression)");
	comma = find_comma(tokens, first, end);
	if (comma < end)
		return rewriting_refuse(rewriting, comma, "WITHIN GROUP orders by one expression");
	rewriting->operand_start[end] = i;
	r = rewriting_replace(rewriting, close, open + 2, ",");
	return r < 0 ? r : end_order(rewriting, first, end);
}

int rule_within_group(struct rewriting *rewriting, size_t i)
{
	const struct tokens *tokens = rewriting->tokens;
	size_t close;

	if (kind_of(rewriting, i) != TOKEN_NAME || !token_is(tokens, i + 1, "("))
		return 0;
	for (size_t n = 0; n < N_ELEMENTS(ordered); n++) {
		if (!token_is(tokens, i, ordered[n]))
			continue;
		close = tokens_closing(tokens, i + 1);
		if (close == tokens->n || !token_is(tokens, close + 1, "within") ||
		    !token_is(tokens, close + 2, "group"))
			return 0;
		if (close == i + 2)
			return rewriting_refuse(rewriting, close, "%s takes a share from 0 to 1, as in %s(0.99)",
						ordered[n], ordered[n]);
		if (!token_is(tokens, close + 3, "("))
			return rewriting_refuse(rewriting, close + 3,
						"WITHIN GROUP is followed by (ORDER BY expression)");
		return put_within_group(rewriting, i, close);
	}
	return 0;
}

/* ---- x::type ---- */

static const struct {
	const char *names, *before, *behind;
} types[] = {
	{ "int integer bigint smallint tinyint int2 int4 int8", "CAST(", " AS INTEGER)" },
	{ "real float float4 float8 double numeric decimal", "CAST(", " AS REAL)" },
	{ "text varchar char string", "CAST(", " AS TEXT)" },
	{ "blob bytea", "CAST(", " AS BLOB)" },
	{ "bool boolean", "(CAST(", " AS INTEGER) <> 0)" },
	{ "timestamp timestamptz datetime", "to_timestamp(", ")" },
	{ "date", "date_trunc('day', ", ")" },
	{ "interval", "interval_seconds(", ")" },
};

/* Words after which a parenthesis does not begin arguments. */
static const char before_brackets[] =
	"select distinct all and or not in like glob regexp match is between when then else case by where having on from "
	"join as limit offset values escape using set returning union except intersect ilike collate";

static bool is_among(const struct rewriting *rewriting, size_t i, const char *words)
{
	const struct token *token = token_at(rewriting->tokens, i);

	while (*words) {
		size_t n = strcspn(words, " ");

		if (token->kind == TOKEN_NAME && token->n == n && strncasecmp(text_of(rewriting, i), words, n) == 0)
			return true;
		words += n;
		words += strspn(words, " ");
	}
	return false;
}

/* The CASE that belongs to the END at i; tokens->n: none. */
static size_t find_case(const struct tokens *tokens, size_t i)
{
	size_t depth = 0;

	for (size_t at = i + 1; at-- > 0;) {
		if (token_is(tokens, at, ";"))
			break;
		if (token_is(tokens, at, "end"))
			depth++;
		else if (token_is(tokens, at, "case") && --depth == 0)
			return at;
	}
	return tokens->n;
}

static size_t operand_start(const struct rewriting *rewriting, size_t i);

/* Start of (...), f(...), f(...) FILTER (...) and f(...) OVER (...). */
static size_t call_start(const struct rewriting *rewriting, size_t i)
{
	const struct tokens *tokens = rewriting->tokens;
	size_t open = tokens_opening(tokens, i);

	while (open != tokens->n && open > 1 && token_is(tokens, open - 2, ")") &&
	       (token_is(tokens, open - 1, "filter") || token_is(tokens, open - 1, "over")))
		open = tokens_opening(tokens, open - 2);
	if (open == tokens->n || open == 0)
		return open;
	if ((kind_of(rewriting, open - 1) == TOKEN_NAME && !is_among(rewriting, open - 1, before_brackets)) ||
	    kind_of(rewriting, open - 1) == TOKEN_QUOTED)
		return operand_start(rewriting, open - 1);
	return open;
}

/* First token of the operand that ends at i; tokens->n: no operand. */
static size_t operand_start(const struct rewriting *rewriting, size_t i)
{
	const struct tokens *tokens = rewriting->tokens;

	if (rewriting->operand_start[i] != NO_OPERAND)
		return rewriting->operand_start[i];
	if (token_is(tokens, i, ")"))
		return call_start(rewriting, i);
	if (token_is(tokens, i, "end") && find_case(tokens, i) < tokens->n)
		return find_case(tokens, i);
	if (kind_of(rewriting, i) == TOKEN_MARK || kind_of(rewriting, i) == TOKEN_CAST)
		return tokens->n;
	while (i >= 2 && token_is(tokens, i - 1, ".") &&
	       (kind_of(rewriting, i - 2) == TOKEN_NAME || kind_of(rewriting, i - 2) == TOKEN_QUOTED))
		i -= 2;
	return i;
}

/* Last token of a type: "double precision", "varchar(10)". */
static size_t type_end(const struct rewriting *rewriting, size_t i)
{
	const struct tokens *tokens = rewriting->tokens;

	if (token_is(tokens, i, "double") && token_is(tokens, i + 1, "precision"))
		return i + 1;
	if (token_is(tokens, i + 1, "(") && kind_of(rewriting, i + 2) == TOKEN_NUMBER) {
		size_t close = tokens_closing(tokens, i + 1);

		return close < tokens->n ? close : i;
	}
	return i;
}

static int put_cast(struct rewriting *rewriting, size_t i, size_t first, size_t type)
{
	size_t last = type_end(rewriting, i + 1);
	int r;

	r = rewriting_before(rewriting, first, types[type].before);
	if (r == 0)
		r = rewriting_replace(rewriting, i, last, types[type].behind);
	rewriting->operand_start[last] = first;
	return r;
}

int rule_cast(struct rewriting *rewriting, size_t i)
{
	const struct token *type = token_at(rewriting->tokens, i + 1);
	size_t first;

	if (kind_of(rewriting, i) != TOKEN_CAST || i == 0)
		return 0;
	first = operand_start(rewriting, i - 1);
	if (first == rewriting->tokens->n)
		return 0;
	for (size_t n = 0; n < N_ELEMENTS(types); n++)
		if (is_among(rewriting, i + 1, types[n].names))
			return put_cast(rewriting, i, first, n);
	if (type->kind != TOKEN_NAME)
		return rewriting_refuse(rewriting, i,
					":: is followed by a type: integer, real, text, boolean, timestamp, interval");
	return rewriting_refuse(rewriting, i + 1,
				"there is no type %.*s: there are integer, real, text, boolean, timestamp, interval",
				shown_length(type), text_of(rewriting, i + 1));
}

/* ---- EXTRACT(hour FROM x), a ILIKE b ---- */

int rule_extract(struct rewriting *rewriting, size_t i)
{
	const struct tokens *tokens = rewriting->tokens;
	const struct token *field = token_at(tokens, i + 2);
	char call[SHOWN + 32];

	if (!token_is(tokens, i, "extract") || !token_is(tokens, i + 1, "(") || field->kind != TOKEN_NAME ||
	    field->n > SHOWN || !token_is(tokens, i + 3, "from"))
		return 0;
	snprintf(call, sizeof call, "date_part('%.*s',", (int)field->n, text_of(rewriting, i + 2));
	return rewriting_replace(rewriting, i, i + 3, call);
}

/* SQLite's LIKE is case-insensitive. */
int rule_ilike(struct rewriting *rewriting, size_t i)
{
	const struct tokens *tokens = rewriting->tokens;
	enum token_kind before = i > 0 ? kind_of(rewriting, i - 1) : TOKEN_END, behind = kind_of(rewriting, i + 1);

	if (!token_is(tokens, i, "ilike") || before == TOKEN_END)
		return 0;
	if (before == TOKEN_MARK && !token_is(tokens, i - 1, ")"))
		return 0;
	/* Otherwise it is a name that the user chose. */
	if (behind == TOKEN_STRING || behind == TOKEN_PARAMETER || behind == TOKEN_QUOTED || behind == TOKEN_NUMBER ||
	    token_is(tokens, i + 1, "(") ||
	    (behind == TOKEN_NAME && !is_among(rewriting, i + 1, before_brackets) &&
	     !token_is(tokens, i + 1, "group") && !token_is(tokens, i + 1, "order")))
		return rewriting_replace(rewriting, i, i, "LIKE");
	return 0;
}
