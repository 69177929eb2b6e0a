/* SPDX-License-Identifier: MIT */
/* requests.h - a verb that stays: it answers one line of stdin after the other, for src/serve/worker.h. */
#ifndef PROBING_CLI_REQUESTS_H
#define PROBING_CLI_REQUESTS_H

#include <stddef.h>
#include <stdio.h>

enum { REQUEST_SENTENCE_BYTES = 512 };

/*
 * requests_serve - answer each line until stdin ends: "ok BYTES", a blank and a note if there is one, and that many bytes; or
 * "bad STATUS SENTENCE".
 * @max_bytes: of a line, its end included. A longer one is refused as a whole.
 * @answer:    writes the answer to @out. Returns an exit status; on failure @sentence, of REQUEST_SENTENCE_BYTES, says why. On success it
 *             may have a note, such as what is missing in the answer.
 * Returns the verb's exit status.
 */
int requests_serve(size_t max_bytes, int (*answer)(void *data, const char *line, FILE *out, char *sentence),
		   void *data);

#endif
