/* SPDX-License-Identifier: MIT */
/* names.c - see names.h. */
#include "src/export/names.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"

struct name {
	uint32_t number;
	char text[];
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* NULL: out of memory. */
static struct name *name_new(const char *from)
{
	struct name *name = malloc(sizeof *name + strlen(from) * 3 + 4);
	size_t n = 0;

	if (!name)
		return NULL;
	for (int32_t c; (c = text_next(&from)) != 0;)
		n += text_encode(c, name->text + n);
	name->text[n] = '\0';
	return name;
}

int names_add(struct names *names, const char *text, uint32_t *ret)
{
	CLEANUP(freep) struct name *name = name_new(text ?: "");
	struct name **found;

	if (!name || grow(&names->texts, names->n, &names->allocated, sizeof *names->texts) < 0)
		return -ENOMEM;
	found = tsearch(name, &names->tree, compare_names);
	if (!found)
		return -ENOMEM;
	if (*found == name) {
		name->number = (uint32_t)names->n;
		names->texts[names->n++] = name->text;
		name = NULL; /* the tree owns it */
	}
	*ret = (*found)->number;
	return 0;
}

void names_done(struct names *names)
{
	tdestroy(names->tree, free);
	free(names->texts);
	*names = (struct names){ 0 };
}
