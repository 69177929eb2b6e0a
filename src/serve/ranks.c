/* SPDX-License-Identifier: MIT */
/* ranks.c - answers about the ranks of jobs: the served processes that run, or those of the hosts that the server was given. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/serve/command_words.h"

enum { SHORT_SECONDS = 20, STACKS_SECONDS = 60, MAX_SQL = 96 << 10 /* of an argument: execve(2) */ };

/* "812,813"; NULL: none of them runs. -ENOMEM. */
static int list_pids(const struct serve_options *options, char **ret)
{
	CLEANUP(freep) char *pids = NULL;

	for (size_t i = 0; i < options->n_targets; i++) {
		const struct serve_target *target = &options->targets[i];
		char *more = NULL;

		if (target->pid == 0 || !target_is_running(target))
			continue;
		if (asprintf(&more, "%s%s%s", pids ? pids : "", pids ? "," : "", target->word) < 0)
			return -ENOMEM;
		free(pids);
		pids = more;
	}
	*ret = TAKE(pids);
	return 0;
}

/* "cluster VERB", with the ranks. False: there are none, or it is answered with an error. */
static bool begin(const struct request *request, const char *verb, struct command_words *words, struct answer *ret)
{
	const struct serve_options *options = request->options;
	CLEANUP(freep) char *pids = NULL;
	int r = options->hosts ? 0 : list_pids(options, &pids);

	if (r < 0) {
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "not enough memory");
		return false;
	}
	if (!options->hosts && !pids)
		return false;
	command_words_put(words, "cluster");
	command_words_put(words, verb);
	command_words_put(words, "--format=json");
	if (options->hosts)
		command_words_format(words, "--hosts=%s", options->hosts);
	else
		command_words_format(words, "--pid=%s", pids);
	if (options->hosts && options->ssh)
		command_words_format(words, "--ssh=%s", options->ssh);
	if (options->hosts && options->remote)
		command_words_format(words, "--remote-probing=%s", options->remote);
	return true;
}

static void answer_empty(struct answer *ret, const char *text)
{
	if (ret->status == 0)
		*ret = (struct answer){ .status = MHD_HTTP_OK, .type = "application/json", .fixed = text };
}

void answer_nodes(const struct request *request, struct answer *ret)
{
	CLEANUP(command_words_done) struct command_words words = { 0 };

	if (!begin(request, "nodes", &words, ret))
		answer_empty(ret, "[]\n");
	else if (command_words_run(&words, request, SHORT_SECONDS, ret))
		ret->type = "application/json";
}

void answer_backtrace(const struct request *request, struct answer *ret)
{
	static const struct option_of options[] = { { "threads", "--threads", true },
						    { "no-native", "--no-native", true } };
	CLEANUP(command_words_done) struct command_words words = { 0 };

	if (!begin(request, "backtrace", &words, ret))
		answer_empty(ret, "{\"probing_cluster\": 1, \"classes\": [], \"hosts\": []}\n");
	else if (command_words_options(&words, request, options, N_ELEMENTS(options), ret) &&
		 command_words_run(&words, request, STACKS_SECONDS, ret))
		ret->type = "application/json";
}

/* One statement over the tables of all ranks; with "each", of each rank by itself. The statement is an argument of the verb. */
void answer_ranks_query(const struct request *request, struct answer *ret)
{
	static const struct option_of options[] = { { "each", "--each", true } };
	CLEANUP(command_words_done) struct command_words words = { 0 };

	if (request->n_body == 0 || request->n_body > MAX_SQL || memchr(request->body, '\0', request->n_body))
		answer_fail(ret, MHD_HTTP_BAD_REQUEST, "the body must be SQL text of at most %d KiB", MAX_SQL >> 10);
	else if (!begin(request, "query", &words, ret))
		answer_empty(ret, "[]\n");
	else if (command_words_options(&words, request, options, N_ELEMENTS(options), ret)) {
		command_words_format(&words, "--limit=%llu", (unsigned long long)request->options->max_rows);
		command_words_format(&words, "--memory=%llu", (unsigned long long)request->options->max_memory);
		command_words_put(&words, "--");
		command_words_format(&words, "%.*s", (int)request->n_body, request->body);
		if (command_words_run(&words, request, request->options->timeout_s, ret))
			ret->type = "application/json";
	}
}
