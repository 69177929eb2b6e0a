/* SPDX-License-Identifier: MIT */
/* cluster_record_hosts.h - ranks of several machines in one recording. */
#ifndef PROBING_CLI_CLUSTER_RECORD_HOSTS_H
#define PROBING_CLI_CLUSTER_RECORD_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

struct cluster_options;

/*
 * cluster_record_hosts - measure the clocks of all hosts, record on all of them at once, and merge.
 * @words:   options of probing record, end with NULL; NULL: none. -o names the recording here, else cluster.db.
 * @is_drawn: -o names a picture instead, else cluster.svg; the recording stays beside it. Then it returns after a failure only.
 * Returns an exit status.
 */
int cluster_record_hosts(struct cluster_options *options, char **words, bool is_drawn);

/*
 * cluster_record_for_another - the other side: record into a temporary file, and print it.
 * @pids: "812,813". @words: encoded; NULL: none. @start_ns: CLOCK_REALTIME; 0: at once.
 * Returns an exit status.
 */
int cluster_record_for_another(const char *pids, char **words, uint64_t start_ns);

#endif
