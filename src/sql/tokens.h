/* SPDX-License-Identifier: MIT */
/* tokens.h - a text of SQL, split into SQLite's tokens. */
#ifndef PROBING_SQL_TOKENS_H
#define PROBING_SQL_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum token_kind {
	TOKEN_END,    /* behind the last one, of no length */
	TOKEN_NAME,   /* a word: a name or a keyword */
	TOKEN_QUOTED, /* a quoted name: "x", `x`, [x] */
	TOKEN_STRING, /* 'x', x'00' */
	TOKEN_NUMBER,
	TOKEN_PARAMETER, /* ?, ?1, :x, @x, $x */
	TOKEN_CAST,      /* :: */
	TOKEN_MARK,      /* any other byte: one of ( ) , ; . + and so on */
};

struct token {
	enum token_kind kind;
	size_t at, n; /* bytes of the text */
};

struct tokens {
	const char *text; /* borrowed */
	struct token *items;
	size_t n; /* without the last, TOKEN_END */
	size_t allocated;
};

/*
 * tokens_read - split a text. Skips blanks and comments; an unclosed token extends to the end.
 * @ret: ended with tokens_done(). Tokens are in the order of the text.
 * Errors: -ENOMEM.
 */
int tokens_read(const char *text, struct tokens *ret);
void tokens_done(struct tokens *tokens);

/* The one at an index; TOKEN_END beyond the last. */
const struct token *token_at(const struct tokens *tokens, size_t i);

/* Whether a token is that word, in any case; for one byte: that punctuation mark. */
bool token_is(const struct tokens *tokens, size_t i, const char *word);

#endif
