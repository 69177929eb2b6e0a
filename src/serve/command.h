/* SPDX-License-Identifier: MIT */
/* command.h - a verb of this program in a process of its own, with limits. */
#ifndef PROBING_SERVE_COMMAND_H
#define PROBING_SERVE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { COMMAND_MAX_WORDS = 64, COMMAND_MAX_OUTPUT = 32 << 20, COMMAND_MAX_ERROR = 4096 };

struct command_result {
	char *out; /* ends with a NUL behind n_out bytes */
	size_t n_out, allocated;
	char error[COMMAND_MAX_ERROR]; /* what it wrote to stderr, cut */
	int status;                    /* exit status; 128 + signal if one ended it */
	bool is_late;                  /* stopped at its deadline */
	bool is_too_long;              /* stopped because it wrote more than COMMAND_MAX_OUTPUT */
};

/* One that runs, and whose output is read meanwhile. */
struct command {
	pid_t pid;        /* 0: none */
	int out, err;     /* from its stdout; a file with its stderr */
	int stop, client; /* as command_run() has them */
	int64_t deadline_ms;
};

/*
 * command_open - start a command as command_run() does. @ret: ended with command_close().
 * Errors: -ENOMEM; what memfd_create(2), pipe2(2) and fork(2) report.
 */
int command_open(const char *const *words, const char *input, size_t n_input, double seconds, int stop, int client,
		 struct command *ret);
/*
 * command_read - the next bytes of its output, at most n. 0: it has closed its stdout.
 * Errors: -ETIME, -ECANCELED, -ECONNRESET, with which command_close() is to stop it; what poll(2) and read(2) report.
 */
ssize_t command_read(const struct command *command, char *to, size_t n);
/*
 * command_close - wait for its end, or stop it.
 * @r:   the last result of command_read(); -EMSGSIZE: its output is too long.
 * @ret: its output stays as it is.
 * Errors: @r, unless @ret has the reason (is_late, is_too_long).
 */
int command_close(struct command *command, int r, struct command_result *ret);

/*
 * command_run - run "probing WORDS..." to its end.
 * At the deadline it gets SIGTERM, and its process group SIGKILL 10 s later. It ends with the calling thread.
 * @words:   with the verb first; ends with NULL.
 * @input:   its stdin, n_input bytes.
 * @seconds: until the deadline.
 * @stop:    a descriptor that becomes readable when all is to end; the command is then stopped.
 * @client:  a socket whose peer waits for the output; if it hangs up, the command is stopped.
 * @ret:     set also on failure; ended with command_result_done().
 * Errors: -ECANCELED stopped; -ECONNRESET stopped for lack of a client; -ENOMEM; what memfd_create(2), pipe2(2),
 *         fork(2) and poll(2) report.
 */
int command_run(const char *const *words, const char *input, size_t n_input, double seconds, int stop, int client,
		struct command_result *ret);
/*
 * command_start - start "probing WORDS...", in a process group of its own.
 * @in, @out, @err: its first three descriptors; it has no others.
 * @is_bound: it gets SIGTERM when the calling thread ends.
 * Errors: what fork(2) reports.
 */
int command_start(const char *const *words, int in, int out, int err, bool is_bound, pid_t *ret);
void command_result_done(struct command_result *result);

#endif
