/* SPDX-License-Identifier: MIT */
/* worker.h - verbs that stay: each answers one question after the other, about a recording that it has read once, or about a process
 * whose files it keeps open.
 *
 * A worker gets a line and answers "ok BYTES", a note if there is one, and that many bytes, or "bad STATUS SENTENCE"
 * (src/cli/requests.h). It answers one question at a time. One that is late, crashes or says something else is ended, and the next question starts another one. So is one that
 * nobody has asked for a while, and the one that was asked longest ago where there are too many.
 */
#ifndef PROBING_SERVE_WORKER_H
#define PROBING_SERVE_WORKER_H

#include <stddef.h>

#include "src/serve/command.h"

struct workers;

/* workers_new - @n: targets, one worker each. @ret: ended with workers_free(). -ENOMEM. */
int workers_new(size_t n, struct workers **ret);
/* End them all. Nobody asks any more. NULL is harmless. */
void workers_free(struct workers *workers);

/*
 * worker_ask - ask a target's worker, which is started where there is none.
 * @words:  of its verb; ends with NULL.
 * @line:   the question, with its line end.
 * @seconds: for the answer, with the wait for other questions.
 * @stop:   a descriptor that becomes readable when all is to end.
 * @client: a socket; one that hangs up while it waits for other questions is not answered.
 * @ret:    as of command_run(): status and error are those of "bad"; the error of "ok" is its note. Ended with command_result_done().
 * Errors: -ECANCELED, -ECONNRESET, -ENOMEM, what starting it reports.
 */
int worker_ask(struct workers *workers, size_t target, const char *const *words, const char *line, double seconds,
	       int stop, int client, struct command_result *ret);

/* End those that nobody asked for five minutes. */
void workers_end_idle(struct workers *workers);

#endif
