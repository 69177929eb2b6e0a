/* SPDX-License-Identifier: MIT */
/* verb_repl.c - Python's prompt, in a running process.
 *
 * Each line is sent as code that calls a function of repl.py with the whole statement so far; the process keeps nothing
 * between two lines. Input from a pipe is one script.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/agent_eval.h"
#include "src/cli/cli.h"
#include "src/prompt/prompt.h"

enum { MAX_TYPED = AGENT_EVAL_MAX_BYTES / 4 - (1 << 15), COMPLETE_MS = 1000, MAX_SHOWN = 120 };

extern const char repl_source[]; /* repl.py */

struct repl {
	pid_t pid;
	struct agent_talk talk;
	struct line_editor line;
	char *typed; /* lines of an incomplete statement */
	size_t n_typed;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	pid_t *pid = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		cli_take_pid(state, argument, pid);
		return 0;
	case ARGP_KEY_END:
		cli_require_pid(state, *pid);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "PID",
	.doc = "Open a Python prompt in __main__ of a running process. Tab completes names of live objects. Ctrl-C "
	       "interrupts the code, never the program; Ctrl-D leaves. If stdin is a pipe, reads a script. Loads the "
	       "agent first if the process has none.\v"
	       "Examples:\n"
	       "  probing 4242 repl\n"
	       "  probing repl 4242 < look.py\n",
};

/* ---- Calls ---- */

struct text {
	char *bytes;
	size_t n;
};

static int keep_output(void *data, int stream, const char *text, size_t n_text)
{
	struct text *kept = data;
	char *bytes;

	if (stream != 1)
		return EXIT_OK;
	bytes = realloc(kept->bytes, kept->n + n_text + 1);
	if (!bytes)
		return cli_fail(EXIT_FAILED, "not enough memory");
	memcpy(bytes + kept->n, text, n_text);
	kept->bytes = bytes;
	kept->n += n_text;
	bytes[kept->n] = '\0';
	return EXIT_OK;
}

static int put_output(void *unused, int stream, const char *text, size_t n_text)
{
	FILE *to = stream == 2 ? stderr : stdout;

	(void)unused;
	if (fwrite(text, 1, n_text, to) != n_text || fflush(to) != 0)
		return cli_fail_write("-", -errno);
	return EXIT_OK;
}

/* Call a function of repl.py, which returns a short word; `word` gets it with quotes. */
static int call(struct repl *repl, const char *function, const char *bytes, size_t n_bytes, char word[16])
{
	CLEANUP(freep) char *code = agent_call(repl_source, function, bytes, n_bytes);
	const struct agent_eval eval = {
		.code = code,
		.n_code = code ? strlen(code) : 0,
		.output = put_output,
		.interrupts = &line_editor_interrupted,
	};
	struct agent_value value;
	int status;

	if (!code)
		return cli_fail(EXIT_FAILED, "not enough memory");
	line_editor_interrupted = 0;
	status = agent_eval(repl->pid, &repl->talk, &eval, &value);
	line_editor_interrupted = 0;
	snprintf(word, 16, "%s", value.is_refused ? "'failed'" : "'done'");
	if (status != EXIT_OK)
		return value.is_refused ? EXIT_OK : status; /* interrupted C code may end later */
	if (value.outcome == OUTCOME_VALUE)
		snprintf(word, 16, "%.*s", (int)MIN(value.n_text, (size_t)15), value.text);
	else if (value.outcome != OUTCOME_NOTHING)
		(void)agent_eval_fail(repl->pid, &value);
	return EXIT_OK;
}

/* ---- Completion ---- */

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || (c & 0x80) != 0;
}

static int ask_names(struct repl *repl, const char *word, size_t n_word, struct text *ret)
{
	CLEANUP(freep) char *code = agent_call(repl_source, "complete", word, n_word);
	const struct agent_eval eval = {
		.code = code,
		.n_code = code ? strlen(code) : 0,
		.timeout_ms = COMPLETE_MS,
		.output = keep_output,
		.data = ret,
	};
	struct agent_value value;

	return code ? agent_eval(repl->pid, &repl->talk, &eval, &value) : EXIT_FAILED;
}

/* Length of the common prefix of names, one per line. */
static size_t common_length(const char *names, unsigned *ret_n)
{
	size_t n = strcspn(names, "\n");
	const char *name = names;

	for (*ret_n = 0; *name; (*ret_n)++) {
		size_t i = 0;

		while (i < n && name[i] == names[i])
			i++;
		n = i;
		name += strcspn(name, "\n");
		name += *name == '\n';
	}
	return n;
}

static void show_names(FILE *screen, char *names)
{
	unsigned n = 0;

	fputc('\n', screen);
	for (char *more = names, *name; (name = strsep(&more, "\n"));)
		if (n++ < MAX_SHOWN)
			fprintf(screen, "%s  ", name);
	fprintf(screen, "%s\n", n > MAX_SHOWN ? "..." : "");
}

static unsigned char complete(EditLine *editor, int key)
{
	CLEANUP(freep) char *names = NULL, *more = NULL;
	struct repl *repl = line_editor_data(editor);
	const LineInfo *line = el_line(editor);
	const char *word = line->cursor, *dot;
	struct text found = { 0 };
	size_t n_typed, n_common;
	unsigned n_names;

	(void)key;
	while (word > line->buffer && is_of_word(word[-1]))
		word--;
	if (word == line->cursor) /* as in Python's own prompt */
		return el_insertstr(editor, "    ") < 0 ? CC_ERROR : CC_REFRESH;
	dot = memrchr(word, '.', (size_t)(line->cursor - word));
	n_typed = (size_t)(line->cursor - (dot ? dot + 1 : word));
	if (ask_names(repl, word, (size_t)(line->cursor - word), &found) != EXIT_OK)
		return CC_REDISPLAY;
	names = found.bytes;
	if (!names)
		return CC_REFRESH_BEEP;
	n_common = common_length(names, &n_names);
	if (n_common > n_typed) {
		more = strndup(names + n_typed, n_common - n_typed);
		return !more || el_insertstr(editor, more) < 0 ? CC_ERROR : CC_REFRESH;
	}
	if (n_names < 2)
		return CC_REFRESH;
	show_names(repl->line.screen, names);
	return CC_REDISPLAY;
}

/* ---- Prompt ---- */

static const char *show_prompt(void *data)
{
	const struct repl *repl = data;

	return repl->n_typed > 0 ? "... " : ">>> ";
}

/* Python's exit() and quit() would close the program's stdin, so handle these words here. */
static bool is_farewell(const char *line)
{
	static const char *const words[] = { "exit", "exit()", "quit", "quit()" };
	size_t n = strcspn(line, "\r\n");

	for (size_t i = 0; i < N_ELEMENTS(words); i++)
		if (strlen(words[i]) == n && strncmp(line, words[i], n) == 0)
			return true;
	return false;
}

static int add_line(struct repl *repl, const char *line)
{
	size_t n = strlen(line);
	char *typed;

	if (repl->n_typed + n > MAX_TYPED)
		return -EFBIG;
	typed = realloc(repl->typed, repl->n_typed + n);
	if (!typed)
		return -ENOMEM;
	memcpy(typed + repl->n_typed, line, n);
	repl->typed = typed;
	repl->n_typed += n;
	return 0;
}

/* Returns an exit status; -1: continue. */
static int take_line(struct repl *repl, const char *line)
{
	char word[16];
	size_t n;
	int r, status;

	if (repl->n_typed == 0 && line[strspn(line, " \t\r\n")] == '\0')
		return -1;
	line_editor_remember(&repl->line, line);
	if (repl->n_typed == 0 && is_farewell(line))
		return EXIT_OK;
	r = add_line(repl, line);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "the code cannot be sent: %s", strerror(-r));
	/* A final newline would end a block. */
	n = repl->n_typed - (repl->typed[repl->n_typed - 1] == '\n');
	status = call(repl, "step", repl->typed, n, word);
	if (status != EXIT_OK)
		return status;
	if (strcmp(word, "'more'") != 0)
		repl->n_typed = 0;
	return strcmp(word, "'exit'") == 0 ? EXIT_OK : -1;
}

static int read_lines(struct repl *repl)
{
	int status = -1;

	while (status < 0) {
		const char *line;
		int r = line_editor_read(&repl->line, &line);

		if (r == -EPIPE)
			return cli_fail(EXIT_FAILED, "process %d, or its agent, has ended", (int)repl->pid);
		if (r == 0)
			return EXIT_OK;
		if (r == -EINTR)
			repl->n_typed = 0;
		else
			status = take_line(repl, line);
	}
	return status;
}

/* Print the Python version; an agent that runs no code reports it here. */
static int print_greeting(struct repl *repl)
{
	static const char code[] = "__import__(\"sys\").version.split()[0]";
	const struct agent_eval eval = { .code = code, .n_code = strlen(code), .output = put_output };
	CLEANUP(freep) char *command = proc_text(repl->pid, "cmdline", 60);
	struct agent_value value;
	int status = agent_eval(repl->pid, &repl->talk, &eval, &value);

	if (status != EXIT_OK)
		return status;
	if (value.outcome != OUTCOME_VALUE || value.n_text < 2)
		return agent_eval_fail(repl->pid, &value);
	cli_say("process %d (%s), Python %.*s: Ctrl-C interrupts the code, not the program; Ctrl-D leaves\n",
		(int)repl->pid, command ? command : "", (int)value.n_text - 2, value.text + 1);
	return EXIT_OK;
}

static int run_prompt(struct repl *repl)
{
	int r, status = print_greeting(repl);

	if (status != EXIT_OK)
		return status;

	repl->line = (struct line_editor){
		.screen = stdout,
		.history_name = "python_history",
		.prompt = show_prompt,
		.complete = complete,
		.data = repl,
		.watched = repl->talk.fd,
	};
	r = line_editor_open(&repl->line);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	status = read_lines(repl);
	line_editor_close(&repl->line);
	return status;
}

/* ---- Script ---- */

static void on_interrupt(int number)
{
	(void)number;
	line_editor_interrupted++;
}

static int run_script(struct repl *repl)
{
	const struct sigaction action = { .sa_handler = on_interrupt };
	CLEANUP(freep) char *script = malloc(MAX_TYPED + 1);
	char word[16] = "";
	size_t n;
	int status;

	if (!script)
		return cli_fail(EXIT_FAILED, "not enough memory");
	n = fread(script, 1, MAX_TYPED + 1, stdin);
	if (ferror(stdin))
		return cli_fail(EXIT_IO, "stdin cannot be read: %s", strerror(errno));
	if (n > MAX_TYPED)
		return cli_fail(EXIT_USAGE, "the script has more than %d bytes", MAX_TYPED);
	sigaction(SIGINT, &action, NULL);
	status = call(repl, "run", script, n, word);
	return status == EXIT_OK && strcmp(word, "'failed'") == 0 ? EXIT_FAILED : status;
}

static int run_repl(int argc, char **argv)
{
	struct repl repl = { 0 };
	int status;

	cli_parse(&argp, argc, argv, 0, &repl.pid);
	status = agent_get(repl.pid, &repl.talk);
	if (status != EXIT_OK)
		return status;
	status = isatty(STDIN_FILENO) ? run_prompt(&repl) : run_script(&repl);
	agent_talk_end(&repl.talk);
	free(repl.typed);
	return status;
}

const struct verb verb_repl = {
	.name = "repl",
	.aliases = "r",
	.summary = "open a Python prompt in a process",
	.argp = &argp,
	.run = run_repl,
};
