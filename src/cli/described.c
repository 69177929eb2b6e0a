/* SPDX-License-Identifier: MIT */
/* described.c - see described.h. */
#include "src/cli/described.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { MAX_COMMON = 8 }; /* of cli_common_options */

static bool is_end(const struct argp_option *row)
{
	return !row->name && !row->key && !row->doc;
}

static void add_names(struct described_option *option, const struct argp_option *row)
{
	size_t n_names = 0, n_letters = strlen(option->letters);

	while (n_names < MAX_OPTION_NAMES && option->names[n_names])
		n_names++;
	if (row->name && n_names < MAX_OPTION_NAMES)
		option->names[n_names] = row->name;
	if (row->key > 0 && row->key < 128 && isgraph(row->key) && n_letters < MAX_OPTION_NAMES)
		option->letters[n_letters] = (char)row->key;
}

static void add(struct described *self, const struct argp_option *row)
{
	struct described_option *option = &self->options[self->n++];

	*option = (struct described_option){ .argument = row->arg,
					     .may_lack_argument = row->flags & OPTION_ARG_OPTIONAL,
					     .row = row };
	add_names(option, row);
}

static int compare(const void *a, const void *b)
{
	const struct described_option *x = a, *y = b;
	const char *x_name = x->names[0] ? x->names[0] : x->letters, *y_name = y->names[0] ? y->names[0] : y->letters;

	return strcmp(x_name, y_name);
}

int described_init(const struct verb *verb, struct described *ret)
{
	struct described self = { .verb = verb };
	const struct argp_option *rows = verb->argp->options;
	size_t n = 0;

	while (rows && !is_end(&rows[n]))
		n++;
	self.options = calloc(n + MAX_COMMON, sizeof *self.options);
	if (!self.options)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		bool is_alias = rows[i].flags & OPTION_ALIAS;

		if (rows[i].flags & OPTION_HIDDEN || (!rows[i].name && !rows[i].key))
			continue;
		if (is_alias && self.n > 0)
			add_names(&self.options[self.n - 1], &rows[i]);
		else
			add(&self, &rows[i]);
	}
	for (size_t i = 0; !is_end(&cli_common_options[i]); i++)
		if (!(cli_common_options[i].flags & OPTION_HIDDEN) && (i == 0 || verb->pages))
			add(&self, &cli_common_options[i]);
	qsort(self.options, self.n, sizeof *self.options, compare);
	*ret = self;
	return 0;
}

void described_done(struct described *self)
{
	free(self->options);
	*self = (struct described){ 0 };
}

char *described_text(const struct verb *verb, int key, const char *text)
{
	char *filtered;

	if (!verb->argp->help_filter)
		return text ? strdup(text) : NULL;
	filtered = verb->argp->help_filter(key, text, NULL);
	return filtered == text && text ? strdup(text) : filtered;
}

/* argp's text has the part before the options, '\v', and the part after them. */
char *described_before(const struct verb *verb)
{
	const char *doc = verb->argp->doc ? verb->argp->doc : "";
	CLEANUP(freep) char *text = strndup(doc, strcspn(doc, "\v"));

	return text ? described_text(verb, ARGP_KEY_HELP_PRE_DOC, text) : NULL;
}

char *described_after(const struct verb *verb)
{
	const char *doc = verb->argp->doc ? strchr(verb->argp->doc, '\v') : NULL;

	return described_text(verb, ARGP_KEY_HELP_POST_DOC, doc ? doc + 1 : NULL);
}
