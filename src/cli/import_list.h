/* SPDX-License-Identifier: MIT */
/* import_list.h - the files that probing import makes one recording of: one, several, or those of a folder. */
#ifndef PROBING_CLI_IMPORT_LIST_H
#define PROBING_CLI_IMPORT_LIST_H

#include "src/cli/input.h"
#include "src/import/import.h"

struct import_list {
	char **paths; /* owned */
	size_t n, allocated, next;
	bool is_folder;
	size_t n_other;                  /* files of the folder that are of another format */
	const char *current;             /* the path that was read last; borrowed; NULL: none was */
	struct input input;              /* its bytes */
	bool is_read;                    /* the next one's bytes are there already */
	const struct importer *importer; /* that reads them */
	bool (*keep_going)(void *data, uint64_t n);
	void *data;
};

/*
 * import_list_add - a file, or the files of a folder by name, without hidden ones.
 * Errors: -ENOMEM; those of opening the folder. A path that is none is a file: its reader says so.
 */
int import_list_add(struct import_list *list, const char *path);
void import_list_done(struct import_list *list);

/* import_list_next - of import_files; @data: the list. Files of a folder that are of another format are counted only. */
int import_list_next(void *data, struct import_input *ret);

#endif
