/* SPDX-License-Identifier: MIT */
/* question.h - a question of another machine's `probing cluster`: words of a command, a line each.
 *
 * Nothing else can be asked: verbs and options are of fixed lists, so that no word can start a program, name a file or run code.
 */
#ifndef PROBING_SERVE_QUESTION_H
#define PROBING_SERVE_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

enum { QUESTION_MAX_WORDS = 48, QUESTION_MAX_BYTES = 1 << 20, QUESTION_MAX_SECONDS = 300 };

struct question {
	char *text;                                /* what words point into; owned */
	const char *words[QUESTION_MAX_WORDS + 1]; /* the verb first, ends with NULL */
	size_t n;
	const char *below; /* other hosts that are asked from here, with commas; NULL: none */
	bool is_recording; /* the answer is a file */
};

/*
 * question_parse - check a question.
 * @text:   any bytes.
 * @ret:    ended with question_done(), also after a failure.
 * @ret_why: a sentence, after -EBADMSG.
 * Errors: -EBADMSG, -ENOMEM.
 */
int question_parse(const char *text, size_t n_bytes, struct question *ret, const char **ret_why);
void question_done(struct question *question);

#endif
