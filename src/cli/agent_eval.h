/* SPDX-License-Identifier: MIT */
/* agent_eval.h - Python code run in a process by its agent, and its result. For eval, repl, memory and attach. */
#ifndef PROBING_CLI_AGENT_EVAL_H
#define PROBING_CLI_AGENT_EVAL_H

#include <signal.h>
#include <stdbool.h>

#include "src/cli/agent_use.h"

enum { AGENT_EVAL_MAX_BYTES = PROTOCOL_MAX_BYTES - 64 };

struct agent_eval {
	const char *code;
	size_t n_code;
	uint32_t timeout_ms; /* 0: no bound */
	/* Receives the code's output; returns an exit status. @stream: 1 stdout, 2 stderr. */
	int (*output)(void *data, int stream, const char *text, size_t n_text);
	void *data;
	const volatile sig_atomic_t *interrupts; /* counts up: each interrupts the code once; NULL: nothing does */
};

struct agent_value {
	enum outcome outcome;
	const char *text; /* repr() of the value, or a traceback; borrowed from the talk until its next use */
	size_t n_text;
	bool is_refused; /* by the agent, with a sentence on stderr: agent_eval() has failed; the connection remains */
};

/*
 * agent_eval - run code, and wait for its end.
 * Returns EXIT_OK, also if the code raised an exception; else prints a message and returns an exit status.
 */
int agent_eval(pid_t pid, struct agent_talk *talk, const struct agent_eval *eval, struct agent_value *ret);

/* agent_eval_fail - print on stderr why code has no value: a traceback, or a sentence. Returns an exit status. */
int agent_eval_fail(pid_t pid, const struct agent_value *value);

/* Print a traceback, or a part of one, on stderr: keeps line ends, escapes terminal controls. */
void agent_put_traceback(const char *text, size_t n_text);

/* agent_get - have the agent in a process, loading it with a note on stderr where it is not there, and a talk with it.
 * */
int agent_get(pid_t pid, struct agent_talk *ret);

/*
 * agent_call - the code of function(bytes), with the Python source that defines the function: it runs in a namespace
 * of its own, and leaves no name in the process. To be freed; NULL: no memory.
 */
char *agent_call(const char *source, const char *function, const char *bytes, size_t n_bytes);

/*
 * agent_eval_output - run code for at most 30 seconds, and keep what it prints.
 * @code: NULL means that there was no memory for it.
 * @ret:  to be freed; ended by a NUL that @ret_bytes does not count.
 * Returns as agent_eval().
 */
int agent_eval_output(pid_t pid, struct agent_talk *talk, const char *code, struct agent_value *ret_value, char **ret,
		      size_t *ret_bytes);

/*
 * agent_package_call - call probing.MODULE.FUNCTION(text) in a process, and keep what it prints (docs/inside.md, "The
 * package in a process"). The package comes from the agent if the process' Python has none.
 * @argument: any UTF-8 text.
 * @ret:      as agent_eval_output().
 * Returns EXIT_OK; otherwise prints a message (the text of probing._inside.Refused, a traceback, another package of that
 * name, CPython before 3.8) and returns an exit status.
 */
int agent_package_call(pid_t pid, struct agent_talk *talk, const char *module, const char *function,
		       const char *argument, char **ret, size_t *ret_bytes);

#endif
