/* SPDX-License-Identifier: MIT */
/* temporary.h - a private temporary recording file. Private. */
#ifndef PROBING_TOP_TEMPORARY_H
#define PROBING_TOP_TEMPORARY_H

#include "src/store/store.h"

/*
 * temporary_store - a store, and a reader of its committed rows.
 * Its files have no name any more when this returns, so that none remains after any end of this
 * process. They are in $TMPDIR, /tmp or /dev/shm, the first that is writable.
 * @ret_reader: ended with sqlite3_close().
 * Errors: what private_folder_make(), store_create() and store_open_reader() report.
 */
int temporary_store(struct store **ret_store, sqlite3 **ret_reader);

#endif
