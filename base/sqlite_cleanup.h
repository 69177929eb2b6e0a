/* SPDX-License-Identifier: MIT */
/* sqlite_cleanup.h - CLEANUP for SQLite's handles. Inline functions only: base itself does not link SQLite. */
#ifndef PROBING_BASE_SQLITE_CLEANUP_H
#define PROBING_BASE_SQLITE_CLEANUP_H

#include <sqlite3.h>

#include "base/util.h"

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)
DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

#endif
