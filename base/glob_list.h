/* SPDX-License-Identifier: MIT */
/* glob_list.h - lists of names, globs and numbers that a user gives, and the test whether a name matches one. */
#ifndef PROBING_BASE_GLOB_LIST_H
#define PROBING_BASE_GLOB_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is the empty list. */
struct glob_list {
	char **words;
	size_t n, allocated;
};
void glob_list_done(struct glob_list *words);

/* glob_list_add - one more, as it is; copied. -ENOMEM. */
int glob_list_add(struct glob_list *words, const char *word);

/* glob_list_add_list - add a comma-separated list; skips empty items. -EINVAL: no items; -ENOMEM. */
int glob_list_add_list(struct glob_list *words, const char *list);

/* Whether a whole name equals an item, or matches one as a glob (glob(7)): "[lock]" matches itself, not a letter. */
bool glob_list_match(const struct glob_list *words, const char *name);

/*
 * glob_list_match_function - the same for a function's name, or the part after its last
 * dot: "step" matches "Trainer.step".
 */
bool glob_list_match_function(const struct glob_list *words, const char *name);

/* Whether an item is that number. */
bool glob_list_have_number(const struct glob_list *words, int64_t number);

/* Whether all items are numbers. True for an empty list. */
bool glob_list_are_numbers(const struct glob_list *words);

#endif
