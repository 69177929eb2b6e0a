/* SPDX-License-Identifier: MIT */
/* top.h - where a process spends its time, live: a model, keys that steer it, and its picture.
 *
 * Three parts that know each other in this direction only: the screen (ncurses)
 * and the printer show a grid of characters; the view draws the model into a
 * grid; the model adds samples up and is steered by keys. Nothing here waits or reads
 * a clock: time comes in with each call, CLOCK_MONOTONIC.
 */
#ifndef PROBING_TOP_H
#define PROBING_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/store/store.h"

/* ---- The model ---- */

enum top_view { TOP_FUNCTIONS, TOP_LINES, TOP_MODULES, TOP_THREADS, TOP_TREE, TOP_N_VIEWS };
enum top_sort { TOP_BY_SELF, TOP_BY_TOTAL, TOP_BY_NAME, TOP_N_SORTS };

/* "function", "line"...; "self"... */
extern const char *const top_view_names[TOP_N_VIEWS];
extern const char *const top_sort_names[TOP_N_SORTS];

enum { TOP_MAX_WINDOW_S = 300 };

struct top_options {
	enum top_view view;
	enum top_sort sort;
	double window_s; /* initial time window: so many seconds, at most TOP_MAX_WINDOW_S; 0: since the start */
	bool hide_native, hide_kernel, show_interpreter;
	const char *filter;  /* only names and places with this in them; NULL: all */
	bool is_child;       /* we started the process: quitting asks whether to end it */
	bool is_interactive; /* false: no selection, no hints about keys */
};

/* Contents of the header about the process. Strings are borrowed for the call. */
struct top_status {
	const char *command, *python, *source; /* python: "": none; source: bpf, wakeup, poll, agent */
	const char *note;                      /* instead of process and losses: what is shown; NULL: a process is */
	pid_t pid;
	double hz;
	uint64_t lost;
	bool has_ended;
	double cpu_share;           /* of one core, 1.0 is one; negative: not known */
	double gil_share, gc_share; /* of the polls; negative: unknown */
	unsigned n_threads;         /* 0: not known */
	/* Threads of the process now, for those that are idle; sorted in no way. */
	const pid_t *tids;
	size_t n_tids;
};

struct top;

/* @options: the filter is copied. -ENOMEM. */
int top_new(const struct top_options *options, uint64_t now_ns, struct top **ret);
void top_free(struct top *top);
void top_freep(struct top **top);

/*
 * top_begin - read names and stacks from a new file, which it creates; drops all earlier counts.
 * @ret: for a pipeline whose samples go to top_take().
 * Errors: no writable folder for the file; -ENOSPC, -ENOMEM.
 */
int top_begin(struct top *top, uint64_t now_ns, struct store **ret);

/* For pipeline_options: @data is a struct top. -ENOMEM. */
int top_take(void *data, const struct sample_row *row);

/* top_add - one row that stands for so many samples. -ENOMEM. */
int top_add(struct top *top, const struct sample_row *row, uint64_t n_samples);

/*
 * top_replace - drop all counts, but neither stacks nor names: what is added afterwards is all there was since @since_ns.
 * For sources that are asked for the whole window again.
 */
void top_replace(struct top *top, uint64_t since_ns);

/* The window that is shown now, in seconds; 0: since the start. */
double top_window(const struct top *top);

/* top_absorb - count new samples; call it some times a second. Errors: what reading the file reports. */
int top_absorb(struct top *top, uint64_t now_ns);

/* Whether all received samples are counted, and have all names that are expected. */
bool top_is_stable(const struct top *top);

/* The tree has grown so large that top_begin() should be called again. */
bool top_is_full(const struct top *top);

/* top_refresh - make the displayed rows. While paused it only updates the status. -ENOMEM. */
int top_refresh(struct top *top, const struct top_status *status, uint64_t now_ns);

/* ---- Keys ---- */

/* Beside characters. */
enum top_key {
	TOP_KEY_UP = 0x110000,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_BACKSPACE,
	TOP_KEY_TAB,
	TOP_KEY_BACK_TAB,
	TOP_KEY_HELP,
	TOP_KEY_REDRAW,
};

enum top_action {
	TOP_STAY,  /* draw again */
	TOP_RESET, /* drop all counts: top_reset() has been called already, draw again */
	TOP_QUIT,
	TOP_QUIT_AND_END, /* and end the command */
	TOP_REPAINT,      /* draw all of the screen again */
};

/* top_key - execute a key's action. @key: a character (Unicode) or one of enum top_key. */
enum top_action top_key(struct top *top, uint32_t key, uint64_t now_ns);

/* ---- Pictures ---- */

enum grid_style {
	GRID_PLAIN,
	GRID_TITLE,
	GRID_HEAD, /* the line over the table */
	GRID_PYTHON,
	GRID_BUILTIN,
	GRID_NATIVE,
	GRID_KERNEL,
	GRID_DIM,
	GRID_WARNING,
	GRID_N_STYLES
};

struct grid_cell {
	uint32_t character; /* 0: the right half of a wide one */
	uint32_t mark;      /* combined with it; 0: none */
	uint8_t style;
	bool is_selected;
};

struct grid {
	unsigned rows, columns;
	struct grid_cell *cells; /* by row */
	unsigned used_rows;      /* those from here on are empty */
};

/* -ENOMEM, -EINVAL. Ended with grid_done(). */
int grid_init(struct grid *grid, unsigned rows, unsigned columns);
void grid_done(struct grid *grid);

/* top_draw - the current picture, of any size. */
void top_draw(struct top *top, struct grid *grid);

/* grid_print - its rows as text, without blank ends; characters that the locale cannot write become '?'.
 * Errors: what writing reports. */
int grid_print(const struct grid *grid, FILE *out);

/* ---- The terminal ---- */

struct screen;

/*
 * screen_open - take over the terminal.
 * @input: its descriptor for reading keys; @output: for drawing.
 * @colour: use colours if it has some.
 * @ret: ended with screen_close(), which restores the terminal.
 * Errors: -ENOTTY @output is none; -EOPNOTSUPP it cannot place the cursor, or its type (TERM) is unknown.
 */
int screen_open(int input, int output, bool colour, struct screen **ret);
void screen_close(struct screen *screen);
void screen_closep(struct screen **screen);

void screen_size(const struct screen *screen, unsigned *ret_rows, unsigned *ret_columns);
/* After SIGWINCH. */
void screen_resize(struct screen *screen);
/* @anew: draw everything again. */
void screen_show(struct screen *screen, const struct grid *grid, bool anew);
/* Whether the terminal accepts output: a stopped one (Ctrl-S) would block us. */
bool screen_is_ready(const struct screen *screen);
/* The next key that waits, as top_key() takes it; false: none, *ret_gone: nor will there ever be one. */
bool screen_key(struct screen *screen, uint32_t *ret, bool *ret_gone);
/* Give the terminal back, until screen_show(). */
void screen_leave(struct screen *screen);

#endif
