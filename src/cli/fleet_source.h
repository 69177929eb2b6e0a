/* SPDX-License-Identifier: MIT */
/* fleet_source.h - samples of a fleet (src/fleet/read.h), where a verb takes a recording: clickhouse://USER@HOST:PORT/DATABASE,
 * with ?job=NAME&host=GLOBS&rank=LIST&since=TIME&until=TIME&where=CONDITION behind it.
 */
#ifndef PROBING_CLI_FLEET_SOURCE_H
#define PROBING_CLI_FLEET_SOURCE_H

#include <stdio.h>

#include "src/cli/live_recording.h"
#include "src/cli/view.h"
#include "src/sql/sql.h"

/* Whether a word is such an address. */
bool fleet_source_is_one(const char *word);

/* The address without its query, for messages. @to: truncated. */
void fleet_source_name(const char *address, char *to, size_t n_bytes);

/*
 * fleet_source_read - fetch the part of a view into a temporary recording. The view's times, condition and GIL filter are
 * applied by the servers.
 * @ret: ended with live_recording_done(). Returns 0, or prints a message and returns an exit status.
 */
int fleet_source_read(const char *address, const struct view *view, struct live_recording *ret);

/* fleet_source_ask - print the answer to a statement of ClickHouse's SQL. Returns an exit status. */
int fleet_source_ask(const char *address, const char *sql, const struct sql_rules *rules);

#endif
