/* SPDX-License-Identifier: MIT */
/* glob_list.h - lists of words that a user gave, and whether a name is meant by one of them. */
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

/* Whether a whole name is one of them, or fits one as a glob (glob(7)): "[lock]" is itself, not a letter. */
bool glob_list_match(const struct glob_list *words, const char *name);

/*
 * glob_list_match_function - the same for a function's name, or the part after its last
 * dot: "step" matches "Trainer.step".
 */
bool glob_list_match_function(const struct glob_list *words, const char *name);

/* Whether one of them is that number. */
bool glob_list_have_number(const struct glob_list *words, int64_t number);

/* Whether all of them are numbers. True for none. */
bool glob_list_are_numbers(const struct glob_list *words);

#endif
