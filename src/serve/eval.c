/* SPDX-License-Identifier: MIT */
/* eval.c - Python code in a process, only where serve was started with --allow-eval. */
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "src/serve/command_words.h"

enum { DEFAULT_SECONDS = 10, MAX_SECONDS = 60 };

/* put_text() writes no text as null. */
static void put(struct json *json, const char *key, const char *text)
{
	if (text && text[0])
		to_json_put_text(json, key, text);
	else
		to_json_put_string(json, key, "");
}

/* The output, with the value of the last expression, and the traceback; "" for none. */
static void answer_result(const struct command_result *result, struct answer *ret)
{
	struct json json;

	to_json_keep(NULL, &json);
	to_json_object(&json);
	put(&json, "output", result->out);
	put(&json, "traceback", result->status == 0 ? "" : result->error);
	to_json_object_end(&json);
	answer_json(ret, &json);
	to_json_done(&json);
}

void answer_eval(const struct request *request, struct answer *ret)
{
	CLEANUP(command_words_done) struct command_words words = { 0 };
	CLEANUP(command_result_done) struct command_result result = { 0 };
	const struct serve_target *target;
	long seconds;

	if (!request->options->allows_eval || request->options->is_cluster) {
		answer_fail(ret, MHD_HTTP_FORBIDDEN,
			    "no code is run over HTTP: use probing eval PID CODE on the machine itself, or start "
			    "probing serve with --allow-eval");
		return;
	}
	target = request_target(request, "target", ret);
	seconds = target ? request_number(request, "seconds", 1, MAX_SECONDS, DEFAULT_SECONDS, ret) : -1;
	if (seconds < 0)
		return;
	if (target->pid == 0 || request->n_body == 0) {
		answer_fail(ret, MHD_HTTP_BAD_REQUEST,
			    target->pid == 0 ? "%s is a recording: only processes run code"
					     : "the body must be Python code, for %s",
			    target->name);
		return;
	}
	command_words_put(&words, "eval");
	command_words_format(&words, "--timeout=%lds", seconds);
	command_words_put(&words, "--file=-");
	command_words_put(&words, "--");
	command_words_put(&words, target->word);
	if (words.is_short) {
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "not enough memory");
		return;
	}
	if (!request_command(request, words.list, (double)seconds, &result, ret))
		return;
	/* 1 is the code's own failure. Others are ours: no permission, no agent. */
	if (result.is_late)
		answer_fail(ret, MHD_HTTP_GATEWAY_TIMEOUT, "the code took longer than %ld s, and was interrupted",
			    seconds);
	else if (result.is_too_long || result.status > 1)
		answer_failure(&result, ret);
	else
		answer_result(&result, ret);
}
