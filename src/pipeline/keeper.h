/* SPDX-License-Identifier: MIT */
/* keeper.h - a confined process that has one worker at a time, and replaces it on request. Private.
 *
 * A recorder that has dropped its privileges cannot start processes. Workers parse crafted files and die of some;
 * their keeper parses nothing.
 */
#ifndef PROBING_KEEPER_H
#define PROBING_KEEPER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/confined.h"

/* A byte requests a new worker of a keeper. The answer is this and the worker's socket. */
struct keeper_answer {
	int32_t error;        /* 0, or the reason of a failure */
	int32_t filter_error; /* 0, or why it works without a seccomp filter */
};

struct keeper_kind {
	int socket_type; /* SOCK_STREAM or SOCK_SEQPACKET, of the sockets of workers */
	unsigned long long max_memory, max_file, max_files;
	void (*run_worker)(int socket); /* when it returns the worker ends */
};

/* keeper_run - work as a keeper until the other end of the socket is closed; for struct confinement. */
void keeper_run(int socket, int filter_error, const struct keeper_kind *kind);

/* keeper_start - start one, called so; its run() must call keeper_run(). See confined_start(). */
int keeper_start(const char *name, void (*run)(int socket, int filter_error), int *ret_socket, pid_t *ret_pid);

/* keeper_ask - make a keeper start a worker. @ret: its socket. Errors: those of the keeper; -EPIPE; -ETIMEDOUT. */
int keeper_ask(int keeper_socket, int *ret_filter_error, int *ret);

#endif
