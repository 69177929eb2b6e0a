/* SPDX-License-Identifier: MIT */
/* terminal.c - width and colours of the terminal. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/cli/cli.h"

enum { MAX_COLUMNS = 100000 };

static enum cli_colour_choice choice = COLOUR_AUTO;

/* Of standard output, while a pager shows it. */
static struct {
	bool is_kept;
	unsigned columns;
} behind_pager;

/* COLUMNS, if it is a valid width. */
static unsigned asked_for(void)
{
	const char *text = getenv("COLUMNS");
	char *end;
	long columns = text ? strtol(text, &end, 10) : 0;

	return text && *end == '\0' && columns > 0 && columns <= MAX_COLUMNS ? (unsigned)columns : 0;
}

/* 0: no terminal. */
static unsigned width_of(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col > 0 ? size.ws_col : 80; /* the terminal does not know its width */
}

unsigned cli_columns(int fd)
{
	unsigned columns = asked_for();

	if (columns > 0)
		return columns;
	return fd == STDOUT_FILENO && behind_pager.is_kept ? behind_pager.columns : width_of(fd);
}

void cli_keep_terminal(void)
{
	behind_pager.columns = width_of(STDOUT_FILENO);
	behind_pager.is_kept = true;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && value[0];
}

void cli_choose_colour(enum cli_colour_choice wanted)
{
	choice = wanted;
}

/* The order of bixense.com/clicolors: NO_COLOR wins. */
bool cli_colour(int fd)
{
	const char *kind = getenv("TERM"), *forced = getenv("CLICOLOR_FORCE");

	if (choice != COLOUR_AUTO)
		return choice == COLOUR_ALWAYS;
	if (is_set("NO_COLOR"))
		return false;
	if (forced && forced[0] && strcmp(forced, "0") != 0)
		return true;
	if (fd == STDOUT_FILENO && behind_pager.is_kept)
		return true; /* pager_start() has seen a terminal */
	return isatty(fd) && kind && strcmp(kind, "dumb") != 0;
}
