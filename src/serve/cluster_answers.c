/* SPDX-License-Identifier: MIT */
/* cluster_answers.c - answers to `probing cluster` of other machines: its ranks here, and those of hosts that are asked from here. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/serve/answers.h"
#include "src/serve/command.h"
#include "src/serve/question.h"

enum { CLOCK_BYTES = 32, MAX_WORDS = QUESTION_MAX_WORDS + 12 };

/* The verb with what the client may not choose: where this server's own secrets are. */
static char *list_hosts(const struct question *question)
{
	char *list;

	return asprintf(&list, "--hosts=.,%s", question->below) < 0 ? NULL : list;
}

static void answer_question(const struct request *request, const struct question *question, struct answer *ret)
{
	const struct serve_options *options = request->options;
	CLEANUP(freep) char *hosts = question->below ? list_hosts(question) : NULL;
	const char *words[MAX_WORDS] = { "cluster", question->words[0], "--local" };
	size_t n = 3;

	if (question->below && !hosts) {
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "not enough memory");
		return;
	}
	if (question->below) {
		words[n++] = hosts;
		words[n++] = "--token-file";
		words[n++] = options->token_file;
		if (options->ca_file) {
			words[n++] = "--ca-file";
			words[n++] = options->ca_file;
		}
	}
	for (size_t i = 1; i < question->n; i++)
		words[n++] = question->words[i];
	if (request_run(request, words, QUESTION_MAX_SECONDS, ret))
		ret->type = question->is_recording ? "application/vnd.sqlite3" : "application/json";
}

void answer_cluster(const struct request *request, struct answer *ret)
{
	struct question question;
	const char *why = NULL;
	int r;

	if (!request->options->is_cluster) {
		answer_fail(ret, MHD_HTTP_FORBIDDEN, "start probing serve with --listen to answer other machines");
		return;
	}
	r = question_parse(request->body, request->n_body, &question, &why);
	if (r == -EBADMSG)
		answer_fail(ret, MHD_HTTP_BAD_REQUEST, "%s", why);
	else if (r < 0)
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "not enough memory");
	else
		answer_question(request, &question, ret);
	question_done(&question);
}

/* The time between the question's arrival and the answer: the client takes it for the middle of its round trip. */
void answer_clock(const struct request *request, struct answer *ret)
{
	(void)request;
	ret->body = malloc(CLOCK_BYTES);
	if (!ret->body) {
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "not enough memory");
		return;
	}
	ret->n_body = (size_t)snprintf(ret->body, CLOCK_BYTES, "%" PRIu64 "\n", realtime_ns());
	ret->status = MHD_HTTP_OK;
	ret->type = "text/plain";
}
