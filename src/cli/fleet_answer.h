/* SPDX-License-Identifier: MIT */
/* fleet_answer.h - an answer of ClickHouse as a table in memory, so that the formats of SQL print it as any other. */
#ifndef PROBING_CLI_FLEET_ANSWER_H
#define PROBING_CLI_FLEET_ANSWER_H

#include <sqlite3.h>

#include "src/sql/sql.h"

#define FLEET_ANSWER_FORMAT "TabSeparatedWithNamesAndTypes"

struct fleet_answer {
	sqlite3 *db;
	sqlite3_stmt *insert;
	char *line; /* begun */
	size_t n, allocated;
	char *names; /* the first line */
	char *types; /* the second line */
};

/* All: negative errno: -EBADMSG the answer has another format; -E2BIG more columns than SQLite has; -ENOMEM. */
int fleet_answer_init(struct fleet_answer *answer);
/* @data: the answer. Pieces end anywhere. */
int fleet_answer_take(void *data, const void *bytes, size_t n_bytes);
int fleet_answer_finish(struct fleet_answer *answer);
void fleet_answer_done(struct fleet_answer *answer);

/* fleet_answer_print - to stdout. Returns an exit status. */
int fleet_answer_print(const struct fleet_answer *answer, const struct sql_rules *rules);

#endif
