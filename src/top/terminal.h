/* SPDX-License-Identifier: MIT */
/* terminal.h - capabilities of the terminal. Private. */
#ifndef PROBING_TOP_TERMINAL_H
#define PROBING_TOP_TERMINAL_H

#include <stdbool.h>

/* Whether the kind that TERM names is known and can place its cursor. */
bool terminal_can_draw(int fd);

#endif
