/* SPDX-License-Identifier: MIT */
/*
 * tokens.c - splits SQL into tokens, as SQLite's own tokenizer does (tokenize.c of 3.40).
 *
 * The text is foreign. Each iteration of each loop consumes at least one byte, and no token extends beyond the
 * NUL at its end.
 */
#include "src/sql/tokens.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || ((unsigned char)c & 0x80) != 0;
}

static bool is_name_start(char c)
{
	return is_name_byte(c) && !isdigit((unsigned char)c) && c != '$';
}

static size_t blank_length(const char *text)
{
	const char *end;

	if (isspace((unsigned char)*text))
		return strspn(text, " \t\n\r\f\v");
	if (text[0] == '-' && text[1] == '-')
		return strcspn(text, "\n");
	if (text[0] != '/' || text[1] != '*')
		return 0;
	end = text[2] ? strstr(text + 2, "*/") : NULL;
	return end ? (size_t)(end + 2 - text) : strlen(text);
}

/* Length of a quoted token; a doubled quote is one quote character. */
static size_t quoted_length(const char *text, char quote)
{
	size_t n = 1;

	while (text[n]) {
		if (text[n] != quote) {
			n++;
		} else if (text[n + 1] == quote && quote != ']') {
			n += 2;
		} else {
			return n + 1;
		}
	}
	return n;
}

static size_t name_length(const char *text)
{
	size_t n = 0;

	while (is_name_byte(text[n]))
		n++;
	return n;
}

static size_t number_length(const char *text)
{
	size_t n = 0;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && isxdigit((unsigned char)text[2])) {
		n = 2;
		while (isxdigit((unsigned char)text[n]))
			n++;
		return n;
	}
	n = strspn(text, "0123456789");
	if (text[n] == '.')
		n += 1 + strspn(text + n + 1, "0123456789");
	if ((text[n] == 'e' || text[n] == 'E') &&
	    (isdigit((unsigned char)text[n + 1]) ||
	     ((text[n + 1] == '+' || text[n + 1] == '-') && isdigit((unsigned char)text[n + 2])))) {
		n += 2;
		n += strspn(text + n, "0123456789");
	}
	return n;
}

/* $name may contain :: and end in (...), like Tcl variables. */
static size_t parameter_length(const char *text)
{
	size_t n = 1;

	if (text[0] == '?')
		return 1 + strspn(text + 1, "0123456789");
	for (;;) {
		if (is_name_byte(text[n]))
			n++;
		else if (text[0] == '$' && n > 1 && text[n] == ':' && text[n + 1] == ':')
			n += 2;
		else
			return n;
	}
}

static struct token next_token(const char *text)
{
	char c = text[0];

	if ((c == 'x' || c == 'X') && text[1] == '\'')
		return (struct token){ TOKEN_STRING, 0, 1 + quoted_length(text + 1, '\'') };
	if (is_name_start(c))
		return (struct token){ TOKEN_NAME, 0, name_length(text) };
	if (c == '\'')
		return (struct token){ TOKEN_STRING, 0, quoted_length(text, c) };
	if (c == '"' || c == '`' || c == '[')
		return (struct token){ TOKEN_QUOTED, 0, quoted_length(text, c == '[' ? ']' : c) };
	if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)text[1])))
		return (struct token){ TOKEN_NUMBER, 0, number_length(text) };
	if (c == ':' && text[1] == ':')
		return (struct token){ TOKEN_CAST, 0, 2 };
	if (c == '?' || ((c == ':' || c == '@' || c == '$') && is_name_byte(text[1])))
		return (struct token){ TOKEN_PARAMETER, 0, parameter_length(text) };
	return (struct token){ TOKEN_MARK, 0, 1 };
}

int tokens_read(const char *text, struct tokens *ret)
{
	CLEANUP(tokens_done) struct tokens tokens = { .text = text };
	size_t at = 0;

	for (;;) {
		struct token token = { .kind = TOKEN_END };
		size_t blank;
		int r;

		while ((blank = blank_length(text + at)) > 0)
			at += blank;
		if (text[at])
			token = next_token(text + at);
		token.at = at;
		r = grow(&tokens.items, tokens.n, &tokens.allocated, sizeof *tokens.items);
		if (r < 0)
			return r;
		tokens.items[tokens.n] = token;
		if (token.kind == TOKEN_END)
			break;
		tokens.n++;
		at += token.n;
	}
	*ret = tokens;
	tokens.items = NULL;
	return 0;
}

void tokens_done(struct tokens *tokens)
{
	free(tokens->items);
	tokens->items = NULL;
}

const struct token *token_at(const struct tokens *tokens, size_t i)
{
	return &tokens->items[MIN(i, tokens->n)];
}

bool token_is(const struct tokens *tokens, size_t i, const char *word)
{
	const struct token *token = token_at(tokens, i);

	return (token->kind == TOKEN_NAME || token->kind == TOKEN_MARK) && strlen(word) == token->n &&
	       strncasecmp(tokens->text + token->at, word, token->n) == 0;
}
