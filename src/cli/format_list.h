/* SPDX-License-Identifier: MIT */
/* format_list.h - the help of an option that takes the name of a format, from the table of formats. */
#ifndef PROBING_CLI_FORMAT_LIST_H
#define PROBING_CLI_FORMAT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct format_list {
	FILE *out;
	char *text;
	size_t n_bytes;
	bool has_some;
};

/* format_list_begin - @before: text before the first. false: no memory, and nothing to end. */
bool format_list_begin(struct format_list *list, const char *before);
void format_list_add(struct format_list *list, const char *name, const char *summary);
/* For return from a help filter; argp frees it. NULL: no memory. */
char *format_list_end(struct format_list *list, const char *after);

#endif
