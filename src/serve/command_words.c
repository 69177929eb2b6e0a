/* SPDX-License-Identifier: MIT */
/* command_words.c - see command_words.h. */
#include "src/serve/command_words.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void command_words_done(struct command_words *words)
{
	for (size_t i = 0; i < words->n_owned; i++)
		free(words->owned[i]);
	*words = (struct command_words){ 0 };
}

void command_words_put(struct command_words *words, const char *word)
{
	if (!word || words->n >= COMMAND_MAX_WORDS)
		words->is_short = true;
	else
		words->list[words->n++] = word;
}

void command_words_format(struct command_words *words, const char *format, ...)
{
	char *word = NULL;
	va_list list;
	int n;

	va_start(list, format);
	n = vasprintf(&word, format, list);
	va_end(list);
	if (n < 0 || words->n_owned >= COMMAND_MAX_WORDS) {
		words->is_short = true;
		free(n < 0 ? NULL : word);
		return;
	}
	words->owned[words->n_owned++] = word;
	command_words_put(words, word);
}

bool command_words_options(struct command_words *words, const struct request *request, const struct option_of *options,
			   size_t n, struct answer *ret)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = request_parameter(request, options[i].parameter);

		if (!value)
			continue;
		if (!options[i].is_flag) {
			command_words_format(words, "%s=%s", options[i].option, value);
		} else if (strcmp(value, "1") == 0) {
			command_words_put(words, options[i].option);
		} else {
			answer_fail(ret, MHD_HTTP_BAD_REQUEST, "%s is 1, or absent", options[i].parameter);
			return false;
		}
	}
	return true;
}

bool command_words_run(const struct command_words *words, const struct request *request, double seconds,
		       struct answer *ret)
{
	if (!words->is_short)
		return request_run(request, words->list, seconds, ret);
	answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "the command is too long");
	return false;
}
