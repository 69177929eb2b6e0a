/* SPDX-License-Identifier: MIT */
/* serve.h - recordings and processes over HTTP, for their user on this machine.
 *
 * Each answer is made by a verb of this program in a process of its own, with limits of time and size.
 * A query that crashes, hangs or grows ends alone. Only the targets given at the start can be asked about.
 */
#ifndef PROBING_SERVE_H
#define PROBING_SERVE_H

#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { SERVE_PYTHON_BYTES = 16, SERVE_MIN_TOKEN = 16, SERVE_MAX_TOKEN = 256 };

/* Strings are borrowed until serve_close(). */
struct serve_target {
	const char *name; /* as the user gave it, and as requests name it */
	const char *word; /* the same for a verb: a PID, or a path from "/" */
	pid_t pid;        /* 0: a recording, or a fleet */
	bool is_fleet;    /* the address of a fleet's server */
	int pidfd;        /* readable once the process has ended; -1: a recording */
	const char *command;
	char python[SERVE_PYTHON_BYTES]; /* "3.11"; "" unknown */
};

struct serve_options {
	const struct serve_target *targets; /* at least one, but for is_cluster */
	size_t n_targets;
	const char *socket; /* path of a unix socket to create; NULL: TCP on 127.0.0.1 */
	uint16_t port;      /* 0: any free one */
	bool is_cluster; /* for other machines, at address, of which it needs the token; no link, and no target is needed */
	struct sockaddr_storage address;  /* IPv4 or IPv6, with its port */
	const char *certificate, *key;    /* PEM: TLS; NULL: none, in the clear */
	const char *token_file, *ca_file; /* with which hosts below are asked from here; ca_file NULL: the system's */
	const char *token;   /* that API requests may send, SERVE_MIN_TOKEN to SERVE_MAX_TOKEN bytes; NULL: none */
	const char *hosts;   /* whose ranks are shown, as of probing cluster; NULL: those of the processes served */
	const char *ssh;     /* the command that reaches them; NULL: the default */
	const char *remote;  /* probing there; NULL: the default */
	double timeout_s;    /* of a query */
	uint64_t max_rows;   /* of each result */
	uint64_t max_memory; /* bytes that a query may take */
	bool allows_eval;    /* Python code may be run in the processes */
	bool has_html;       /* flame graphs can be written as HTML */
};

struct serve;

/*
 * serve_open - listen and answer, in threads that block all signals.
 * @options: borrowed until serve_close().
 * @ret:     ended with serve_close().
 * Errors: -EADDRINUSE the port or the path is taken; -EOPNOTSUPP built without libmicrohttpd; -ENOPKG it is not installed;
 *         -EPROTONOSUPPORT it has no TLS; -EKEYREJECTED the certificate and the key are none, or do not match; -ENOMEM; what socket(2),
 *         bind(2), listen(2) and getrandom(2) report.
 */
int serve_open(const struct serve_options *options, struct serve **ret);

/* The link to open: with a token that is good for one browser, or the path of the socket. Borrowed. */
const char *serve_link(const struct serve *serve);

/* serve_run - answer until one of these signals, which the caller has blocked. Negative errno of sigtimedwait(2). */
int serve_run(struct serve *serve, const sigset_t *ends);

/* End all queries and connections, and remove the socket. NULL is harmless. */
void serve_close(struct serve *serve);
void serve_closep(struct serve **serve);

#endif
