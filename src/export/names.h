/* SPDX-License-Identifier: MIT */
/* names.h - texts by number, each once, in the order of insertion. */
#ifndef PROBING_EXPORT_NAMES_H
#define PROBING_EXPORT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: none. Ended with names_done(). */
struct names {
	void *tree;         /* tsearch(3) */
	const char **texts; /* valid UTF-8 on one line */
	size_t n, allocated;
};

/*
 * names_add - a text's number, from 0.
 * @text: any bytes; made clean by text_next(). NULL is "".
 * Errors: -ENOMEM.
 */
int names_add(struct names *names, const char *text, uint32_t *ret);
void names_done(struct names *names);

#endif
