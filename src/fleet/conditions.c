/* SPDX-License-Identifier: MIT */
/* conditions.c - the user's conditions as expressions of SQL, made of words and numbers of our own. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/sample.h"
#include "src/fleet/read.h"
#include "src/fleet/tables.h"

enum { MAX_WORD = 64 };

enum value_kind { VALUE_NUMBER, VALUE_ANSWER, VALUE_VERDICT, VALUE_STATE };

static const struct column {
	const char *name;
	enum value_kind kind;
	unsigned shift, bits; /* in flags */
} columns[] = {
	{ "pid", VALUE_NUMBER, 0, 0 },
	{ "tid", VALUE_NUMBER, 0, 0 },
	{ "rank", VALUE_NUMBER, 0, 0 },
	{ "cpu", VALUE_NUMBER, 0, 0 },
	{ "weight", VALUE_NUMBER, 0, 0 },
	{ "verdict", VALUE_VERDICT, FLEET_VERDICT_SHIFT, 3 },
	{ "gil", VALUE_ANSWER, FLEET_GIL_SHIFT, 2 },
	{ "gc", VALUE_ANSWER, FLEET_GC_SHIFT, 2 },
	{ "state", VALUE_STATE, FLEET_STATE_SHIFT, 4 },
};

/* The longer ones first. */
static const char *const operators[] = { "<=", ">=", "!=", "<>", "==", "=", "<", ">" };

struct parsing {
	const char *at;
	FILE *out;
	char *why;
	size_t n_why;
};

static int explain(struct parsing *parsing, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int explain(struct parsing *parsing, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(parsing->why, parsing->n_why, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static void skip_blanks(struct parsing *parsing)
{
	parsing->at += strspn(parsing->at, " \t\n");
}

/* Letters and "_"; "" there is none, or it is too long. */
static void take_word(struct parsing *parsing, char *to)
{
	size_t n = 0;

	skip_blanks(parsing);
	while (isalpha((unsigned char)parsing->at[n]) || parsing->at[n] == '_')
		n++;
	if (n >= MAX_WORD)
		n = 0;
	memcpy(to, parsing->at, n);
	to[n] = '\0';
	parsing->at += n;
}

static const struct column *find_column(const char *name)
{
	for (size_t i = 0; i < N_ELEMENTS(columns); i++)
		if (strcasecmp(columns[i].name, name) == 0)
			return &columns[i];
	return NULL;
}

static const char *take_operator(struct parsing *parsing)
{
	skip_blanks(parsing);
	for (size_t i = 0; i < N_ELEMENTS(operators); i++)
		if (strncmp(parsing->at, operators[i], strlen(operators[i])) == 0) {
			parsing->at += strlen(operators[i]);
			return operators[i];
		}
	return NULL;
}

static int take_number(struct parsing *parsing, long long *ret)
{
	char *end;

	skip_blanks(parsing);
	errno = 0;
	*ret = strtoll(parsing->at, &end, 10);
	if (end == parsing->at || errno != 0)
		return explain(parsing, "a number is missing at '%.20s'", parsing->at);
	parsing->at = end;
	return 0;
}

/* A word in single quotes. */
static int take_quoted(struct parsing *parsing, char *to)
{
	size_t n;

	skip_blanks(parsing);
	n = parsing->at[0] == '\'' ? strcspn(parsing->at + 1, "'") : 0;
	if (parsing->at[0] != '\'' || parsing->at[n + 1] != '\'' || n >= MAX_WORD)
		return explain(parsing, "a word in single quotes is missing at '%.20s'", parsing->at);
	memcpy(to, parsing->at + 1, n);
	to[n] = '\0';
	parsing->at += n + 2;
	return 0;
}

static int parse_state(const char *word, long long *ret)
{
	for (int state = STATE_NONE + 1; state < STATE_N; state++)
		if (strcmp(thread_state_name((enum thread_state)state), word) == 0) {
			*ret = state;
			return 0;
		}
	return -EINVAL;
}

/* The value of a column in flags. */
static int take_value(struct parsing *parsing, const struct column *column, long long *ret)
{
	char word[MAX_WORD];
	enum verdict verdict;
	int r;

	if (column->kind == VALUE_NUMBER)
		return take_number(parsing, ret);
	if (column->kind == VALUE_ANSWER) {
		r = take_number(parsing, ret);
		if (r == 0 && *ret != 0 && *ret != 1)
			r = explain(parsing, "%s is 0 or 1", column->name);
		*ret = *ret == 1 ? ANSWER_YES : ANSWER_NO;
		return r;
	}
	r = take_quoted(parsing, word);
	if (r < 0)
		return r;
	if (column->kind == VALUE_STATE)
		r = parse_state(word, ret);
	else {
		r = verdict_parse(word, &verdict);
		*ret = r == 0 ? (long long)verdict : 0;
	}
	return r < 0 ? explain(parsing, "no %s is called '%s'", column->name, word) : 0;
}

static int parse_term(struct parsing *parsing)
{
	const struct column *column;
	const char *operator;
	char word[MAX_WORD];
	long long value;
	int r;

	take_word(parsing, word);
	column = find_column(word);
	if (!column)
		return explain(
			parsing,
			"on a fleet it is COLUMN OP VALUE, joined by AND; columns are pid, tid, rank, cpu, weight, verdict, gil, gc and state, not %s",
			word[0] ? word : "that");
	operator= take_operator(parsing);
	if (!operator)
		return explain(parsing, "an operator is missing after %s: = != < <= > >=", column->name);
	if (column->kind != VALUE_NUMBER && strchr("<>", operator[0]) && strcmp(operator, "<>") != 0)
		return explain(parsing, "%s has no order: compare it with = or !=", column->name);
	r = take_value(parsing, column, &value);
	if (r < 0)
		return r;
	if (column->bits == 0)
		fprintf(parsing->out, "%s %s %lld", column->name, operator, value);
	else
		/* An unknown value (0) equals nothing and differs from nothing, as NULL in a recording. */
		fprintf(parsing->out,
			"(bitAnd(bitShiftRight(flags, %u), %u) %s %lld AND bitAnd(bitShiftRight(flags, %u), %u) %s)",
			column->shift, (1U << column->bits) - 1, operator, value, column->shift,
			(1U << column->bits) - 1, column->kind == VALUE_VERDICT ? ">= 0" : "> 0");
	return 0;
}

static int parse_terms(struct parsing *parsing)
{
	char word[MAX_WORD];
	int r;

	for (;;) {
		r = parse_term(parsing);
		if (r < 0)
			return r;
		skip_blanks(parsing);
		if (!*parsing->at)
			return 0;
		take_word(parsing, word);
		if (strcasecmp(word, "AND") != 0)
			return explain(parsing, "AND is missing before '%s%.20s'", word, parsing->at);
		fputs(" AND ", parsing->out);
	}
}

int fleet_parse_where(const char *text, char **ret, char *why, size_t n_why)
{
	CLEANUP(freep) char *sql = NULL;
	size_t n;
	struct parsing parsing = { .at = text, .out = open_memstream(&sql, &n), .why = why, .n_why = n_why };
	int r;

	if (!parsing.out)
		return -ENOMEM;
	r = parse_terms(&parsing);
	if (fclose(parsing.out) != 0 && r == 0)
		r = -ENOMEM;
	if (r == 0)
		*ret = TAKE(sql);
	return r;
}

/* "8" or "8-15". */
static int print_ranks(const char **at, FILE *out)
{
	char *end;
	long first, last;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	errno = 0;
	first = last = strtol(*at, &end, 10);
	if (*end == '-' && isdigit((unsigned char)end[1]))
		last = strtol(end + 1, &end, 10);
	if (errno != 0 || last < first || last > INT32_MAX)
		return -EINVAL;
	fprintf(out, "rank BETWEEN %ld AND %ld", first, last);
	*at = end;
	return 0;
}

int fleet_parse_ranks(const char *text, char **ret)
{
	CLEANUP(freep) char *sql = NULL;
	size_t n;
	FILE *out = open_memstream(&sql, &n);
	int r;

	if (!out)
		return -ENOMEM;
	fputc('(', out);
	r = print_ranks(&text, out);
	while (r == 0 && *text == ',') {
		text++;
		fputs(" OR ", out);
		r = print_ranks(&text, out);
	}
	if (r == 0 && *text)
		r = -EINVAL;
	fputc(')', out);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r == 0)
		*ret = TAKE(sql);
	return r;
}
