/* SPDX-License-Identifier: MIT */
/* format_list.c - see format_list.h. */
#include "src/cli/format_list.h"

#include <stdlib.h>

bool format_list_begin(struct format_list *list, const char *before)
{
	*list = (struct format_list){ 0 };
	list->out = open_memstream(&list->text, &list->n_bytes);
	if (!list->out)
		return false;
	fputs(before, list->out);
	return true;
}

void format_list_add(struct format_list *list, const char *name, const char *summary)
{
	fprintf(list->out, "%s %s (%s)", list->has_some ? "," : "", name, summary);
	list->has_some = true;
}

char *format_list_end(struct format_list *list, const char *after)
{
	fputs(after, list->out);
	if (fclose(list->out) == 0)
		return list->text;
	free(list->text);
	return NULL;
}
