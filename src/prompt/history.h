/* SPDX-License-Identifier: MIT */
/* history.h - the history of a prompt, kept between sessions. */
#ifndef PROBING_PROMPT_HISTORY_H
#define PROBING_PROMPT_HISTORY_H

#include <histedit.h>

#include "src/prompt/prompt.h" /* history_path() */

/*
 * history_load - read a history; a missing file is an empty one.
 * Errors: -EPERM another user owns file or folder, or may write to the folder; -EINVAL it is no regular file;
 * those of place_find(); -EBADMSG.
 */
int history_load(History *history, const char *path);

/* Save it: readable and writable for the user alone. The file appears complete. Errors: as above, those of
 * new_file_open(). */
int history_save(History *history, const char *path);

#endif
