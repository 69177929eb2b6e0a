/* SPDX-License-Identifier: MIT */
/* import_list.h - the files that probing import makes one recording of: one, several, or those of a folder. */
#ifndef PROBING_CLI_IMPORT_LIST_H
#define PROBING_CLI_IMPORT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/import/import.h"

/* ---- input.c: a whole file, or stdin, in memory, up to a limit ---- */

struct input {
	uint8_t *bytes;
	size_t n_bytes, allocated;
	uint64_t modified_ns; /* CLOCK_REALTIME */
};

/*
 * input_read - read all bytes. @path: "-" is stdin. @ret: ended with input_done(), also after an error.
 * Errors: -EISDIR; -ENODEV: a device, which may be endless; -E2BIG more than input_most(); -ENOMEM; what open(2) and
 * read(2) report.
 */
int input_read(const char *path, struct input *ret);
/*
 * input_most - the limit in bytes: 8 GiB, half of this machine's memory, a quarter of ulimit -v. Converting
 * them takes memory, too.
 */
uint64_t input_most(void);
void input_done(struct input *input);

/* ---- import_list.c ---- */

struct import_list {
	char **paths; /* owned */
	size_t n, allocated, next;
	bool is_folder;
	size_t n_other;                  /* files of the folder that are of another format */
	const char *current;             /* the path that was read last; borrowed; NULL: none was */
	struct input input;              /* its bytes */
	bool is_read;                    /* the next one's bytes are there already */
	const struct importer *importer; /* that reads them */
	bool (*keep_going)(void *data, const struct import_progress *progress);
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
