/* SPDX-License-Identifier: MIT */
/* name_server.h - the processes that read foreign files for the recorder. Private.
 *
 * The keeper (keeper.h) starts a worker: the process that parses. It starts a new one after a worker has died of a
 * file, and ends it, and itself, when the recorder has ended. The fetcher downloads from debuginfod servers, which
 * needs the network and the user's own cache.
 */
#ifndef PROBING_NAME_SERVER_H
#define PROBING_NAME_SERVER_H

#include <stdint.h>
#include <sys/types.h>

/* See confined_start(). */
int name_keeper_start(int *ret_socket, pid_t *ret_pid);
int name_fetcher_start(int *ret_socket, pid_t *ret_pid);

/* name_worker_confine - the filter of the calling process, which must be a worker. Negative errno. */
int name_worker_confine(void);

/* The worker's loop: answer the requests of a socket, until its other end is closed. */
void name_worker_run(int socket);

#endif
