/* SPDX-License-Identifier: MIT */
/* verb_eval.c - run Python code in a process. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/agent_eval.h"
#include "src/cli/cli.h"

enum { OPTION_TIMEOUT = 0x200, OPTION_FILE, MAX_CODE_BYTES = AGENT_EVAL_MAX_BYTES };

struct options {
	pid_t pid;
	const char *code, *file;
	double timeout_s; /* 0: none */
};

static const struct argp_option option_list[] = {
	{ "file", OPTION_FILE, "FILE", 0, "Run this file; - is stdin", 0 },
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
		argp_error(state, "unexpected argument %s: give one piece of code", word);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_FILE:
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
		cli_require_pid(state, options->pid);
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
	.doc = "Run Python code in __main__ of a process, and print its output and the value of its last expression. A "
	       "traceback goes to stderr, with exit status 1. Loads the agent first if the process has none. Ctrl-C "
	       "interrupts the code, not the process.\vExamples:\n  probing eval 4242 'import torch; "
	       "torch.cuda.is_available()'\n  probing 4242 eval 'len(threading.enumerate())' --timeout 5s\n  probing "
	       "eval 4242 --file look.py\n  probing eval 4242 - < look.py\n",
};

/* ---- Code ---- */

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

/* ---- Evaluate ---- */

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

static int put(FILE *to, const char *text, size_t n_text)
{
	if (n_text > 0 && fwrite(text, 1, n_text, to) != n_text)
		return cli_fail_write("-", -errno);
	return fflush(to) == 0 ? EXIT_OK : cli_fail_write("-", -errno);
}

static int put_output(void *unused, int stream, const char *text, size_t n_text)
{
	(void)unused;
	return put(stream == 2 ? stderr : stdout, text, n_text);
}

static int finish(pid_t pid, const struct agent_value *value)
{
	int status;

	if (value->outcome == OUTCOME_NOTHING)
		return EXIT_OK;
	if (value->outcome != OUTCOME_VALUE)
		return agent_eval_fail(pid, value);
	status = put(stdout, value->text, value->n_text);
	if (status == EXIT_OK)
		putchar('\n');
	return status;
}

static int evaluate(const struct options *options, const char *code, size_t n_code)
{
	const struct agent_eval eval = {
		.code = code,
		.n_code = n_code,
		.timeout_ms = (uint32_t)(options->timeout_s * 1000),
		.output = put_output,
		.interrupts = &interrupts,
	};
	struct agent_talk talk;
	struct agent_value value;
	int status = agent_get(options->pid, &talk);

	if (status != EXIT_OK)
		return status;
	catch_interrupts();
	status = agent_eval(options->pid, &talk, &eval, &value);
	if (status == EXIT_OK)
		status = finish(options->pid, &value);
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
	.argp = &argp,
	.run = run_eval,
};
