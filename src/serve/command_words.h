/* SPDX-License-Identifier: MIT */
/* command_words.h - the command line of a verb, put together from the parameters of a request. */
#ifndef PROBING_SERVE_COMMAND_WORDS_H
#define PROBING_SERVE_COMMAND_WORDS_H

#include "src/serve/answers.h"
#include "src/serve/command.h"

/* Begins all zero; ended with command_words_done(). */
struct command_words {
	const char *list[COMMAND_MAX_WORDS + 1]; /* ends with NULL */
	size_t n;
	char *owned[COMMAND_MAX_WORDS];
	size_t n_owned;
	bool is_short; /* of memory, or of room: command_words_run() refuses it */
};

void command_words_done(struct command_words *words);

/* command_words_put - @word is borrowed. */
void command_words_put(struct command_words *words, const char *word);
void command_words_format(struct command_words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A parameter of a request, and the option that has its value. */
struct option_of {
	const char *parameter, *option;
	bool is_flag; /* the option has no value; the parameter is 1, or absent */
};

/*
 * command_words_options - put the options of those parameters that the request has, as --option=VALUE: no value is taken for an option.
 * @options: n of them.
 * Returns false where a flag is not 1; @ret has the message then.
 */
bool command_words_options(struct command_words *words, const struct request *request, const struct option_of *options,
			   size_t n, struct answer *ret);

/* As request_run(). */
bool command_words_run(const struct command_words *words, const struct request *request, double seconds,
		       struct answer *ret);

#endif
