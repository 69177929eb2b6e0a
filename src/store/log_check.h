/* SPDX-License-Identifier: MIT */
/* log_check.h - whether a SQLite log (NAME-wal) has a complete transaction. Private to the store. */
#ifndef PROBING_STORE_LOG_CHECK_H
#define PROBING_STORE_LOG_CHECK_H

/*
 * log_has_transaction - look for the first frame that ends a transaction, in a log that nobody writes.
 * @fd: of the log; its bytes may be anything. Reads up to that frame, or to the first invalid one.
 * Returns 1, or 0: there is none, or no valid header. Errors: of pread(2).
 * Source: sqlite.org/walformat.html; SQLite 3.40, wal.c, walIndexRecover().
 */
int log_has_transaction(int fd);

#endif
