/* SPDX-License-Identifier: MIT */
/* words.h - the words that an argument may be, for completion: one a line, a tab, and what it is. */
#ifndef PROBING_CLI_WORDS_H
#define PROBING_CLI_WORDS_H

#include <stdio.h>

/* words_put - @kind: "verbs", "pids", "names", "events", "formats", "functions", "tables", "cluster-verbs". -ENOENT: no such kind, or no
 * words of it here. */
int words_put(const char *kind, FILE *out);

/*
 * words_of_argument - the kind of words that an option's argument, or the arguments of a verb, are of.
 * @option: its long name; NULL: @metavar is a verb's args_doc.
 * Returns one of the kinds above, "files", "folders", "recordings", "commands"; NULL: none of them.
 */
const char *words_of_argument(const char *option, const char *metavar);

#endif
