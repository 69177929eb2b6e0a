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
#include <ctype.h>
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
#include "src/sql/sql.h"
#include "src/sql/text.h"

enum {
	MAX_ERROR = 1024,
	MAX_HISTORY = 1000,
	STEPS_PER_LOOK = 1000, /* of SQLite's machine: microseconds */
};

struct prompt {
	sqlite3 *db;
	enum sql_format format;
	FILE *out;    /* answers */
	FILE *screen; /* prompt and messages */
	EditLine *editor;
	History *history;
	char *history_path; /* NULL: not kept */
	struct sql_text statement; /* lines typed so far */
	bool is_done;
	sigset_t mask; /* as it was before the prompt */
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	interrupted = 1;
}

static int is_interrupted(void *ignored)
{
	(void)ignored;
	return interrupted;
}

static unsigned screen_width(FILE *out)
{
	struct winsize size;

	return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* 0 as long as the output can be written, mistakes included. */
static int run(struct prompt *prompt, const char *sql, enum sql_format format)
{
	char error[MAX_ERROR] = "";
	int r;

	sqlite3_progress_handler(prompt->db, STEPS_PER_LOOK, is_interrupted, NULL);
	r = sql_run(prompt->db, sql, format, screen_width(prompt->out), prompt->out, error,
		    sizeof error);
	sqlite3_progress_handler(prompt->db, 0, NULL, NULL);
	interrupted = 0;
	if (r < 0 && ferror(prompt->out))
		return r;
	if (r < 0)
		fprintf(prompt->screen, "%s\n", error);
	return 0;
}

static int command_quit(struct prompt *prompt, const char *argument)
{
	(void)argument;
	prompt->is_done = true;
	return 0;
}

static int command_tables(struct prompt *prompt, const char *argument)
{
	(void)argument;
	return run(prompt,
		   "SELECT name, type FROM pragma_table_list"
		   " WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name",
		   SQL_TABLE);
}

/* The declarations as they were written, comments included. */
static int command_schema(struct prompt *prompt, const char *argument)
{
	sqlite3_stmt *statement = NULL;
	unsigned n = 0;

	if (sqlite3_prepare_v2(prompt->db,
			       "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"
			       " AND (?1 = '' OR name = ?1 COLLATE NOCASE)",
			       -1, &statement, NULL) != SQLITE_OK) {
		fprintf(prompt->screen, "%s\n", sqlite3_errmsg(prompt->db));
		return 0;
	}
	sqlite3_bind_text(statement, 1, argument, -1, SQLITE_STATIC);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		const char *sql = (const char *)sqlite3_column_text(statement, 0);

		for (; sql && *sql; sql++)
			putc(*sql == '\n' || !iscntrl((unsigned char)*sql) ? *sql : '?',
			     prompt->out);
		fputs(";\n", prompt->out);
		n++;
	}
	sqlite3_finalize(statement);
	if (n == 0)
		fprintf(prompt->screen, "there is no table %s; .tables lists them\n", argument);
	return 0;
}

static int command_help(struct prompt *prompt, const char *argument);

static const struct command {
	const char *name, *arguments, *summary;
	int (*run)(struct prompt *prompt, const char *argument);
} commands[] = {
	{ ".tables", "", "list tables and views", command_tables },
	{ ".schema", "[TABLE]", "columns and what they mean", command_schema },
	{ ".help", "", "this list", command_help },
	{ ".quit", "", "leave (also Ctrl-D)", command_quit },
	{ ".exit", "", "the same", command_quit },
};

static int command_help(struct prompt *prompt, const char *argument)
{
	(void)argument;
	for (size_t i = 0; i < N_ELEMENTS(commands); i++)
		fprintf(prompt->screen, "%s %-*s  %s\n", commands[i].name,
			(int)(15 - strlen(commands[i].name)), commands[i].arguments,
			commands[i].summary);
	fprintf(prompt->screen, "Anything else is SQL and ends with ';'. Ctrl-C drops a line or "
				"stops a query.\n");
	return 0;
}

static int run_command(struct prompt *prompt, char *line)
{
	char *argument = line + strcspn(line, " \t\n");
	size_t n = (size_t)(argument - line);

	argument += strspn(argument, " \t\n");
	argument[strcspn(argument, " \t\n;")] = '\0';
	for (size_t i = 0; i < N_ELEMENTS(commands); i++)
		if (strlen(commands[i].name) == n && strncmp(commands[i].name, line, n) == 0)
			return commands[i].run(prompt, argument);
	fprintf(prompt->screen, "there is no command %.*s; .help lists them\n", (int)n, line);
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

		return copy ? run_command(prompt, copy) : -ENOMEM;
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
	return run(prompt, prompt->statement.bytes, prompt->format);
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
	fprintf(prompt->screen, "what is typed here cannot be remembered: %s\n", strerror(-error));
}

static void prompt_close(struct prompt *prompt)
{
	if (prompt->editor)
		el_end(prompt->editor);
	if (prompt->history)
		history_end(prompt->history);
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
	el_source(prompt->editor, NULL); /* ~/.editrc, where there is one */
	r = history_path(&prompt->history_path);
	if (r == 0)
		r = history_load(prompt->history, prompt->history_path);
	if (r < 0)
		say_no_history(prompt, r);
	return 0;
}

int sql_prompt(sqlite3 *db, const char *title, enum sql_format format, FILE *out)
{
	CLEANUP(prompt_close) struct prompt prompt = {
		.db = db,
		.format = format,
		.out = out,
		.screen = isatty(fileno(out)) ? out : stderr,
	};
	struct sigaction action = { .sa_handler = on_interrupt }, before;
	int r;

	r = prompt_open(&prompt);
	if (r < 0)
		return r;
	fprintf(prompt.screen, "%s: statements end with ';', .help lists commands, Ctrl-D leaves\n",
		title);
	interrupted = 0;
	sigaction(SIGINT, &action, &before);
	r = read_lines(&prompt);
	sigaction(SIGINT, &before, NULL);
	if (prompt.history_path) {
		int kept = history_save(prompt.history, prompt.history_path);

		if (kept < 0)
			say_no_history(&prompt, kept);
	}
	return r;
}
