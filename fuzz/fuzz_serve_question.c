/* SPDX-License-Identifier: MIT */
/* fuzz_serve_question.c - questions of other machines: what is taken has a known verb, and no option with a file or a command. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/serve/question.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check(const struct question *question)
{
	static const char *const never[] = { "--ssh",    "--remote", "--hosts", "--token",    "--ca-", "--from",
					     "--output", "--config", "--pid",   "--launcher", "-o",    "--local" };
	int is_behind = 0;

	if (question->n == 0 || question->words[question->n])
		abort();
	for (size_t i = 0; i < question->n; i++) {
		is_behind |= strcmp(question->words[i], "--") == 0;
		for (size_t k = 0; k < sizeof never / sizeof never[0]; k++)
			if ((!is_behind || question->is_recording) &&
			    strncmp(question->words[i], never[k], strlen(never[k])) == 0)
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct question question;
	const char *why = NULL;
	int r = question_parse((const char *)data, n_bytes, &question, &why);

	if (r == 0)
		check(&question);
	else if (!why)
		abort();
	question_done(&question);
	return 0;
}
