/* words.h - lists of words that a user gave, and whether a name is meant by one of them. */
#ifndef PROBING_BASE_WORDS_H
#define PROBING_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is the empty list. */
struct words {
	char **words;
	size_t n, allocated;
};
void words_done(struct words *words);

/* words_add - one more, as it is; copied. -ENOMEM. */
int words_add(struct words *words, const char *word);

/* words_add_list - those between commas; empty ones are left out. -EINVAL: there is none; -ENOMEM. */
int words_add_list(struct words *words, const char *list);

/* Whether a whole name is one of them, or fits one as a glob (glob(7)): "[lock]" is itself, not a letter. */
bool words_match(const struct words *words, const char *name);

/*
 * words_match_function - the same for a function's name, of which also what stands behind the last
 * dot will do: "step" is also "Trainer.step".
 */
bool words_match_function(const struct words *words, const char *name);

/* Whether one of them is that number. */
bool words_have_number(const struct words *words, int64_t number);

/* Whether all of them are numbers. True for none. */
bool words_are_numbers(const struct words *words);

#endif
