/* SPDX-License-Identifier: MIT */
/* view_help.c - help for the keys. */
#include "base/util.h"
#include "src/top/private.h"

static const char *const lines[] = {
	"Keys (arrows scroll, any other key goes back)",
	"",
	"  f l m t c   functions, lines, modules, threads, call tree",
	"  Tab         the next of these views; Shift-Tab: the one before",
	"  Enter       function: its callers and callees; thread: its functions;",
	"              call tree: fold, unfold. Esc goes back",
	"  arrows j k  select; PgUp PgDn Home End",
	"",
	"  1 2 3       sort by self, total, name (also < and >); R reverses",
	"  w           since the start, or the last seconds",
	"  + -         more, fewer of these seconds",
	"  /text       only names and places with this in them; Esc: all again",
	"",
	"  n           native frames; without them their time is their caller's",
	"  K           frames of the kernel",
	"  x           the interpreter's own frames",
	"  i           threads: those too that used no CPU",
	"",
	"  p Space     pause the display; sampling continues",
	"  r           reset all counts",
	"  Ctrl-L      draw the screen again",
	"  q           quit",
	"",
	"self: time in the function's own code. total: includes its callees.",
	"Shares are of the CPU time in the window; CPU in the header is of one core.",
	"GIL, GC: share of readings in which a thread held it, or collected.",
};

void draw_help(struct top *top, struct grid *grid)
{
	size_t n_rows = grid->rows, most = N_ELEMENTS(lines) > n_rows ? N_ELEMENTS(lines) - n_rows : 0;

	top->ui.help_scroll = MIN(top->ui.help_scroll, most);
	for (size_t i = 0; i < n_rows && top->ui.help_scroll + i < N_ELEMENTS(lines); i++)
		grid_put(grid, (unsigned)i, 0, i + top->ui.help_scroll == 0 ? GRID_TITLE : GRID_PLAIN, grid->columns,
			 lines[top->ui.help_scroll + i]);
}
