/* SPDX-License-Identifier: MIT */
/* metric_table.h - tables of metrics whose older rows are in blocks. Private.
 *
 * A recorder puts rows into plain tables (usage.c), so that any SQLite tool reads the newest ones. Once a table has got many, those
 * older than a minute move into blocks (metric_block.h), which take a tenth of the space.
 */
#ifndef PROBING_STORE_METRIC_TABLE_H
#define PROBING_STORE_METRIC_TABLE_H

#include "src/store/store_private.h"

/* metric_pack_due - move rows of the tables that have got many since the last time. In a transaction. */
int metric_pack_due(struct store *store);

/* metric_pack_all - move all rows of tables that have many: the file is complete. In a transaction. 1: there were some; negative errno. */
int metric_pack_all(struct store *store);

/*
 * metric_drop_blocks - drop blocks whose rows are all from before a time. In a transaction. @seconds: since 1970.
 * A file of a version without blocks has none.
 */
int metric_drop_blocks(struct store *store, double seconds);

/* metric_first_block - the time up to which the block goes that ends first. False: there is none. Negative errno. */
int metric_first_block(struct store *store, bool *ret, double *ret_last);

/* metric_register - metric_block_error(rows, data), as row_block_error() of row_block. SQLite's code. */
int metric_register(sqlite3 *db);

#endif
