/* SPDX-License-Identifier: MIT */
/* strings.h - strings that live and die together. */
#ifndef PROBING_PROFILE_STRINGS_H
#define PROBING_PROFILE_STRINGS_H

#include <stddef.h>

struct strings;

/* Nothing in it yet. -ENOMEM. */
int strings_new(struct strings **ret);
void strings_free(struct strings *strings);

/*
 * strings_add - copy n_bytes and a NUL.
 * @ret: lives as long as strings; never moves.
 * Errors: -ENOMEM.
 */
int strings_add(struct strings *strings, const char *text, size_t n_bytes, const char **ret);

#endif
