/* SPDX-License-Identifier: MIT */
/* dialect_rules.h - the rules of dialect.c, with shared declarations. */
#ifndef PROBING_SQL_DIALECT_RULES_H
#define PROBING_SQL_DIALECT_RULES_H

#include "src/sql/dialect.h"
#include "src/sql/tokens.h"

struct rewriting {
	const struct tokens *tokens;
	struct edits edits;
	/* By the last token of an operand that a rule has replaced: its first token; else NO_OPERAND. */
	size_t *operand_start;
	struct dialect *dialect;
};

#define NO_OPERAND ((size_t)-1)

/*
 * A rule examines the token i and may add edits. It reports a mistake
 * by rewriting_refuse(). Errors: -ENOMEM.
 */
int rule_interval(struct rewriting *rewriting, size_t i);
int rule_within_group(struct rewriting *rewriting, size_t i);
int rule_cast(struct rewriting *rewriting, size_t i);
int rule_extract(struct rewriting *rewriting, size_t i);
int rule_ilike(struct rewriting *rewriting, size_t i);
/* Rules for whole statements, whose first token is i. */
int rule_show(struct rewriting *rewriting, size_t i);

/* Only the first mistake is kept. Always returns 0. */
int rewriting_refuse(struct rewriting *rewriting, size_t i, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Replace the tokens from first to last by a text. -ENOMEM. */
int rewriting_replace(struct rewriting *rewriting, size_t first, size_t last, const char *instead);
/* Insert a text before or after a token. -ENOMEM. */
int rewriting_before(struct rewriting *rewriting, size_t i, const char *text);
int rewriting_behind(struct rewriting *rewriting, size_t i, const char *text);

/* The bracket that closes the one at i; that opens the one at i. tokens->n: none. */
size_t tokens_closing(const struct tokens *tokens, size_t i);
size_t tokens_opening(const struct tokens *tokens, size_t i);

#endif
