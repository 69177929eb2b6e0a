/* SPDX-License-Identifier: MIT */
/* described.h - the options and arguments of a verb, for its manual page and for completion. */
#ifndef PROBING_CLI_DESCRIBED_H
#define PROBING_CLI_DESCRIBED_H

#include <stddef.h>
#include <stdio.h>

#include "src/cli/cli.h"

enum { MAX_OPTION_NAMES = 4 };

/* An option with its names. Borrowed from the verb's descriptor. */
struct described_option {
	const char *names[MAX_OPTION_NAMES]; /* without dashes, the main one first; NULL ends a shorter list */
	char letters[MAX_OPTION_NAMES + 1];
	const char *argument; /* "TIME"; NULL: it takes none */
	bool may_lack_argument;
	const struct argp_option *row;
};

struct described {
	const struct verb *verb;
	struct described_option *options;
	size_t n;
};

/* described_init - the visible options of a verb and those of all verbs. Ended with described_done(). -ENOMEM. */
int described_init(const struct verb *verb, struct described *ret);
void described_done(struct described *self);

/*
 * described_text - text of a verb as its help filter completes it. Freed by the caller; NULL: no such text, or no memory.
 * @key: as argp_help passes it: an option's key, ARGP_KEY_HELP_POST_DOC.
 */
char *described_text(const struct verb *verb, int key, const char *text);

/* The parts of a verb's text before and after its options. Freed by the caller; NULL: there is none, or no memory. */
char *described_before(const struct verb *verb);
char *described_after(const struct verb *verb);

/* manual_write - the manual page of a verb as troff with man(7) macros; of NULL probing's own. 0 or -ENOMEM. */
int manual_write(const struct verb *verb, FILE *out);
/* manual_write_page - "schema": all tables of SQL, section 7; "format": the file format, section 5. 0, or -ENOENT. */
int manual_write_page(const char *name, FILE *out);

/* completion_write - a script of the shell "bash", "zsh" or "fish" that completes command lines. -ENOENT, -ENOMEM. */
int completion_write(const char *shell, FILE *out);

/* ---- words.c: the words that an argument may be: one a line, a tab, and what it is ---- */

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
