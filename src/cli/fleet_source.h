/* SPDX-License-Identifier: MIT */
/* fleet_source.h - samples of a fleet (src/fleet/read.h), where a verb takes a recording: clickhouse://USER@HOST:PORT/DATABASE,
 * with ?job=NAME&host=GLOBS&rank=LIST&since=TIME&until=TIME&where=CONDITION behind it.
 */
#ifndef PROBING_CLI_FLEET_SOURCE_H
#define PROBING_CLI_FLEET_SOURCE_H

#include <stdio.h>

#include "src/cli/live_recording.h"
#include "src/cli/view.h"
#include "src/fleet/fleet.h"
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

/*
 * fleet_source_open - connect to a fleet, and find the runs of a view.
 * @ret: ended with fleet_source_close(), also after a failure. Borrows the view.
 * Returns 0, or prints a message and returns an exit status.
 */
struct fleet_source;
int fleet_source_open(const char *address, const struct view *view, struct fleet_source **ret);
void fleet_source_close(struct fleet_source *source);
struct fleet *fleet_source_fleet(struct fleet_source *source);
const struct fleet_selection *fleet_source_selection(const struct fleet_source *source);
/* The sentence for an error of the fleet; for return statements. */
int fleet_source_fail(const struct fleet_source *source, int error);

/*
 * fleet_source_ranks - what each rank did. Of the view, the fleet's options, times and the condition matter.
 * Returns 0, or prints a message and returns an exit status.
 */
int fleet_source_ranks(const char *address, const struct view *view, const struct fleet_rank_visitor *visitor);

/* fleet_source_ask - print the answer to a statement of ClickHouse's SQL. Returns an exit status. */
int fleet_source_ask(const char *address, const char *sql, const struct sql_rules *rules);

#endif
