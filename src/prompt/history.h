/* SPDX-License-Identifier: MIT */
/* history.h - what was typed at the prompt, kept from one time to the next. */
#ifndef PROBING_PROMPT_HISTORY_H
#define PROBING_PROMPT_HISTORY_H

#include <histedit.h>

/*
 * history_path - ${XDG_STATE_HOME:-~/.local/state}/probing/NAME.
 * Folders that are missing are made, for the user alone.
 * Errors: -ENOENT no home is known; what mkdir(2) reports; -ENOMEM.
 */
int history_path(const char *name, char **ret);

/*
 * history_load - read a kept history; a file that is not there yet is an empty one.
 * Errors: -EPERM file or folder belong to somebody else, or others may write to the folder; -EINVAL it is no regular file;
 * those of place_find(); -EBADMSG.
 */
int history_load(History *history, const char *path);

/* Keep it: readable and writable for the user alone. The file appears whole. Errors: as above, those of new_file_open(). */
int history_save(History *history, const char *path);

#endif
