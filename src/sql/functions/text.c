/* SPDX-License-Identifier: MIT */
/*
 * text.c - regular expressions: POSIX's extended ones, as grep -E has them (regex(7)).
 *
 * A pattern is compiled once for a statement in which it is constant.
 */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/functions/functions_private.h"

enum { MAX_PATTERN = 1000 };

static void regex_free(void *data)
{
	regfree(data);
	free(data);
}

static void refuse(sqlite3_context *context, int error, const regex_t *regex, const char *pattern)
{
	char why[128], *sentence;

	regerror(error, regex, why, sizeof why);
	sentence = sqlite3_mprintf("%Q is not a regular expression: %s", pattern, why);
	sqlite3_result_error(context, sentence ? sentence : why, -1);
	sqlite3_free(sentence);
}

/* NULL: an error was set. */
static regex_t *compile(sqlite3_context *context, const char *pattern, int flags)
{
	regex_t *regex;
	int error;

	if (strlen(pattern) > MAX_PATTERN) {
		sqlite3_result_error(context, "a regular expression may have at most 1000 bytes", -1);
		return NULL;
	}
	regex = malloc(sizeof *regex);
	if (!regex) {
		sqlite3_result_error_nomem(context);
		return NULL;
	}
	error = regcomp(regex, pattern, REG_EXTENDED | REG_NOSUB | flags);
	if (error == 0)
		return regex;
	refuse(context, error, regex, pattern);
	free(regex);
	return NULL;
}

/* X REGEXP Y is regexp(Y, X). */
static void call_regexp(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	const char *pattern = (const char *)sqlite3_value_text(arguments[0]);
	const char *text = (const char *)sqlite3_value_text(arguments[1]);
	const int *flags = sqlite3_user_data(context);
	regex_t *regex = sqlite3_get_auxdata(context, 0), *made = NULL;

	(void)n;
	if (!pattern || !text)
		return;
	if (!regex)
		regex = made = compile(context, pattern, *flags);
	if (!regex)
		return;
	sqlite3_result_int(context, regexec(regex, text, 0, NULL, 0) == 0);
	if (made) /* last, because SQLite may free it at once */
		sqlite3_set_auxdata(context, 0, made, regex_free);
}

static const int exact_case = 0, any_case = REG_ICASE;

#define PURE (SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS)

const struct sql_function text_functions[] = {
	{ "regexp", 2,
	  "regexp(pattern, text): 1 if the pattern matches anywhere, as text REGEXP pattern; POSIX "
	  "extended",
	  PURE, (void *)&exact_case, call_regexp, NULL, NULL },
	{ "regexpi", 2, "regexpi(pattern, text): the same without regard to capitals", PURE, (void *)&any_case,
	  call_regexp, NULL, NULL },
	{ 0 },
};
