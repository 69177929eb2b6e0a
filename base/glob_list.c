/* SPDX-License-Identifier: MIT */
/* glob_list.c - see glob_list.h. Source: fnmatch(3). */
#include "base/glob_list.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void glob_list_done(struct glob_list *words)
{
	for (size_t i = 0; i < words->n; i++)
		free(words->words[i]);
	free(words->words);
	*words = (struct glob_list){ 0 };
}

static int add(struct glob_list *words, const char *word, size_t n_bytes)
{
	int r;

	r = grow(&words->words, words->n, &words->allocated, sizeof *words->words);
	if (r < 0)
		return r;
	words->words[words->n] = strndup(word, n_bytes);
	if (!words->words[words->n])
		return -ENOMEM;
	words->n++;
	return 0;
}

int glob_list_add(struct glob_list *words, const char *word)
{
	return add(words, word, strlen(word));
}

int glob_list_add_list(struct glob_list *words, const char *list)
{
	size_t n_before = words->n;
	int r = 0;

	while (r >= 0 && *list) {
		size_t n_bytes = strcspn(list, ",");

		if (n_bytes > 0)
			r = add(words, list, n_bytes);
		list += n_bytes + (list[n_bytes] == ',');
	}
	if (r >= 0 && words->n == n_before)
		return -EINVAL;
	return r;
}

bool glob_list_match(const struct glob_list *words, const char *name)
{
	for (size_t i = 0; i < words->n; i++)
		if (strcmp(words->words[i], name) == 0 || fnmatch(words->words[i], name, 0) == 0)
			return true;
	return false;
}

bool glob_list_match_function(const struct glob_list *words, const char *name)
{
	const char *dot = strrchr(name, '.');

	return glob_list_match(words, name) || (dot && dot[1] && glob_list_match(words, dot + 1));
}

/* -1: no number. */
static int64_t number_of(const char *word)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(word, &end, 10);
	return end == word || *end || errno != 0 || value < 0 ? -1 : value;
}

bool glob_list_have_number(const struct glob_list *words, int64_t number)
{
	for (size_t i = 0; i < words->n; i++)
		if (number_of(words->words[i]) == number)
			return number >= 0;
	return false;
}

bool glob_list_are_numbers(const struct glob_list *words)
{
	for (size_t i = 0; i < words->n; i++)
		if (number_of(words->words[i]) < 0)
			return false;
	return true;
}
