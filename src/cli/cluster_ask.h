/* SPDX-License-Identifier: MIT */
/* cluster_ask.h - SQL over what was gathered: a database in memory. */
#ifndef PROBING_CLI_CLUSTER_ASK_H
#define PROBING_CLI_CLUSTER_ASK_H

#include <argp.h>

#include "src/cluster/cluster.h"
#include "src/sql/sql.h"

/* ask_open - give a cluster a database. Returns 0, or prints a message and returns an exit status. */
int ask_open(struct cluster *cluster);
/* End both. */
void ask_close(struct cluster *cluster);

/*
 * ask - add cluster.nodes and the functions of SQL, then print the answer to a statement, which can only read.
 * Returns an exit status.
 */
int ask(struct cluster *cluster, bool expects_all, const char *sql, const struct sql_rules *rules);

/* -f; an unknown format is a usage error. */
void ask_parse_format(struct argp_state *state, const char *name, struct sql_rules *rules);

/* ask_write_document - the answer to another machine, on stdout. Returns an exit status. */
int ask_write_document(const struct cluster *cluster);

#endif
