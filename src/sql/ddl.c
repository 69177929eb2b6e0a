/* SPDX-License-Identifier: MIT */
/* ddl.c - see ddl.h. Declarations are written a column a line, with its comment behind it. */
#include "src/sql/ddl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

static void copy_line(const char *text, char *to, size_t n_bytes)
{
	size_t n = MIN(strcspn(text, "\n"), n_bytes - 1);

	for (size_t i = 0; i < n; i++)
		to[i] = iscntrl((unsigned char)text[i]) ? ' ' : text[i];
	while (n > 0 && to[n - 1] == ' ')
		n--;
	to[n] = '\0';
}

/* The comment of a line, from "-- " on; NULL: none. */
static const char *comment_in(const char *line)
{
	const char *comment = strstr(line, "-- ");

	return comment && comment < line + strcspn(line, "\n") ? comment + strlen("-- ") : NULL;
}

static int names(const char *line, const char *column)
{
	size_t n = strlen(column);

	line += strspn(line, " \t\"");
	return strncasecmp(line, column, n) == 0 && !isalnum((unsigned char)line[n]) && line[n] != '_';
}

void ddl_comment(const char *ddl, const char *column, char *to, size_t n_bytes)
{
	to[0] = '\0';
	for (const char *line = ddl; line; line = strchr(line, '\n')) {
		const char *comment;

		line += *line == '\n';
		if (!names(line, column))
			continue;
		comment = comment_in(line);
		if (comment)
			copy_line(comment, to, n_bytes);
		return;
	}
}

void ddl_doc(const char *ddl, char *to, size_t n_bytes)
{
	const char *comment = ddl ? comment_in(ddl) : NULL;

	to[0] = '\0';
	if (comment)
		copy_line(comment, to, n_bytes);
}
