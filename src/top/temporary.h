/* SPDX-License-Identifier: MIT */
/* temporary.h - a recording file that nobody else sees. Private. */
#ifndef PROBING_TOP_TEMPORARY_H
#define PROBING_TOP_TEMPORARY_H

#include "src/store/store.h"

/*
 * temporary_store - a store, and a reader of what is committed to it.
 * Its files have no name any more when this returns, so that nothing is left behind
 * however this process ends. They lie in $TMPDIR, /tmp or /dev/shm, whichever can be written.
 * @ret_reader: ended with sqlite3_close().
 * Errors: what private_folder_make(), store_create() and store_open_reader() report.
 */
int temporary_store(struct store **ret_store, sqlite3 **ret_reader);

#endif
