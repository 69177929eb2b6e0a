/* SPDX-License-Identifier: MIT */
/* hosts.h - the ranks of this machine, questions to other machines, and the options for both. */
#ifndef PROBING_CLI_CLUSTER_HOSTS_H
#define PROBING_CLI_CLUSTER_HOSTS_H

#include <argp.h>

#include "base/glob_list.h"
#include "src/cluster/cluster.h"

/* ---- ranks.c: the ranks of distributed jobs on this machine ---- */

/* Selection by the user. All zero: every rank on this machine. */
struct rank_selection {
	char *pattern; /* a part of the command line, or a glob of it; NULL: any */
	pid_t *pids;   /* these processes; owned */
	size_t n_pids, pids_allocated;
	pid_t launcher; /* it and its descendants; 0: any */
	char *job;      /* ranks of this job alone; NULL: any */
};

struct local_rank {
	pid_t pid, parent;
	struct rank_identity identity;
};

/*
 * ranks_find - the processes that are ranks now, in no order. A rank is the first Python process with its number: the
 * workers of its data loader inherit its environment, and a launcher may have a number of another kind.
 * With a selection, and if no selected process has a rank: all of them.
 * @ret: free(3) ends it; at most CLUSTER_MAX_RANKS.
 * @ret_hidden: processes that look like Python by their command line, and whose environment may not be read: they may be
 *   ranks.
 * Errors: -ENOMEM; what opening /proc reports.
 */
int ranks_find(const struct rank_selection *selection, struct local_rank **ret, size_t *ret_n, size_t *ret_hidden);

/* ---- hosts.c: shared options, and questions to other machines ---- */

enum {
	CLUSTER_OPTION_HOSTS = 0x600,
	CLUSTER_OPTION_HOSTS_FILE,
	CLUSTER_OPTION_SSH,
	CLUSTER_OPTION_PROBING,
	CLUSTER_OPTION_FAN_OUT,
	CLUSTER_OPTION_LAUNCHER,
	CLUSTER_OPTION_JOB,
	CLUSTER_OPTION_TIMEOUT,
	CLUSTER_OPTION_HOST_TIMEOUT,
	CLUSTER_OPTION_MATCHING,
	CLUSTER_OPTION_LOCAL,
	CLUSTER_OPTION_TOKEN_FILE,
	CLUSTER_OPTION_CA_FILE,
};

#define CLUSTER_DEFAULT_SSH "ssh -o BatchMode=yes -o ConnectTimeout=10"

#define CLUSTER_OPTION_ROWS                                                                                                                    \
	{ "pid", 'p', "PID,...", 0, "Select these processes of this machine", 0 },                                                             \
		{ "matching",                                                                                                                  \
		  CLUSTER_OPTION_MATCHING,                                                                                                     \
		  "PATTERN",                                                                                                                   \
		  0,                                                                                                                           \
		  "Select processes with this part of their command line",                                                                     \
		  0 },                                                                                                                         \
		{ "local", CLUSTER_OPTION_LOCAL, NULL, OPTION_HIDDEN, NULL, 0 },                                                               \
		{ "launcher", CLUSTER_OPTION_LAUNCHER, "PID", 0, "Select descendants of this process", 0 },                                    \
		{ "job", CLUSTER_OPTION_JOB, "NAME", 0, "Select ranks of this job, as the output names it", 0 },                               \
		{ "hosts",                                                                                                                     \
		  CLUSTER_OPTION_HOSTS,                                                                                                        \
		  "HOST,...",                                                                                                                  \
		  0,                                                                                                                           \
		  "Ask these machines instead of this one: by ssh, or https://NAME:PORT of probing serve --listen; node[01-16] means sixteen", \
		  0 },                                                                                                                         \
		{ "hosts-file",                                                                                                                \
		  CLUSTER_OPTION_HOSTS_FILE,                                                                                                   \
		  "FILE",                                                                                                                      \
		  0,                                                                                                                           \
		  "Read the hosts from FILE: the first word of each line; # begins a comment",                                                 \
		  0 },                                                                                                                         \
		{ "ssh",                                                                                                                       \
		  CLUSTER_OPTION_SSH,                                                                                                          \
		  "COMMAND",                                                                                                                   \
		  0,                                                                                                                           \
		  "Command to run a command on a host; %h is the host, else it is appended (default: " CLUSTER_DEFAULT_SSH                     \
		  ")",                                                                                                                         \
		  0 },                                                                                                                         \
		{ "token-file",                                                                                                                \
		  CLUSTER_OPTION_TOKEN_FILE,                                                                                                   \
		  "FILE",                                                                                                                      \
		  0,                                                                                                                           \
		  "For https: the servers' token, in the first line (default: PROBING_AUTH_TOKEN)",                                            \
		  0 },                                                                                                                         \
		{ "ca-file",                                                                                                                   \
		  CLUSTER_OPTION_CA_FILE,                                                                                                      \
		  "FILE",                                                                                                                      \
		  0,                                                                                                                           \
		  "For https: authorities of the servers' certificates, PEM (default: the system's)",                                          \
		  0 },                                                                                                                         \
		{ "remote-probing",                                                                                                            \
		  CLUSTER_OPTION_PROBING,                                                                                                      \
		  "PATH",                                                                                                                      \
		  0,                                                                                                                           \
		  "Path of probing on the hosts (default: probing)",                                                                           \
		  0 },                                                                                                                         \
		{ "fan-out", CLUSTER_OPTION_FAN_OUT, "N", 0, "Ask at most N hosts at once (default: 64)", 0 },                                 \
		{ "timeout", CLUSTER_OPTION_TIMEOUT, "TIME", 0, "Give up a rank after this time (default: 10s)", 0 },                          \
	{                                                                                                                                      \
		"host-timeout", CLUSTER_OPTION_HOST_TIMEOUT, "TIME", 0,                                                                        \
			"Give up a host after this time (default: twice --timeout, and 10s; record and report add the time they record)",      \
			0                                                                                                                      \
	}

/* All zero but what cluster_options_init() sets. */
struct cluster_options {
	struct rank_selection selection;
	struct glob_list hosts; /* empty: this machine */
	const char *ssh, *remote_probing;
	unsigned fan_out;
	const char *token_file, *ca_file; /* of hosts with https; NULL: the environment, the system's */
	char *config;                     /* of questions to hosts: a file there; NULL: none */
	char *sql;                        /* of questions to hosts: a statement; NULL: none */
	char *const *more;                /* of questions to hosts: words at the end, behind "--"; NULL: none */
	char *const *own;                 /* a word for each of the hosts; NULL: none has one */
	const char *const *before;        /* words before the command that asks a host; NULL: none */
	size_t max_all_bytes;             /* of all answers; 0: CLUSTER_MAX_ALL_BYTES */
	bool is_from_files;               /* earlier answers are shown, and no rank is read */
	bool is_file;                     /* answers are files, not documents */
	bool is_local;                    /* this is the answer to another machine: a document, and encoded words */
	double timeout_s, host_timeout_s; /* host_timeout_s: 0: it follows from the other */
};
void cluster_options_init(struct cluster_options *options);
void cluster_options_done(struct cluster_options *options);
/* An argument is the pattern. At the end, contradictions are usage errors. */
error_t cluster_options_parse(int key, char *argument, struct argp_state *state, struct cluster_options *options);

/* cluster_decode - undo in place how a question encodes a text. NULL: nothing. */
void cluster_decode(char *word);

/* Hosts that one command asks. */
struct cluster_asked {
	char *const *hosts; /* n of them, as the user named them; the first one may ask the others */
	size_t n;
	bool is_url;  /* over HTTPS: the document has their addresses */
	bool is_here; /* this machine itself */
};

/*
 * cluster_ask - run "probing cluster WORDS --local" on all hosts at once, with the selection.
 * @words: of the question, end with NULL; without characters of a shell.
 * @take:  called for each command that has ended, in that order, from this thread. 0 or a negative errno, which ends it.
 * Returns 0, -ENOMEM, what running commands reports, or the first error of take.
 */
typedef int cluster_take(void *data, const struct cluster_asked *asked, const struct command *command);
int cluster_ask(const struct cluster_options *options, const char *const *words, size_t max_bytes, cluster_take *take,
		void *data);

struct http;
/*
 * cluster_open_http - for requests with the token.
 * @ret_bearer: the header with the token; http_forget() ends it.
 * Returns 0, or prints a message and returns an exit status.
 */
int cluster_open_http(const struct cluster_options *options, unsigned timeout_ms, struct http **ret, char **ret_bearer);

/* Whether a host is asked over HTTP(S). */
bool cluster_is_url(const char *host);

/* Begin the cluster's host that is this machine. -ENOMEM. */
int cluster_this_host(struct cluster *cluster);

/* Why there is no rank to read on this machine; returns an exit status. */
int cluster_fail_empty(const struct cluster_options *options);

#endif
