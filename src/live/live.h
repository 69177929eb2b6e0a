/* SPDX-License-Identifier: MIT */
/* live.h - a running process and its machine as tables, as of the query.
 *
 * Nothing is kept. A statement reads a whole table on first use, and sees the same rows until it
 * ends: a join does not read a thread once for each joined row.
 * A new table is one file here with its line in tables.c, and its description in the catalogue.
 */
#ifndef PROBING_LIVE_H
#define PROBING_LIVE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct live;
struct live_rows;

/* The reader of a table's rows. Its description and columns are in src/catalogue/tables. */
struct live_table {
	const char *schema; /* "main", or the name of a database that is attached for it */
	const char *name;
	/*
	 * Put a value for each column of each row (rows.h). Negative errno if there is no
	 * data; running out of memory is recorded in the rows.
	 */
	int (*read)(struct live *live, struct live_rows *rows);
	bool outlives_process; /* can be read after the process has ended */
};
extern const struct live_table *const live_tables[]; /* ends with NULL */

struct live_options {
	pid_t pid;
	/* Called with the reason if a table is incomplete; NULL: none. */
	void (*note)(void *data, const char *sentence);
	/*
	 * The rows of a table of probes inside the process, as the agent sends them (parse_next_cells()); NULL: there are none.
	 * @why: LIVE_WHY_BYTES; on failure a sentence. Negative errno.
	 */
	int (*probes)(void *data, pid_t pid, const char *table, char **ret, size_t *ret_bytes, char *why);
	void *data;
};
enum { LIVE_WHY_BYTES = 256 };

/*
 * live_open - put all tables into a connection; of a process that has ended its rings only (src/ring).
 * @db:  of the caller's, in memory; databases are attached to it. Closed before live_close().
 * @ret: ended with live_close().
 * Errors: -ESRCH no such process, and no rings of an ended one; -ENOMEM; -EINVAL SQLite refuses (its message says why).
 */
int live_open(sqlite3 *db, const struct live_options *options, struct live **ret);
void live_close(struct live *live);
void live_closep(struct live **live);

/* Whether the process has ended, and only its rings are left. */
bool live_has_ended(const struct live *live);

/* Why a table could not be read the last time one was; 0: it could. The statement failed with the sentence. */
int live_error(const struct live *live);

#endif
