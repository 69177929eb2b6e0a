/* SPDX-License-Identifier: MIT */
/* verb.c - searches a verb by its name or an alias, and suggests similar ones. */
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/sql/sql.h"

enum { MAX_NAME = 32, MAX_SUGGESTIONS = 3 };

/* Next word of a space-separated list; false at its end. */
static bool next_word(const char **list, char *word)
{
	size_t n;

	*list += strspn(*list, " ");
	n = strcspn(*list, " ");
	if (n == 0)
		return false;
	snprintf(word, MAX_NAME, "%.*s", (int)n, *list);
	*list += n;
	return true;
}

static bool is_called(const struct verb *verb, const char *name)
{
	const char *aliases = verb->aliases ? verb->aliases : "";
	char alias[MAX_NAME];

	if (strcmp(verb->name, name) == 0)
		return true;
	while (next_word(&aliases, alias))
		if (strcmp(alias, name) == 0)
			return true;
	return false;
}

const struct verb *verb_find_in(const struct verb *const *list, const char *name)
{
	for (size_t i = 0; list && list[i]; i++)
		if (is_called(list[i], name))
			return list[i];
	return NULL;
}

const struct verb *verb_find(const char *name)
{
	return verb_find_in(verbs, name);
}

const struct verb *verb_of_words(const char *words)
{
	size_t n = strcspn(words, " ");
	const struct verb *verb;
	char name[MAX_NAME];

	snprintf(name, sizeof name, "%.*s", (int)n, words);
	verb = verb_find(name);
	return verb && words[n] ? verb_find_in(verb->below, words + n + 1) : verb;
}

static bool is_near(const struct verb *verb, const char *typed)
{
	const char *aliases = verb->aliases ? verb->aliases : "";
	char alias[MAX_NAME];

	if (name_is_near(typed, verb->name))
		return true;
	while (next_word(&aliases, alias))
		if (name_is_near(typed, alias))
			return true;
	return false;
}

void verb_suggest(const char *typed, char *to, size_t n_bytes)
{
	unsigned n = 0;

	to[0] = '\0';
	for (size_t i = 0; verbs[i] && n < MAX_SUGGESTIONS; i++) {
		size_t used = strlen(to);

		if (!is_near(verbs[i], typed))
			continue;
		snprintf(to + used, n_bytes - used, "%s%s", n > 0 ? " or " : "", verbs[i]->name);
		n++;
	}
}
