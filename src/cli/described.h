/* SPDX-License-Identifier: MIT */
/* described.h - the options of a verb as rows, in the order of --help, for its manual page and for completion. */
#ifndef PROBING_CLI_DESCRIBED_H
#define PROBING_CLI_DESCRIBED_H

#include <stddef.h>

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

/* completion_write - a script of the shell "bash", "zsh" or "fish" that completes command lines. -ENOENT, -ENOMEM. */
int completion_write(const char *shell, FILE *out);

#endif
