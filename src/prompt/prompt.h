/* SPDX-License-Identifier: MIT */
/* prompt.h - a line typed at a terminal, for the prompts of SQL and of Python.
 *
 * Ctrl-C drops the current line. For that the editor owns SIGINT from open to close. Its handler
 * only sets a flag, which the code that executes lines also checks. No Ctrl-C is lost: while a line is edited SIGINT is
 * blocked except in ppoll.
 *
 * libedit does the editing. Its own signal handling stays off, since it repeats signals to the whole process group.
 */
#ifndef PROBING_PROMPT_H
#define PROBING_PROMPT_H

#include <histedit.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

struct line_editor {
	/* Set by the caller. */
	FILE *screen;             /* prompt and messages */
	const char *history_name; /* of the history file (history.h) */
	const char *(*prompt)(void *data);
	unsigned char (*complete)(EditLine *editor, int key); /* the Tab key. Source: editline(3), EL_ADDFN */
	void *data;
	int watched; /* a descriptor that ends the reading when something comes from it; -1: none */
	/* The editor's own. */
	EditLine *editor;
	History *history;
	char *history_path; /* NULL: not kept */
	sigset_t mask;      /* as it was before the prompt */
	struct sigaction before;
	bool has_news;
};

/* Number of Ctrl-Cs since the last reset. */
extern volatile sig_atomic_t line_editor_interrupted;

/* Errors: -ENOMEM. Shows a message if the history is unreadable. Must not move while it is open. */
int line_editor_open(struct line_editor *self);

/* line_editor_close - keep the history, and give SIGINT back. Harmless where it was not opened. */
void line_editor_close(struct line_editor *self);

/*
 * line_editor_read - the next line, with its line end; borrowed until the next call.
 * Returns 1 a line; 0 the end of input. Errors: -EINTR Ctrl-C, and resets the count; -EPIPE @watched became readable.
 */
int line_editor_read(struct line_editor *self, const char **ret);

/* Into the history. */
void line_editor_remember(struct line_editor *self, const char *line);

/* The caller's data, within complete(). */
void *line_editor_data(EditLine *editor);

/*
 * history_path - the file of a prompt's history, or another of the user's state: ${XDG_STATE_HOME:-~/.local/state}/probing/NAME.
 * Creates missing folders, for the user alone.
 * Errors: -ENOENT no home is known; what mkdir(2) reports; -ENOMEM.
 */
int history_path(const char *name, char **ret);

#endif
