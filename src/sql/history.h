/* history.h - what was typed at the prompt, kept from one time to the next. */
#ifndef PROBING_SQL_HISTORY_H
#define PROBING_SQL_HISTORY_H

#include <histedit.h>

/*
 * history_path - ${XDG_STATE_HOME:-~/.local/state}/probing/sql_history.
 * Folders that are missing are made, for the user alone.
 * Errors: -ENOENT no home is known; what mkdir(2) reports; -ENOMEM.
 */
int history_path(char **ret);

/* Read a kept history; a file that is not there yet is an empty one. */
int history_load(History *history, const char *path);

/* Keep it: readable and writable for the user alone. Negative errno. */
int history_save(History *history, const char *path);

#endif
