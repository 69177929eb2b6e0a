/* SPDX-License-Identifier: MIT */
/* private_folder.h - a folder that only our user can enter; it is removed with its contents. */
#ifndef PROBING_BASE_PRIVATE_FOLDER_H
#define PROBING_BASE_PRIVATE_FOLDER_H

#include "base/place.h"

struct private_folder { /* zeros: none, which is harmless to remove */
	int parent, fd; /* O_PATH */
	char *name;     /* in parent; NULL: there is none */
	char *path;     /* as it was when it was made */
	struct stat st;
};

/*
 * private_folder_make - create a folder that only our user can enter, under an unpredictable name.
 * @parent: a folder's descriptor; borrowed for the call.
 * @prefix: of the name.
 * Errors: -PLACE_ECHANGED another process replaced it; -ENOMEM; what mkdirat(2) and getrandom(2) report.
 */
int private_folder_make(int parent, const char *prefix, struct private_folder *ret);

/* Remove it with the files in it. Zeros afterwards. */
void private_folder_remove(struct private_folder *folder);

#endif
