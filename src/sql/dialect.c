/* SPDX-License-Identifier: MIT */
/*
 * dialect.c - applies the rules of the dialect to a text's tokens.
 *
 * Invariants:
 * 1. A rule changes only text that SQLite would call a syntax error, with one exception: interval '5
 *    minutes', which SQLite would take for a column named interval with another name.
 * 2. Changes do not overlap: a rule that replaces a range marks it as one
 *    operand, and no other begins inside.
 * 3. Every position of the result maps to a position of the user's text, in the same order.
 */
#include "src/sql/dialect.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/dialect_rules.h"

static int (*const rules[])(struct rewriting *rewriting, size_t i) = {
	rule_interval, rule_within_group, rule_cast, rule_extract, rule_ilike,
};

int rewriting_refuse(struct rewriting *rewriting, size_t i, const char *format, ...)
{
	struct dialect *dialect = rewriting->dialect;
	va_list arguments;

	if (dialect->has_mistake)
		return 0;
	dialect->has_mistake = true;
	dialect->mistake_at = token_at(rewriting->tokens, i)->at;
	va_start(arguments, format);
	vsnprintf(dialect->mistake, sizeof dialect->mistake, format, arguments);
	va_end(arguments);
	return 0;
}

int rewriting_replace(struct rewriting *rewriting, size_t first, size_t last, const char *instead)
{
	const struct token *from = token_at(rewriting->tokens, first), *to = token_at(rewriting->tokens, last);

	return edits_add(&rewriting->edits, from->at, to->at + to->n - from->at, instead);
}

int rewriting_before(struct rewriting *rewriting, size_t i, const char *text)
{
	return edits_add(&rewriting->edits, token_at(rewriting->tokens, i)->at, 0, text);
}

int rewriting_behind(struct rewriting *rewriting, size_t i, const char *text)
{
	const struct token *token = token_at(rewriting->tokens, i);

	return edits_add(&rewriting->edits, token->at + token->n, 0, text);
}

size_t tokens_closing(const struct tokens *tokens, size_t i)
{
	size_t depth = 0;

	for (; i < tokens->n; i++) {
		if (token_is(tokens, i, ";"))
			break;
		if (token_is(tokens, i, "("))
			depth++;
		else if (token_is(tokens, i, ")") && --depth == 0)
			return i;
	}
	return tokens->n;
}

size_t tokens_opening(const struct tokens *tokens, size_t i)
{
	size_t depth = 0;

	for (size_t at = i + 1; at-- > 0;) {
		if (token_is(tokens, at, ";"))
			break;
		if (token_is(tokens, at, ")"))
			depth++;
		else if (token_is(tokens, at, "(") && --depth == 0)
			return at;
	}
	return tokens->n;
}

/* Stop at the first error: the rest stays as typed. */
static int go_through(struct rewriting *rewriting)
{
	const struct tokens *tokens = rewriting->tokens;
	int r = 0;

	for (size_t i = 0; i < tokens->n; i++) {
		if (i > 0 && token_is(tokens, i - 1, ";"))
			rewriting->dialect->mistaken_statement = token_at(tokens, i - 1)->at + 1;
		if (i == 0 || token_is(tokens, i - 1, ";"))
			r = rule_show(rewriting, i);
		for (size_t rule = 0; r == 0 && rule < N_ELEMENTS(rules); rule++)
			if (!rewriting->dialect->has_mistake)
				r = rules[rule](rewriting, i);
		if (r < 0 || rewriting->dialect->has_mistake)
			break;
	}
	return r;
}

static int rewrite(struct dialect *dialect, const struct tokens *tokens)
{
	struct rewriting rewriting = { .tokens = tokens, .dialect = dialect };
	int r = -ENOMEM;

	rewriting.operand_start = calloc(tokens->n + 1, sizeof *rewriting.operand_start);
	if (rewriting.operand_start) {
		memset(rewriting.operand_start, 0xff, (tokens->n + 1) * sizeof *rewriting.operand_start);
		r = go_through(&rewriting);
	}
	if (r == 0)
		r = edits_apply(&rewriting.edits, dialect->typed, &dialect->text, &dialect->pieces, &dialect->n_pieces);
	edits_done(&rewriting.edits);
	free(rewriting.operand_start);
	return r;
}

int sql_dialect_rewrite(const char *typed, struct dialect *ret)
{
	struct dialect dialect = { .typed = typed };
	CLEANUP(tokens_done) struct tokens tokens = { 0 };
	int r;

	r = tokens_read(typed, &tokens);
	if (r == 0)
		r = rewrite(&dialect, &tokens);
	if (r < 0)
		return r;
	*ret = dialect;
	return 0;
}

void dialect_done(struct dialect *dialect)
{
	free(dialect->text);
	free(dialect->pieces);
	*dialect = (struct dialect){ 0 };
}

size_t dialect_origin(const struct dialect *dialect, size_t at)
{
	size_t low = 0, high = dialect->n_pieces;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct piece *piece = &dialect->pieces[middle];

		if (at < piece->to)
			high = middle;
		else if (at >= piece->to + piece->n)
			low = middle + 1;
		else
			return piece->kind == PIECE_COPIED ? piece->from + (at - piece->to) : piece->from;
	}
	return strlen(dialect->typed);
}
