/* SPDX-License-Identifier: MIT */
/* terminal.c - see terminal.h. A file of its own: <term.h> defines words like "lines" and "columns". */
#include <curses.h>
#include <term.h>

#include "src/top/terminal.h"

bool terminal_can_draw(int fd)
{
	bool can_draw;
	int error = 0;

	if (setupterm(NULL, fd, &error) != OK || error != 1)
		return false;
	can_draw = cursor_address && clear_screen && cursor_address[0];
	del_curterm(cur_term);
	return can_draw;
}
