/* SPDX-License-Identifier: MIT */
/* aliases.h - options that users know from other tools.
 *
 * An alias is one row of the table in aliases.c, and its line in docs/habits.md. cli_parse() adds those of a verb to
 * its options; the verb's own parser gets the options behind them.
 */
#ifndef PROBING_CLI_ALIASES_H
#define PROBING_CLI_ALIASES_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

struct alias {
	const char *verb;
	const char *
		typed; /* "-n", "--stdio"; "-f X" takes an argument, "-t N" one that begins with a digit, where one follows */
	const char *
		means; /* "--native", "--comm=*": of the verb, which may hide it; "FILE": its argument is; "": it is so anyway */
	const char *whose; /* tool that has it */
};
extern const struct alias aliases[]; /* of a letter with "N" and without, that with it first; ends with a NULL verb */

/* A command line with its aliases. All zero: none. */
struct aliased {
	const char *verb;
	const struct argp *argp;     /* the verb's own; borrowed */
	struct argp_option *options; /* the verb's, and rows for its aliases */
};

/*
 * aliases_init - @verb: NULL: has none. Ended with aliases_done(). -ENOMEM.
 * aliases_parse - for an argp with these options: pass the option behind an alias to the verb's parser.
 * aliases_suggest - the name, without dashes, of the option that the first mistyped one of the words is near to; @typed gets
 *	the mistyped word. @common: options of all verbs, which are none. @in_order: options end at the first other word. NULL: there is none. Borrowed.
 * aliases_help - a paragraph for the manual, freed by the caller; NULL: the verb has none, or no memory.
 * aliases_help_with_filters - the same for --help, behind one with the names of OPTION_FILTER; freed by argp.
 */
int aliases_init(const char *verb, const struct argp *argp, struct aliased *ret);
void aliases_done(struct aliased *self);
error_t aliases_parse(const struct aliased *self, int key, char *argument, struct argp_state *state);
const char *aliases_suggest(const struct aliased *self, const struct argp_option *common, char *const *words,
			    int n_words, bool in_order, const char **typed);
char *aliases_help(const struct aliased *self);
char *aliases_help_with_filters(const struct aliased *self);

/* The name of ours for a format that others call otherwise ("raw", "flamegraph"); the same name where they do not. */
const char *aliases_format(const char *name);

#endif
