/* SPDX-License-Identifier: MIT */
/* line_editor.c - see prompt.h. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/place.h"
#include "base/util.h"
#include "src/prompt/history.h"
#include "src/prompt/prompt.h"

enum { MAX_HISTORY = 1000, MAX_SENTENCE = 4096 + 256 /* a path and an error text */ };

volatile sig_atomic_t line_editor_interrupted;

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	line_editor_interrupted++;
}

static struct line_editor *self_of(EditLine *editor)
{
	struct line_editor *self;

	el_get(editor, EL_CLIENTDATA, &self);
	return self;
}

void *line_editor_data(EditLine *editor)
{
	return self_of(editor)->data;
}

static char *show_prompt(EditLine *editor)
{
	const struct line_editor *self = self_of(editor);

	return (char *)self->prompt(self->data);
}

/* ---- Keys ---- */

/* Wait for a key or Ctrl-C; -1 with errno, like read(2). */
static ssize_t read_byte(struct line_editor *self, char *ret)
{
	struct pollfd polled[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				   { .fd = self->watched, .events = POLLIN } };

	while (!line_editor_interrupted) {
		int n = ppoll(polled, N_ELEMENTS(polled), NULL, &self->mask);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0 && polled[0].revents)
			return read(STDIN_FILENO, ret, 1);
		if (n > 0) {
			self->has_news = true;
			return 0;
		}
	}
	errno = EINTR;
	return -1;
}

/*
 * Ctrl-D at the start of a line. libedit's key binding sometimes inserts it as a letter if it was typed while the
 * terminal's mode changed.
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

/* libedit's input callback: 1, 0 at the end, -1 on error. */
static int read_character(EditLine *editor, wchar_t *ret)
{
	struct line_editor *self = self_of(editor);
	mbstate_t state = { 0 };

	for (;;) {
		char byte;
		ssize_t n = read_byte(self, &byte);

		if (n <= 0)
			return (int)n;
		if (is_end(editor, byte))
			return 0;
		switch (mbrtowc(ret, &byte, 1, &state)) {
		case (size_t)-1: /* invalid in this locale: ignore */
			state = (mbstate_t){ 0 };
			break;
		case (size_t)-2: /* incomplete */
			break;
		default:
			return 1;
		}
	}
}

int line_editor_read(struct line_editor *self, const char **ret)
{
	const char *line;
	sigset_t interrupt;
	int n = 0;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, &self->mask);
	el_resize(self->editor);
	line = el_gets(self->editor, &n);
	sigprocmask(SIG_SETMASK, &self->mask, NULL);
	if (line && n > 0) {
		*ret = line;
		return 1;
	}
	fputc('\n', self->screen);
	if (self->has_news)
		return -EPIPE;
	if (!line_editor_interrupted)
		return 0;
	line_editor_interrupted = 0;
	el_reset(self->editor);
	return -EINTR;
}

/* ---- History ---- */

void line_editor_remember(struct line_editor *self, const char *line)
{
	HistEvent event;

	history(self->history, &event, H_ENTER, line);
}

static void print_no_history(const struct line_editor *self, int error)
{
	char sentence[MAX_SENTENCE];

	if (error == -EPERM)
		snprintf(sentence, sizeof sentence,
			 "%s or its folder belongs to another user, or others may write to the folder",
			 self->history_path);
	else
		place_explain(error, self->history_path ? self->history_path : "the history", sentence,
			      sizeof sentence);
	fprintf(self->screen, "what is typed here cannot be remembered: %s\n", sentence);
}

static void load_history(struct line_editor *self)
{
	int r = history_path(self->history_name, &self->history_path);

	if (r == 0)
		r = history_load(self->history, self->history_path);
	if (r < 0)
		print_no_history(self, r);
}

static void save_history(const struct line_editor *self)
{
	int r = self->history_path ? history_save(self->history, self->history_path) : 0;

	if (r < 0)
		print_no_history(self, r);
}

/* ---- Start and end ---- */

static void free_all(struct line_editor *self)
{
	if (self->editor)
		el_end(self->editor);
	if (self->history)
		history_end(self->history);
	free(self->history_path);
	self->editor = NULL;
	self->history = NULL;
	self->history_path = NULL;
}

int line_editor_open(struct line_editor *self)
{
	const struct sigaction action = { .sa_handler = on_interrupt };
	HistEvent event;

	self->editor = el_init("probing", stdin, self->screen, stderr);
	self->history = history_init();
	if (!self->editor || !self->history) {
		free_all(self);
		return -ENOMEM;
	}
	history(self->history, &event, H_SETSIZE, MAX_HISTORY);
	history(self->history, &event, H_SETUNIQUE, 1);
	el_set(self->editor, EL_CLIENTDATA, self);
	el_set(self->editor, EL_PROMPT, show_prompt);
	el_set(self->editor, EL_EDITOR, "emacs");
	el_set(self->editor, EL_GETCFN, read_character);
	el_set(self->editor, EL_HIST, history, self->history);
	/* Use the wide version: the other one leaks its copies. */
	el_wset(self->editor, EL_ADDFN, L"probing-complete", L"complete a name", self->complete);
	el_set(self->editor, EL_BIND, "^I", "probing-complete", NULL);
	el_source(self->editor, NULL); /* ~/.editrc, where there is one */
	load_history(self);
	line_editor_interrupted = 0;
	sigaction(SIGINT, &action, &self->before);
	return 0;
}

void line_editor_close(struct line_editor *self)
{
	if (!self->editor)
		return;
	sigaction(SIGINT, &self->before, NULL);
	save_history(self);
	free_all(self);
}
