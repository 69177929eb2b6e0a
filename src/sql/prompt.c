/* SPDX-License-Identifier: MIT */
/* prompt.c - the prompt for SQL.
 *
 * A statement may have several lines and ends with ';'. Ctrl-C drops the current line, or interrupts a running
 * query: SQLite polls the editor's flag.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/util.h"
#include "src/sql/prompt.h"

enum { MAX_ERROR = 1024, MAX_NOTE = 256 };

static unsigned screen_width(FILE *out)
{
	struct winsize size;

	return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* If the output file cannot be written, show results on the screen again. */
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
	line_editor_interrupted = 0;
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
	int r;

	if (prompt->statement.n == 0 && is_blank(line))
		return 0;
	line_editor_remember(&prompt->line, line);
	if (prompt->statement.n == 0 && line[0] == '.') {
		CLEANUP(freep) char *copy = strdup(line);

		return copy ? prompt_command(prompt, copy) : -ENOMEM;
	}
	r = sql_text_put(&prompt->statement, line, strlen(line));
	if (r == 0)
		r = sql_text_put(&prompt->statement, "", 1); /* NUL for SQLite */
	if (r < 0)
		return r;
	prompt->statement.n--;
	if (!sqlite3_complete(prompt->statement.bytes))
		return 0;
	prompt->statement.n = 0;
	return prompt_run(prompt, prompt->statement.bytes);
}

static const char *show_prompt(void *data)
{
	const struct prompt *prompt = data;

	return prompt->statement.n > 0 ? "    ...> " : "probing> ";
}

static int read_lines(struct prompt *prompt)
{
	while (!prompt->is_done) {
		const char *line;
		int r = line_editor_read(&prompt->line, &line);

		if (r == 0)
			break; /* end of input */
		if (r == -EINTR)
			prompt->statement.n = 0;
		if (r > 0)
			r = take_line(prompt, line);
		if (r < 0 && r != -EINTR)
			return r;
	}
	return 0;
}

static void prompt_close(struct prompt *prompt)
{
	line_editor_close(&prompt->line);
	if (prompt->file)
		fclose(prompt->file);
	new_file_abandon(&prompt->output);
	sql_text_done(&prompt->statement);
}

int sql_prompt(const struct sql_session *session, const char *title, FILE *out)
{
	CLEANUP(prompt_close)
	struct prompt prompt = {
		.session = *session,
		.out = out,
		.screen = isatty(fileno(out)) ? out : stderr,
	};
	int r;

	prompt.line = (struct line_editor){
		.screen = prompt.screen,
		.history_name = "sql_history",
		.prompt = show_prompt,
		.complete = prompt_complete,
		.data = &prompt,
		.watched = -1,
	};
	prompt.session.interrupted = &line_editor_interrupted;
	r = line_editor_open(&prompt.line);
	if (r < 0)
		return r;
	fprintf(prompt.screen, "%s: statements end with ';', .help lists commands, Ctrl-D leaves\n", title);
	r = read_lines(&prompt);
	prompt_end_output(&prompt);
	return r;
}
