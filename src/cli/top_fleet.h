/* SPDX-License-Identifier: MIT */
/* top_fleet.h - the live view of a fleet: the last samples that its hosts have sent. */
#ifndef PROBING_CLI_TOP_FLEET_H
#define PROBING_CLI_TOP_FLEET_H

#include "src/cli/top_options.h"
#include "src/cli/top_run.h"

struct top_fleet;

/*
 * top_fleet_open - connect.
 * @session: gets the functions that fetch samples.
 * @ret: ended with top_fleet_close(), also after a failure.
 * Returns 0, or prints a message and returns an exit status.
 */
int top_fleet_open(const struct top_arguments *arguments, struct top_session *session, struct top_fleet **ret);
void top_fleet_close(struct top_fleet *fleet);

/* top_fleet_fail - the sentence for an error that ended the view; for return statements. */
int top_fleet_fail(const struct top_fleet *fleet, int error);

#endif
