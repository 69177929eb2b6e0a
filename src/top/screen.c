/* SPDX-License-Identifier: MIT */
/* screen.c - a grid on a terminal, by ncurses; and its keys.
 *
 * Signals are the caller's: SIGWINCH becomes screen_resize(), and the handlers that
 * ncurses installs never run where these signals are blocked.
 */
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/util.h"
#include "src/top/terminal.h"
#include "src/top/top.h"

enum { ESCAPE_MS = 25, ELLIPSIS = 0x2026 };

struct screen {
	SCREEN *terminal;
	FILE *in, *out;
	int input, output;
	bool has_colours;
	bool is_left; /* the terminal is temporarily given back */
};

/* 0: default colour. */
/* clang-format off */
static const short colours[GRID_N_STYLES] = {
	[GRID_PYTHON] = COLOR_CYAN,    [GRID_BUILTIN] = COLOR_GREEN, [GRID_NATIVE] = COLOR_YELLOW,
	[GRID_KERNEL] = COLOR_MAGENTA, [GRID_WARNING] = COLOR_RED,
};
/* clang-format on */

static void start_colours(struct screen *screen)
{
	if (!has_colors() || start_color() == ERR)
		return;
	use_default_colors();
	for (short i = 0; i < GRID_N_STYLES; i++)
		if (colours[i] != 0)
			init_pair(i + 1, colours[i], -1);
	screen->has_colours = true;
}

static FILE *stream_of(int fd, const char *mode)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	FILE *file = copy >= 0 ? fdopen(copy, mode) : NULL;

	if (!file && copy >= 0)
		close(copy);
	return file;
}

static void set_up(struct screen *screen, bool colour)
{
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	leaveok(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	if (colour)
		start_colours(screen);
	screen_resize(screen);
}

int screen_open(int input, int output, bool colour, struct screen **ret)
{
	CLEANUP(screen_closep) struct screen *screen = NULL;

	if (!isatty(output))
		return -ENOTTY;
	if (!terminal_can_draw(output))
		return -EOPNOTSUPP;
	screen = calloc(1, sizeof *screen);
	if (!screen)
		return -ENOMEM;
	screen->input = input;
	screen->output = output;
	screen->in = stream_of(input, "r");
	screen->out = stream_of(output, "w");
	if (!screen->in || !screen->out)
		return -errno;
	screen->terminal = newterm(NULL, screen->out, screen->in);
	if (!screen->terminal)
		return -EOPNOTSUPP;
	set_up(screen, colour);
	*ret = TAKE(screen);
	return 0;
}

void screen_close(struct screen *screen)
{
	if (!screen)
		return;
	if (screen->terminal) {
		if (!screen->is_left)
			endwin();
		delscreen(screen->terminal);
	}
	if (screen->in)
		fclose(screen->in);
	if (screen->out)
		fclose(screen->out);
	free(screen);
}

void screen_closep(struct screen **screen)
{
	screen_close(*screen);
}

void screen_leave(struct screen *screen)
{
	if (!screen->is_left)
		endwin();
	screen->is_left = true;
}

void screen_size(const struct screen *screen, unsigned *ret_rows, unsigned *ret_columns)
{
	(void)screen;
	*ret_rows = (unsigned)MAX(getmaxy(stdscr), 1);
	*ret_columns = (unsigned)MAX(getmaxx(stdscr), 1);
}

void screen_resize(struct screen *screen)
{
	struct winsize size;

	if (ioctl(screen->output, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		return;
	if (size.ws_row != getmaxy(stdscr) || size.ws_col != getmaxx(stdscr))
		resizeterm(size.ws_row, size.ws_col);
}

static attr_t attributes(const struct grid_cell *cell)
{
	static const attr_t plain[GRID_N_STYLES] = {
		[GRID_TITLE] = A_BOLD,
		[GRID_HEAD] = A_REVERSE,
		[GRID_WARNING] = A_BOLD,
	};

	return plain[cell->style] | (cell->is_selected ? A_REVERSE : A_NORMAL);
}

/* A character that the locale cannot encode would confuse ncurses' cursor position. */
static wchar_t writable(uint32_t c)
{
	char bytes[MB_LEN_MAX];
	mbstate_t state = { 0 };

	if (wcrtomb(bytes, (wchar_t)c, &state) != (size_t)-1)
		return (wchar_t)c;
	return c == ELLIPSIS ? L'~' : L'?';
}

static void show_cell(const struct screen *screen, int row, int column, const struct grid_cell *cell)
{
	wchar_t text[3] = { writable(cell->character), cell->mark ? writable(cell->mark) : L'\0', L'\0' };
	bool has_pair = screen->has_colours && colours[cell->style] != 0 && !cell->is_selected;
	cchar_t character;

	if (text[1] == L'?')
		text[1] = L'\0';
	if (text[0] == L'?' && cell->character != '?' && cell[0].mark == 0 && wcwidth((wchar_t)cell->character) == 2)
		mvaddch(row, column + 1, ' ' | attributes(cell));
	if (setcchar(&character, text, attributes(cell), has_pair ? (short)(cell->style + 1) : 0, NULL) == OK)
		mvadd_wch(row, column, &character);
}

bool screen_is_ready(const struct screen *screen)
{
	struct pollfd poll_fd = { .fd = screen->output, .events = POLLOUT };

	return poll(&poll_fd, 1, 0) > 0;
}

void screen_show(struct screen *screen, const struct grid *grid, bool anew)
{
	int rows = MIN((int)grid->rows, getmaxy(stdscr)), columns = MIN((int)grid->columns, getmaxx(stdscr));

	erase();
	for (int row = 0; row < rows; row++)
		for (int column = 0; column < columns; column++) {
			const struct grid_cell *cell = &grid->cells[(size_t)row * grid->columns + (size_t)column];

			if (cell->character != 0)
				show_cell(screen, row, column, cell);
		}
	if (anew || screen->is_left)
		clearok(stdscr, TRUE);
	screen->is_left = false;
	refresh();
}

/* ---- Keys ---- */

static uint32_t special_key(wint_t key)
{
	switch (key) {
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_LEFT:
		return TOP_KEY_LEFT;
	case KEY_RIGHT:
		return TOP_KEY_RIGHT;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_END:
		return TOP_KEY_END;
	case KEY_ENTER:
		return TOP_KEY_ENTER;
	case KEY_BACKSPACE:
	case KEY_DC:
		return TOP_KEY_BACKSPACE;
	case KEY_BTAB:
		return TOP_KEY_BACK_TAB;
	case KEY_F(1):
		return TOP_KEY_HELP;
	case KEY_F(10):
		return 'q';
	default:
		return 0;
	}
}

static uint32_t character_key(wint_t key)
{
	switch (key) {
	case '\r':
	case '\n':
		return TOP_KEY_ENTER;
	case '\t':
		return TOP_KEY_TAB;
	case 0x1b:
		return TOP_KEY_ESCAPE;
	case '\b':
	case 0x7f:
		return TOP_KEY_BACKSPACE;
	case 'L' - '@':
		return TOP_KEY_REDRAW;
	default:
		return (uint32_t)key;
	}
}

static bool is_gone(const struct screen *screen)
{
	struct pollfd poll_fd = { .fd = screen->input, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLHUP | POLLERR | POLLNVAL));
}

bool screen_key(struct screen *screen, uint32_t *ret, bool *ret_gone)
{
	wint_t key;
	int kind;

	/* get_wch() first draws pending changes; there are none between two calls of screen_show(). */
	kind = get_wch(&key);
	*ret_gone = kind == ERR && is_gone(screen);
	if (kind == ERR)
		return false;
	*ret = kind == KEY_CODE_YES ? special_key(key) : character_key(key);
	return true;
}
