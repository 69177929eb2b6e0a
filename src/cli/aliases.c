/* SPDX-License-Identifier: MIT */
/* aliases.c - see aliases.h.
 *
 * A letter means one thing in every verb that has it (docs/habits.md lists them). If two tools
 * give a letter two meanings, its argument distinguishes them, or the harmless one wins.
 */
#include "src/cli/aliases.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/sql/sql.h"

enum { FIRST_KEY = 0xa00 };

const struct alias aliases[] = {
	{ "record", "-n", "--native", "py-spy" },
	{ "record", "-s", "--subprocesses", "py-spy" },
	{ "record", "-C", "--subprocesses", "austin" },
	{ "record", "--children", "--subprocesses", "austin" },
	{ "record", "-t N", "--tid", "perf" },
	{ "record", "-t", "--by-thread", "py-spy" },
	{ "record", "-i N", "--interval", "austin" },
	{ "record", "-i", "--idle", "py-spy" },
	{ "record", "-x X", "--duration", "austin" },
	{ "record", "-g", "--show-gil", "py-spy, perf" },
	{ "record", "--call-graph X", "", "perf" },
	{ "record", "-a", "--comm=*", "perf" },
	{ "record", "--all-cpus", "--comm=*", "perf" },
	{ "record", "-u X", "--user", "perf" },
	{ "record", "--nonblocking", "", "py-spy" },
	{ "record", "--full-filenames", "", "py-spy" },
	{ "backtrace", "-l", "--locals", "py-spy" },
	{ "backtrace", "-j", "--json", "py-spy" },
	{ "backtrace", "-n", "", "py-spy" },
	{ "backtrace", "--native", "", "py-spy" },
	{ "backtrace", "-s", "--subprocesses", "py-spy" },
	{ "backtrace", "-c X", "--core", "py-spy" },
	{ "backtrace", "--nonblocking", "--no-stop", "py-spy" },
	{ "backtrace", "--full-filenames", "", "py-spy" },
	{ "flamegraph", "-t", "--by-thread", "py-spy" },
	{ "flamegraph", "-g", "--gil", "py-spy" },
	{ "flamegraph", "-i X", "FILE", "perf" },
	{ "flamegraph", "-j", "--format=speedscope", "The older probing" },
	{ "report", "-i X", "FILE", "perf" },
	{ "report", "-g", "--gil", "py-spy" },
	{ "report", "--stdio", "", "perf" },
	{ "report", "--no-children", "", "perf" },
	{ "report", "--children", "--total", "perf" },
	{ "annotate", "-i X", "FILE", "perf" },
	{ "annotate", "--stdio", "", "perf" },
	{ "export", "-f X", "--to", "py-spy" },
	{ "export", "--format X", "--to", "py-spy" },
	{ "export", "-t", "--by-thread", "py-spy" },
	{ "export", "-g", "--gil", "py-spy" },
	{ "export", "-i X", "FILE", "perf" },
	{ "sql", "-i X", "FILE", "perf" },
	{ "top", "-d X", "--delay", "perf" },
	{ "run", "-r", "--recursive", "The older probing" },
	{ NULL, NULL, NULL, NULL },
};

static const struct {
	const char *typed, *means;
} formats[] = {
	{ "flamegraph", "svg" },
	{ "raw", "folded" },
	{ "collapsed", "folded" },
	{ "chrometrace", "chrome" },
};

const char *aliases_format(const char *name)
{
	for (size_t i = 0; i < N_ELEMENTS(formats); i++)
		if (strcmp(formats[i].typed, name) == 0)
			return formats[i].means;
	return name;
}

/* ---- Options for argp ---- */

static bool is_of(const struct alias *alias, const char *verb)
{
	return verb && strcmp(alias->verb, verb) == 0;
}

static bool wants_number(const struct alias *alias)
{
	return strstr(alias->typed, " N") != NULL;
}

static int key_of(const struct alias *alias)
{
	return alias->typed[1] == '-' ? FIRST_KEY + (int)(alias - aliases) : alias->typed[1];
}

/* Name of a long option without dashes and argument; never freed. NULL: a letter. */
static char *long_name(const struct alias *alias)
{
	return alias->typed[1] == '-' ? strndup(alias->typed + 2, strcspn(alias->typed + 2, " ")) : NULL;
}

/* A letter with and without a number share one option, without argument. */
static bool is_twin(const struct alias *alias)
{
	return alias > aliases && strcmp(alias[-1].verb, alias->verb) == 0 && alias[-1].typed[1] == alias->typed[1] &&
	       alias->typed[1] != '-';
}

static size_t count_options(const struct argp_option *options)
{
	size_t n = 0;

	while (options && (options[n].name || options[n].key || options[n].doc))
		n++;
	return n;
}

int aliases_init(const char *verb, const struct argp *argp, struct aliased *ret)
{
	size_t n = count_options(argp->options);
	struct aliased aliased = { .verb = verb, .argp = argp };

	aliased.options = calloc(n + N_ELEMENTS(aliases), sizeof *aliased.options);
	if (!aliased.options)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		aliased.options[i] = argp->options[i];
	for (size_t i = 0; i < n; i++)
		if (aliased.options[i].flags & OPTION_FILTER)
			aliased.options[i].flags |= OPTION_HIDDEN;
	for (const struct alias *alias = aliases; alias->verb; alias++) {
		char *name = is_of(alias, verb) ? long_name(alias) : NULL;

		if (!is_of(alias, verb) || is_twin(alias))
			continue;
		if (!name && alias->typed[1] == '-') {
			aliases_done(&aliased);
			return -ENOMEM;
		}
		aliased.options[n++] = (struct argp_option){
			name, key_of(alias), strstr(alias->typed, " X") ? "X" : NULL, OPTION_HIDDEN, NULL, 0
		};
	}
	if (n == 0)
		free(TAKE(aliased.options)); /* argp never frees its copy of an empty list */
	*ret = aliased;
	return 0;
}

void aliases_done(struct aliased *self)
{
	size_t n = self->options ? count_options(self->argp->options) : 0;

	for (size_t i = n; self->options && (self->options[i].name || self->options[i].key); i++)
		free((char *)self->options[i].name);
	free(self->options);
	*self = (struct aliased){ 0 };
}

/* ---- Meaning ---- */

static const struct argp_option *option_named(const struct argp_option *options, const char *name, size_t n_name)
{
	size_t n = count_options(options);

	for (size_t i = 0; i < n; i++)
		if (options[i].name && strlen(options[i].name) == n_name && strncmp(options[i].name, name, n_name) == 0)
			return &options[i];
	return NULL;
}

static bool next_is_number(const struct argp_state *state)
{
	return state->next < state->argc && isdigit((unsigned char)state->argv[state->next][0]);
}

static const struct alias *alias_of(const struct aliased *self, int key, const struct argp_state *state)
{
	for (const struct alias *alias = aliases; alias->verb; alias++)
		if (is_of(alias, self->verb) && key_of(alias) == key && (!wants_number(alias) || next_is_number(state)))
			return alias;
	return NULL;
}

static error_t parse_alias(const struct aliased *self, const struct alias *alias, char *argument,
			   struct argp_state *state)
{
	const char *means = alias->means, *value = strchr(means, '=');
	const struct argp_option *option;

	if (!means[0])
		return 0;
	if (wants_number(alias))
		argument = state->argv[state->next++];
	if (means[0] != '-')
		return self->argp->parser(ARGP_KEY_ARG, argument, state);
	option = option_named(self->argp->options, means + 2, value ? (size_t)(value - means - 2) : strlen(means + 2));
	if (!option)
		return ARGP_ERR_UNKNOWN;
	return self->argp->parser(option->key, value ? (char *)value + 1 : argument, state);
}

/* Find the verb's option for a word like "-p", "--pid" or "--pid=4242". */
static const struct argp_option *option_typed(const struct aliased *self, const char *word)
{
	size_t n = count_options(self->options);

	if (word[0] != '-' || word[1] == '\0')
		return NULL;
	if (word[1] == '-')
		return option_named(self->options, word + 2, strcspn(word + 2, "="));
	for (size_t i = 0; i < n && word[2] == '\0'; i++)
		if (self->options[i].key == word[1])
			return &self->options[i];
	return NULL;
}

/* As getopt_long(3) does, by the beginning of a name. */
static const struct argp_option *option_begun_in(const struct argp_option *options, const char *word)
{
	size_t n = count_options(options), n_name = strcspn(word, "=");

	for (size_t i = 0; i < n && strncmp(word, "--", 2) == 0; i++)
		if (options[i].name && strncmp(options[i].name, word + 2, n_name - 2) == 0)
			return &options[i];
	return NULL;
}

/* Find the option of a word by its name or by the beginning of its name. @common: of all verbs. */
static const struct argp_option *option_begun(const struct aliased *self, const struct argp_option *common,
					      const char *word)
{
	const struct argp_option *option = option_typed(self, word);

	if (!option)
		option = option_begun_in(self->options, word);
	return option ? option : option_begun_in(common, word);
}

static const char *near_option(const struct aliased *self, const char *word)
{
	CLEANUP(freep) char *typed = strndup(word + 2, strcspn(word + 2, "="));
	size_t n = count_options(self->options);

	for (size_t i = 0; i < n && typed; i++)
		if (self->options[i].name && name_is_near(typed, self->options[i].name))
			return self->options[i].name;
	return NULL;
}

const char *aliases_suggest(const struct aliased *self, const struct argp_option *common, char *const *words,
			    int n_words, bool in_order, const char **typed)
{
	for (int i = 0; i < n_words && strcmp(words[i], "--") != 0; i++) {
		const struct argp_option *option = option_begun(self, common, words[i]);
		const char *near = NULL;

		if (words[i][0] != '-' && in_order)
			return NULL;
		if (option) {
			i += option->arg && !(option->flags & OPTION_ARG_OPTIONAL) && !strchr(words[i], '=');
			continue;
		}
		if (strncmp(words[i], "--", 2) == 0)
			near = near_option(self, words[i]);
		if (near) {
			*typed = words[i];
			return near;
		}
	}
	return NULL;
}

/* Reject an option as the argument of the option before it: probably a mistake. */
static void check_swallowed(const struct aliased *self, const char *argument, struct argp_state *state)
{
	const char *before = state->next >= 2 ? state->argv[state->next - 2] : "";

	if (argument && state->next >= 2 && state->argv[state->next - 1] == argument && before[0] == '-' &&
	    option_typed(self, argument))
		argp_error(state, "%s needs a value, and %s is an option: write %s%s%s to use it as the value", before,
			   argument, before, before[1] == '-' ? "=" : "", argument);
}

/* argp's own keys are larger. */
static bool is_option(int key)
{
	return key > 0 && key < ARGP_KEY_ARGS;
}

error_t aliases_parse(const struct aliased *self, int key, char *argument, struct argp_state *state)
{
	const struct alias *alias = alias_of(self, key, state);

	if (is_option(key))
		check_swallowed(self, argument, state);
	if (alias)
		return parse_alias(self, alias, argument, state);
	return self->argp->parser(key, argument, state);
}

/* ---- Help ---- */

static void put_means(const struct alias *alias, FILE *out)
{
	if (alias->means[0])
		fprintf(out, " (%s)", alias->means);
	else
		fputs(" (always on)", out);
}

/* "Filters: --since, --until", explained elsewhere once for all verbs. */
static size_t put_filters(const struct argp_option *options, FILE *out)
{
	size_t n_filters = 0;

	for (size_t i = 0, n = count_options(options); i < n; i++)
		if ((options[i].flags & OPTION_FILTER) && !(options[i].flags & OPTION_ALIAS))
			fprintf(out, "%s--%s", n_filters++ > 0 ? ", " : "Filters: ", options[i].name);
	if (n_filters > 0)
		fputs("; probing help filters explains them.", out);
	return n_filters;
}

static char *help_of(const struct aliased *self, bool with_filters)
{
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes, n = 0, n_filters = 0;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return NULL;
	if (with_filters)
		n_filters = put_filters(self->argp->options, out);
	for (const struct alias *alias = aliases; alias->verb; alias++) {
		if (!is_of(alias, self->verb))
			continue;
		fprintf(out, "%s%s",
			n++ > 0         ? ", "
			: n_filters > 0 ? "\n\nOptions of other tools: "
					: "Options of other tools: ",
			alias->typed);
		put_means(alias, out);
	}
	if (n > 0)
		fputs(".", out);
	if (fclose(out) != 0 || n + n_filters == 0)
		return NULL;
	return TAKE(text);
}

char *aliases_help(const struct aliased *self)
{
	return help_of(self, false);
}

char *aliases_help_with_filters(const struct aliased *self)
{
	return help_of(self, true);
}
