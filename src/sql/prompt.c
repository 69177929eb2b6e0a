/* SPDX-License-Identifier: MIT */
/* prompt.c - questions typed at a terminal.
 *
 * A statement may take several lines and ends with ';'. Ctrl-C means "not
 * this": the line being typed is dropped, a running query is interrupted. For
 * that the prompt owns SIGINT while it runs and gives it back at the end.
 *
 * The handler only sets a flag. No Ctrl-C is lost: while a line is edited SIGINT
 * is blocked and let in by ppoll alone; while a query runs SQLite asks for the
 * flag now and then.
 *
 * libedit does the editing. Its own signal handling stays off, since it
 * repeats signals to the whole process group.
 */
#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/util.h"
#include "src/sql/history.h"
#include "src/sql/prompt.h"

enum { MAX_ERROR = 1024, MAX_NOTE = 256, MAX_HISTORY = 1000 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	interrupted = 1;
}

static unsigned screen_width(FILE *out)
{
	struct winsize size;

	return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* An answer that cannot be kept does not end the prompt, but goes here from now on. */
static void give_up_file(struct prompt *prompt, int error)
{
	fprintf(prompt->screen, "the answers cannot be written: %s; they are shown here again\n", strerror(-error));
	fclose(TAKE(prompt->file));
	new_file_abandon(&prompt->output);
}

int prompt_run(struct prompt *prompt, const char *sql)
{
	FILE *out = prompt->file ? prompt->file : prompt->out;
	char error[MAX_ERROR] = "", note[MAX_NOTE] = "";
	uint64_t began = monotonic_ns();
	int r;

	prompt->session.rules.columns = prompt->file ? 0 : screen_width(prompt->out);
	r = sql_ask(&prompt->session, sql, out, error, sizeof error, note, sizeof note);
	interrupted = 0;
	if (r < 0 && ferror(out)) {
		if (!prompt->file)
			return r;
		give_up_file(prompt, r);
		return 0;
	}
	if (r < 0)
		fprintf(prompt->screen, "%s\n", error);
	if (note[0])
		fprintf(prompt->screen, "%s\n", note);
	if (prompt->is_timing)
		fprintf(prompt->screen, "%.3f s\n", (double)(monotonic_ns() - began) / 1e9);
	return 0;
}

static bool is_blank(const char *line)
{
	return line[strspn(line, " \t\r\n")] == '\0';
}

static int take_line(struct prompt *prompt, const char *line)
{
	HistEvent event;
	int r;

	if (prompt->statement.n == 0 && is_blank(line))
		return 0;
	history(prompt->history, &event, H_ENTER, line);
	if (prompt->statement.n == 0 && line[0] == '.') {
		CLEANUP(freep) char *copy = strdup(line);

		return copy ? prompt_command(prompt, copy) : -ENOMEM;
	}
	r = sql_text_put(&prompt->statement, line, strlen(line));
	if (r == 0)
		r = sql_text_put(&prompt->statement, "", 1); /* the NUL, for SQLite */
	if (r < 0)
		return r;
	prompt->statement.n--;
	if (!sqlite3_complete(prompt->statement.bytes))
		return 0;
	prompt->statement.n = 0;
	return prompt_run(prompt, prompt->statement.bytes);
}

static char *show_prompt(EditLine *editor)
{
	static char first[] = "probing> ", next[] = "    ...> ";
	struct prompt *prompt;

	el_get(editor, EL_CLIENTDATA, &prompt);
	return prompt->statement.n > 0 ? next : first;
}

/* Wait for a key or Ctrl-C; -1 with errno, as read(2) has it. */
static ssize_t read_byte(const struct prompt *prompt, char *ret)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	while (!interrupted) {
		if (ppoll(&input, 1, NULL, &prompt->mask) == 1)
			return read(STDIN_FILENO, ret, 1);
		if (errno != EINTR)
			return -1;
	}
	errno = EINTR;
	return -1;
}

/*
 * Ctrl-D at the start of a line. Left to libedit's key bindings it is sometimes
 * inserted like a letter, when it was typed while the terminal's mode changed.
 */
static bool is_end(EditLine *editor, char byte)
{
	enum { CONTROL_D = 4 };
	const LineInfo *line;

	if (byte != CONTROL_D)
		return false;
	line = el_line(editor);
	return line->lastchar == line->buffer;
}

/* libedit's source of characters: 1, 0 at the end, -1 an error. */
static int read_character(EditLine *editor, wchar_t *ret)
{
	struct prompt *prompt;
	mbstate_t state = { 0 };

	el_get(editor, EL_CLIENTDATA, &prompt);
	for (;;) {
		char byte;
		ssize_t n = read_byte(prompt, &byte);

		if (n <= 0)
			return (int)n;
		if (is_end(editor, byte))
			return 0;
		switch (mbrtowc(ret, &byte, 1, &state)) {
		case (size_t)-1: /* not of this locale: a key that means nothing */
			state = (mbstate_t){ 0 };
			break;
		case (size_t)-2: /* not yet whole */
			break;
		default:
			return 1;
		}
	}
}

static const char *edit_line(struct prompt *prompt, int *ret_n)
{
	const char *line;
	sigset_t interrupt;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, &prompt->mask);
	el_resize(prompt->editor);
	line = el_gets(prompt->editor, ret_n);
	sigprocmask(SIG_SETMASK, &prompt->mask, NULL);
	return line;
}

static int read_lines(struct prompt *prompt)
{
	while (!prompt->is_done) {
		int n, r;
		const char *line = edit_line(prompt, &n);

		if (line && n > 0) {
			r = take_line(prompt, line);
			if (r < 0)
				return r;
			continue;
		}
		fputc('\n', prompt->screen);
		if (!interrupted)
			break; /* end of input */
		interrupted = 0;
		prompt->statement.n = 0;
		el_reset(prompt->editor);
	}
	return 0;
}

static void say_no_history(const struct prompt *prompt, int error)
{
	char sentence[MAX_SENTENCE];

	if (error == -EPERM)
		snprintf(sentence, sizeof sentence,
			 "%s or its folder belongs to another user, or others may write to the folder",
			 prompt->history_path);
	else
		place_explain(error, prompt->history_path ? prompt->history_path : "the history", sentence,
			      sizeof sentence);
	fprintf(prompt->screen, "what is typed here cannot be remembered: %s\n", sentence);
}

static void prompt_close(struct prompt *prompt)
{
	if (prompt->editor)
		el_end(prompt->editor);
	if (prompt->history)
		history_end(prompt->history);
	if (prompt->file)
		fclose(prompt->file);
	new_file_abandon(&prompt->output);
	free(prompt->history_path);
	sql_text_done(&prompt->statement);
}

static int prompt_open(struct prompt *prompt)
{
	HistEvent event;
	int r;

	prompt->editor = el_init("probing", stdin, prompt->screen, stderr);
	prompt->history = history_init();
	if (!prompt->editor || !prompt->history)
		return -ENOMEM;
	history(prompt->history, &event, H_SETSIZE, MAX_HISTORY);
	history(prompt->history, &event, H_SETUNIQUE, 1);
	el_set(prompt->editor, EL_CLIENTDATA, prompt);
	el_set(prompt->editor, EL_PROMPT, show_prompt);
	el_set(prompt->editor, EL_EDITOR, "emacs");
	el_set(prompt->editor, EL_GETCFN, read_character);
	el_set(prompt->editor, EL_HIST, history, prompt->history);
	/* In wide letters: of others it makes copies that nobody frees. */
	el_wset(prompt->editor, EL_ADDFN, L"probing-complete", L"complete a name", prompt_complete);
	el_set(prompt->editor, EL_BIND, "^I", "probing-complete", NULL);
	el_source(prompt->editor, NULL); /* ~/.editrc, where there is one */
	r = history_path(&prompt->history_path);
	if (r == 0)
		r = history_load(prompt->history, prompt->history_path);
	if (r < 0)
		say_no_history(prompt, r);
	return 0;
}

int sql_prompt(const struct sql_session *session, const char *title, FILE *out)
{
	CLEANUP(prompt_close)
	struct prompt prompt = {
		.session = *session,
		.out = out,
		.screen = isatty(fileno(out)) ? out : stderr,
	};
	struct sigaction action = { .sa_handler = on_interrupt }, before;
	int r;

	prompt.session.interrupted = &interrupted;
	r = prompt_open(&prompt);
	if (r < 0)
		return r;
	fprintf(prompt.screen, "%s: statements end with ';', .help lists commands, Ctrl-D leaves\n", title);
	interrupted = 0;
	sigaction(SIGINT, &action, &before);
	r = read_lines(&prompt);
	sigaction(SIGINT, &before, NULL);
	prompt_end_output(&prompt);
	if (prompt.history_path) {
		int kept = history_save(prompt.history, prompt.history_path);

		if (kept < 0)
			say_no_history(&prompt, kept);
	}
	return r;
}
