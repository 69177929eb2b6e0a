/* SPDX-License-Identifier: MIT */
/* verb_eval.c - run Python code in a process. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/agent_use.h"
#include "src/cli/cli.h"

enum {
	OPTION_TIMEOUT = 0x200,
	MAX_CODE_BYTES = PROTOCOL_MAX_BYTES - 64,
	LOOK_AGAIN_MS = 100,
	INJECT_WAIT_MS = 5000,
	START_MS = 10000
};

struct options {
	pid_t pid;
	const char *code, *file;
	double timeout_s; /* 0: no bound */
};

static const struct argp_option option_list[] = {
	{ "file", 'f', "FILE", 0, "Run this file; - is stdin", 0 },
	{ "timeout", OPTION_TIMEOUT, "TIME", 0, "Interrupt the code after this time [no bound]", 0 },
	{ 0 },
};

static void take_word(struct options *options, const char *word, struct argp_state *state)
{
	if (!options->pid)
		options->pid = cli_parse_id(state, word, "process");
	else if (!options->code && !options->file)
		options->code = word;
	else
		argp_error(state, "one piece of code at a time: but what is %s?", word);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'f':
		if (options->code || options->file)
			argp_error(state, "code, or one --file");
		options->file = argument;
		return 0;
	case OPTION_TIMEOUT:
		options->timeout_s = cli_parse_duration(state, argument, "--timeout", 0.001, 86400);
		return 0;
	case ARGP_KEY_ARG:
		take_word(options, argument, state);
		return 0;
	case ARGP_KEY_END:
		if (!options->pid)
			argp_error(state, "in which process? Give its PID");
		if (!options->code && !options->file)
			argp_error(state, "the code is missing: give it, or - for stdin, or --file FILE");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "PID CODE",
	.doc = "Run Python code in a process, in its __main__: print what the code prints, and the value of its last expression. "
	       "A traceback goes to stderr, with exit status 1. Loads the agent first where the process has none. Ctrl-C interrupts the "
	       "code, not the process.\v"
	       "Examples:\n"
	       "  probing eval 4242 'import torch; torch.cuda.is_available()'\n"
	       "  probing 4242 eval 'len(threading.enumerate())' --timeout 5s\n"
	       "  probing eval 4242 --file look.py\n"
	       "  probing eval 4242 - < look.py\n",
};

/* ---- The code ---- */

static int read_stream(FILE *in, char **ret, size_t *ret_bytes)
{
	CLEANUP(freep) char *text = malloc(MAX_CODE_BYTES + 1);
	size_t n;

	if (!text)
		return -ENOMEM;
	n = fread(text, 1, MAX_CODE_BYTES + 1, in);
	if (ferror(in))
		return -EIO;
	if (n > MAX_CODE_BYTES)
		return -EFBIG;
	*ret = TAKE(text);
	*ret_bytes = n;
	return 0;
}

static int read_code(const struct options *options, char **ret, size_t *ret_bytes)
{
	const char *path = options->file ? options->file : strcmp(options->code, "-") == 0 ? "-" : NULL;
	FILE *in = stdin;
	int r;

	if (!path) {
		*ret = strdup(options->code);
		*ret_bytes = strlen(options->code);
		r = !*ret ? -ENOMEM : *ret_bytes > MAX_CODE_BYTES ? -EFBIG : 0;
		return r < 0 ? cli_fail(EXIT_USAGE, "the code cannot be sent: %s", strerror(-r)) : EXIT_OK;
	}
	if (strcmp(path, "-") != 0)
		in = fopen(path, "re");
	r = in ? read_stream(in, ret, ret_bytes) : -errno;
	if (in && in != stdin)
		fclose(in);
	return r < 0 ? cli_fail(cli_status(r), "%s cannot be read: %s", path, strerror(-r)) : EXIT_OK;
}

/* ---- The evaluation ---- */

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
	(void)number;
	interrupts++;
}

static void catch_interrupts(void)
{
	const struct sigaction action = { .sa_handler = on_interrupt };

	sigaction(SIGINT, &action, NULL);
}

static int put(FILE *to, const struct message *message)
{
	if (message->n_text > 0 && fwrite(message->text, 1, message->n_text, to) != message->n_text)
		return cli_fail_write("-", -errno);
	return fflush(to) == 0 ? EXIT_OK : cli_fail_write("-", -errno);
}

/* A traceback has its own line ends, which cli_say() would write out. */
static int put_traceback(const struct message *message)
{
	for (size_t at = 0; at < message->n_text;) {
		const char *line = message->text + at, *end = memchr(line, '\n', message->n_text - at);
		size_t n = end ? (size_t)(end - line) : message->n_text - at;

		cli_say("%.*s\n", (int)n, line);
		at += n + 1;
	}
	return EXIT_FAILED;
}

static int finish(pid_t pid, const struct message *message)
{
	int status;

	switch ((enum outcome)message->numbers[0]) {
	case OUTCOME_VALUE:
		status = put(stdout, message);
		if (status == EXIT_OK)
			putchar('\n');
		return status;
	case OUTCOME_NOTHING:
		return EXIT_OK;
	case OUTCOME_EXCEPTION:
	case OUTCOME_INTERRUPTED:
		return put_traceback(message);
	case OUTCOME_NOT_STARTED:
		return cli_fail(
			EXIT_FAILED,
			"process %d did not release its GIL, and the code was not run: a thread is in C code that "
			"holds it; `probing backtrace %d` shows which",
			(int)pid, (int)pid);
	default:
		return cli_fail(
			EXIT_FAILED,
			"the code was interrupted and has not ended: it is in C code, and goes on in process %d "
			"until that returns",
			(int)pid);
	}
}

/* Until it ends. -1 as a status: not yet. */
static int take_message(pid_t pid, const struct message *message, bool *is_started)
{
	int status;

	switch (message->kind) {
	case MESSAGE_STARTED:
		*is_started = true;
		return -1;
	case MESSAGE_OUTPUT:
		status = put(message->numbers[0] == 2 ? stderr : stdout, message);
		return status == EXIT_OK ? -1 : status;
	case MESSAGE_RESULT:
		return finish(pid, message);
	case MESSAGE_REFUSED:
		return cli_fail(EXIT_FAILED, "the agent in process %d does not run the code: %.*s", (int)pid,
				(int)message->n_text, message->text);
	default:
		return cli_fail(EXIT_FAILED, "the agent in process %d sent what was not asked for", (int)pid);
	}
}

static int wait_for_end(pid_t pid, struct agent_talk *talk)
{
	uint64_t since_ns = monotonic_ns();
	bool is_started = false, gave_up = false;
	int sent = 0, status = -1, r = 0;

	while (status < 0 && (r >= 0 || r == -ETIMEDOUT || r == -EINTR)) {
		struct message message;

		/* What holds its GIL for so long may do so for ever: it is said at once, and nothing runs later. */
		gave_up = !is_started && monotonic_ns() - since_ns >= START_MS * UINT64_C(1000000);
		if (interrupts > sent || (gave_up && sent == 0)) {
			sent++;
			(void)agent_say(talk, MESSAGE_INTERRUPT, 0, NULL, 0);
		}
		r = agent_hear(talk, LOOK_AGAIN_MS, &message);
		if (r >= 0)
			status = take_message(pid, &message, &is_started);
	}
	if (status >= 0)
		return status;
	if (r == -EPIPE)
		return cli_fail(EXIT_FAILED, "process %d, or its agent, ended before the code did", (int)pid);
	return cli_fail(cli_status(r), "the agent in process %d cannot be understood: %s", (int)pid, strerror(-r));
}

static int evaluate(const struct options *options, const char *code, size_t n_code)
{
	struct inject_result result;
	struct agent_talk talk;
	int r, status;

	status = agent_put(options->pid, INJECT_WAIT_MS, 0, &result);
	if (status != EXIT_OK)
		return status;
	if (!result.was_there)
		cli_say("probing: the agent was loaded into process %d; `probing detach %d` ends it\n",
			(int)options->pid, (int)options->pid);
	status = agent_open(options->pid, &result.state, &talk);
	if (status != EXIT_OK)
		return status;
	catch_interrupts();
	r = agent_say(&talk, MESSAGE_EVALUATE, (uint32_t)(options->timeout_s * 1000), code, n_code);
	status = r < 0 ? cli_fail(cli_status(r), "the code cannot be sent to process %d: %s", (int)options->pid,
				  strerror(-r))
		       : wait_for_end(options->pid, &talk);
	agent_talk_end(&talk);
	return status;
}

static int run_eval(int argc, char **argv)
{
	CLEANUP(freep) char *code = NULL;
	struct options options = { 0 };
	size_t n_code = 0;
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	status = read_code(&options, &code, &n_code);
	return status == EXIT_OK ? evaluate(&options, code, n_code) : status;
}

const struct verb verb_eval = {
	.name = "eval",
	.aliases = "e",
	.summary = "run Python code in a process",
	.run = run_eval,
};
