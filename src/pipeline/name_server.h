/* SPDX-License-Identifier: MIT */
/* name_server.h - the processes that read foreign files for the recorder. Private.
 *
 * The keeper has a worker: the process that parses. It starts a new one where that one has died of a file, and
 * ends it, and itself, when the recorder is gone. The fetcher asks debuginfod servers, which
 * takes the network and the user's own cache.
 */
#ifndef PROBING_NAME_SERVER_H
#define PROBING_NAME_SERVER_H

#include <stdint.h>
#include <sys/types.h>

/* What the keeper answers to a byte, which asks for a new worker: this, and the worker's socket. */
struct name_server_answer {
	int32_t error;        /* 0, or why there is none */
	int32_t filter_error; /* 0, or why it works without a seccomp filter */
};

/* See confined_start(). */
int name_keeper_start(int *ret_socket, pid_t *ret_pid);
int name_fetcher_start(int *ret_socket, pid_t *ret_pid);

/* name_worker_confine - the filter of the calling process, which must be a worker. Negative errno. */
int name_worker_confine(void);

/* The worker's work: answer what comes through a socket, until its other end is closed. */
void name_worker_run(int socket);

#endif
