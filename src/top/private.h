/* SPDX-License-Identifier: MIT */
/* private.h - declarations that the files of this folder share. */
#ifndef PROBING_TOP_PRIVATE_H
#define PROBING_TOP_PRIVATE_H

#include <sys/types.h>

#include "src/top/past.h"
#include "src/top/sums.h"
#include "src/top/top.h"

enum { TOP_MAX_FILTER = 128, TOP_MAX_BACK = 32 };

struct top_thread {
	pid_t pid, tid;
};

enum row_type {
	ROW_GROUP,
	ROW_THREAD,
	ROW_NODE,  /* of the tree */
	ROW_TITLE, /* a line of text, that cannot be selected */
};

struct row {
	enum row_type type;
	uint64_t self, total;
	const char *name;
	const char *file, *module;
	int line;
	enum frame_kind kind;
	enum frame_role role;
	uint64_t key; /* the same at the next refresh */
	unsigned depth;
	bool has_children, is_open;
	pid_t pid, tid; /* of a thread */
	bool is_child;  /* thread of another process than the displayed one */
};

enum top_mode { MODE_TABLE, MODE_FILTER, MODE_HELP, MODE_QUIT };

/* The target of the Escape key. */
struct place {
	enum top_view view;
	uint64_t focus;  /* a group's key, whose callers and callees are shown; 0: none */
	uint32_t thread; /* index: of this one alone; SUMS_ALL_THREADS */
};

struct top_ui {
	enum top_mode mode;
	struct place at;
	struct place back[TOP_MAX_BACK];
	size_t n_back;
	enum top_sort sort;
	bool is_reversed, show_native, show_kernel, show_interpreter, show_idle, is_paused;
	bool since_start;
	double window_s;
	char filter[TOP_MAX_FILTER];
	char filter_before[TOP_MAX_FILTER]; /* while one is being typed */
	bool has_selection;                 /* the user has selected a row: the selection stays with it */
	uint64_t selected_key;
	size_t selected; /* index of the row */
	size_t scroll;   /* first row that is shown */
	size_t page;     /* rows that there were room for */
	size_t help_scroll;
};

struct top {
	struct top_options options;
	struct top_names *names; /* NULL: not begun */
	struct past past;
	struct top_thread *threads;
	size_t n_threads, threads_allocated;
	struct id_map thread_index; /* pid and tid -> index */
	struct groups groups;
	struct sums sums;
	struct sums_options counted; /* options of sums ... */
	enum grouping counted_by;
	bool is_current;     /* ... if so, all but the news */
	uint64_t shown_ns;   /* length of the displayed time */
	struct cells frozen; /* while it is paused */
	uint64_t frozen_all_ns;
	struct id_map closed; /* nodes of the tree that are folded, by the hash of their path */
	bool renamed;
	bool begun_anew;           /* the start is the time at which the tree had grown too large */
	uint64_t counted_since_ns; /* start of the counted time */
	uint64_t now_ns;           /* of the last refresh */
	uint64_t ended_ns;         /* when the process was first reported as ended: then time stops */
	struct top_ui ui;
	struct row *rows;
	size_t n_rows, rows_allocated;
	pid_t *tids;
	size_t n_tids;
	/* The last status, strings owned. */
	struct top_status status;
	char *command, *python, *note;
};

/* rows.c: from sums to rows that are sorted and filtered. -ENOMEM. */
int top_list_rows(struct top *top);

/* The order of rows. */
enum top_sort top_sort_in(const struct top_ui *ui);

/* The place in the code, "file:line" or a module's name; "" unknown. */
void row_place(const struct row *row, char *to, size_t n_bytes);

/* keys.c: keep the selection where it was, after the rows have changed. */
void top_keep_selection_visible(struct top *top);

/* model.c: rows must be made again: another view, filter or order. */
void top_changed(struct top *top);

/* Index of the group with that key; SUMS_NO_FOCUS: there is none. */
uint32_t top_group(const struct top *top, uint64_t key);

/* ---- Drawing ---- */

/* Where it ends up: the column after it. @columns: at most so many. */
unsigned grid_put(struct grid *grid, unsigned row, unsigned column, enum grid_style style, unsigned columns,
		  const char *text);
/* Cut the beginning of a text that is too long, not its end; the middle. */
unsigned grid_put_end(struct grid *grid, unsigned row, unsigned column, enum grid_style style, unsigned columns,
		      const char *text);
unsigned grid_put_middle(struct grid *grid, unsigned row, unsigned column, enum grid_style style, unsigned columns,
			 const char *text);
/* A whole row in one style, including empty columns. */
void grid_fill_style(struct grid *grid, unsigned row, enum grid_style style, bool is_selected);

/* A duration in at most 7 columns. @to: 24 bytes. */
void format_time(uint64_t ns, char *to, size_t n_bytes);

void draw_help(struct top *top, struct grid *grid);
/* Returns the rows it took. */
unsigned draw_head(const struct top *top, struct grid *grid);
void draw_table(struct top *top, struct grid *grid, unsigned first_row, unsigned n_rows);

#endif
