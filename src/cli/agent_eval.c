/* SPDX-License-Identifier: MIT */
/* agent_eval.c - see agent_eval.h. */
#include "src/cli/agent_eval.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/cli.h"

enum {
	LOOK_AGAIN_MS = 100,
	N_ASLEEP = 5, /* looks in a row that find all threads asleep */
	INJECT_WAIT_MS = 5000,
	START_MS = 10000,
	CALL_MS = 30000,
};

void agent_put_traceback(const char *text, size_t n_text)
{
	for (size_t at = 0; at < n_text;) {
		const char *line = text + at, *end = memchr(line, '\n', n_text - at);
		size_t n = end ? (size_t)(end - line) : n_text - at;

		cli_say("%.*s\n", (int)n, line);
		at += n + 1;
	}
}

int agent_eval_fail(pid_t pid, const struct agent_value *value)
{
	switch (value->outcome) {
	case OUTCOME_NOT_STARTED:
		return cli_fail(
			EXIT_FAILED,
			"process %d did not release its GIL, and the code was not run: a thread is in C code that "
			"holds it; `probing backtrace %d` shows which",
			(int)pid, (int)pid);
	case OUTCOME_ABANDONED:
		return cli_fail(
			EXIT_FAILED,
			"the code was interrupted and has not ended: it is in C code, and goes on in process %d "
			"until that returns",
			(int)pid);
	default:
		agent_put_traceback(value->text, value->n_text);
		return EXIT_FAILED;
	}
}

/* Handle one message. Returns an exit status; -1: not finished. */
static int take_message(pid_t pid, const struct agent_eval *eval, const struct message *message, bool *is_started,
			struct agent_value *ret)
{
	int status;

	switch (message->kind) {
	case MESSAGE_STARTED:
		*is_started = true;
		return -1;
	case MESSAGE_OUTPUT:
		status = eval->output(eval->data, (int)message->numbers[0], message->text, message->n_text);
		return status == EXIT_OK ? -1 : status;
	case MESSAGE_RESULT:
		*ret = (struct agent_value){ (enum outcome)message->numbers[0], message->text, message->n_text, false };
		return EXIT_OK;
	case MESSAGE_REFUSED:
		ret->is_refused = true;
		return cli_fail(EXIT_FAILED, "the agent in process %d does not run the code: %.*s", (int)pid,
				(int)message->n_text, message->text);
	default:
		return cli_fail(EXIT_FAILED, "the agent in process %d sent an unexpected message", (int)pid);
	}
}

/* Whether no thread runs, or waits for a processor. is_stopped: by a signal or a debugger. */
static bool is_asleep(pid_t pid, bool *is_stopped)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n;

	*is_stopped = false;
	if (proc_tasks(pid, &tids, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct proc_stat stat;

		if (proc_stat_read(pid, tids[i], &stat) < 0 || stat.state == 'R')
			return false;
		*is_stopped |= stat.state == 'T' || stat.state == 't';
	}
	return true;
}

/* The agent's thread waits for the GIL although nobody runs: its holder sleeps. Report it once, while waiting goes on. */
static void look_at_holder(pid_t pid, unsigned *n_asleep)
{
	bool is_stopped;

	if (*n_asleep >= N_ASLEEP)
		return;
	*n_asleep = is_asleep(pid, &is_stopped) ? *n_asleep + 1 : 0;
	if (*n_asleep < N_ASLEEP || cli_is_quiet())
		return;
	if (is_stopped)
		cli_say("probing: process %d is stopped (SIGSTOP, or a debugger): the code waits until it is continued, as "
			"`kill -CONT %d` does\n",
			(int)pid, (int)pid);
	else
		cli_say("probing: a thread of process %d sleeps in C code and holds the GIL: the code waits for that, for %d s at "
			"most; `probing backtrace %d` shows the thread\n",
			(int)pid, START_MS / 1000, (int)pid);
}

static int wait_for_end(pid_t pid, struct agent_talk *talk, const struct agent_eval *eval, struct agent_value *ret)
{
	uint64_t since_ns = monotonic_ns();
	bool is_started = false, gave_up = false;
	unsigned n_asleep = 0;
	int sent = 0, status = -1, r = 0;

	while (status < 0 && (r >= 0 || r == -ETIMEDOUT || r == -EINTR)) {
		struct message message;

		/* If the GIL stays busy this long, it may for ever: report it now, and cancel the code. */
		gave_up = !is_started && monotonic_ns() - since_ns >= START_MS * UINT64_C(1000000);
		if ((eval->interrupts && *eval->interrupts > sent) || (gave_up && sent == 0)) {
			sent++;
			(void)agent_send(talk, MESSAGE_INTERRUPT, 0, NULL, 0);
		}
		r = agent_receive(talk, LOOK_AGAIN_MS, &message);
		if (r >= 0)
			status = take_message(pid, eval, &message, &is_started, ret);
		else if (r == -ETIMEDOUT && !is_started)
			look_at_holder(pid, &n_asleep);
	}
	if (status >= 0)
		return status;
	if (r == -EPIPE)
		return cli_fail(EXIT_FAILED, "process %d, or its agent, ended before the code did", (int)pid);
	return cli_fail(cli_status(r), "the answer of the agent in process %d is malformed: %s", (int)pid,
			strerror(-r));
}

int agent_eval(pid_t pid, struct agent_talk *talk, const struct agent_eval *eval, struct agent_value *ret)
{
	int r = agent_send(talk, MESSAGE_EVALUATE, eval->timeout_ms, eval->code, eval->n_code);

	*ret = (struct agent_value){ .outcome = OUTCOME_NOTHING };
	if (r == -EPIPE)
		return cli_fail(EXIT_FAILED, "process %d, or its agent, has ended", (int)pid);
	if (r < 0)
		return cli_fail(cli_status(r), "the code cannot be sent to process %d: %s", (int)pid, strerror(-r));
	return wait_for_end(pid, talk, eval, ret);
}

int agent_get(pid_t pid, struct agent_talk *ret)
{
	struct inject_result result;
	int status = agent_put(pid, INJECT_WAIT_MS, 0, &result);

	if (status != EXIT_OK)
		return status;
	if (!result.was_there && !cli_is_quiet())
		cli_say("probing: the agent was loaded into process %d; `probing detach %d` ends it\n", (int)pid,
			(int)pid);
	return agent_open(pid, &result.state, ret);
}

/* ---- Calls ---- */

static void put_literal(FILE *to, const char *bytes, size_t n_bytes)
{
	fputs("b\"", to);
	for (size_t i = 0; i < n_bytes; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
			fputc(c, to);
		else
			fprintf(to, "\\x%02x", c);
	}
	fputc('"', to);
}

char *agent_call(const char *source, const char *function, const char *bytes, size_t n_bytes)
{
	CLEANUP(freep) char *code = NULL;
	size_t n_code;
	FILE *out = open_memstream(&code, &n_code);

	if (!out)
		return NULL;
	/* A single expression, which binds no name in __main__. */
	fputs("(lambda space: exec(", out);
	put_literal(out, source, strlen(source));
	fprintf(out, ".decode(), space) or space[\"%s\"](", function);
	put_literal(out, bytes, n_bytes);
	fputs("))({})", out);
	return fclose(out) == 0 ? TAKE(code) : NULL;
}

static int keep_output(void *data, int stream, const char *text, size_t n_text)
{
	FILE *out = data;

	if (stream == 1)
		fwrite(text, 1, n_text, out);
	return EXIT_OK;
}

int agent_eval_output(pid_t pid, struct agent_talk *talk, const char *code, struct agent_value *ret_value, char **ret,
		      size_t *ret_bytes)
{
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);
	const struct agent_eval eval = {
		.code = code,
		.n_code = code ? strlen(code) : 0,
		.timeout_ms = CALL_MS,
		.output = keep_output,
		.data = out,
	};
	int status;

	if (code && out)
		status = agent_eval(pid, talk, &eval, ret_value);
	else
		status = cli_fail(EXIT_FAILED, "not enough memory");
	if (out && fclose(out) != 0 && status == EXIT_OK)
		status = cli_fail(EXIT_FAILED, "not enough memory");
	if (status != EXIT_OK)
		return status;
	*ret = TAKE(text);
	*ret_bytes = n_bytes;
	return EXIT_OK;
}

/* A call of package.py's call(), as one expression. */
static char *package_code(const char *module, const char *function, const char *argument)
{
	CLEANUP(freep) char *code = NULL;
	size_t n_code;
	FILE *out = open_memstream(&code, &n_code);

	if (!out)
		return NULL;
	fprintf(out, "__import__(\"sys\")._probing_agent[\"call\"](\"%s\", \"%s\", ", module, function);
	put_literal(out, argument, strlen(argument));
	fputs(".decode())", out);
	return fclose(out) == 0 ? TAKE(code) : NULL;
}

int agent_package_call(pid_t pid, struct agent_talk *talk, const char *module, const char *function,
		       const char *argument, char **ret, size_t *ret_bytes)
{
	CLEANUP(freep) char *code = package_code(module, function, argument);
	struct agent_value value;
	int status = agent_eval_output(pid, talk, code, &value, ret, ret_bytes);

	if (status != EXIT_OK || value.outcome == OUTCOME_NOTHING)
		return status;
	free(*ret);
	*ret = NULL;
	if (value.outcome == OUTCOME_VALUE)
		return cli_fail(EXIT_FAILED, "process %d: %.*s", (int)pid, (int)value.n_text, value.text);
	return agent_eval_fail(pid, &value);
}
