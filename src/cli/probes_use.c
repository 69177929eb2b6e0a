/* SPDX-License-Identifier: MIT */
/* probes_use.c - see probes_use.h. The code that runs in the process is probes.py. */
#include "src/cli/probes_use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"

extern const char probes_source[]; /* probes.py */

/*
 * Call a function of probes.py with a text, and return its output. On error prints a message and returns an exit
 * status.
 */
static int call(pid_t pid, struct agent_talk *talk, const char *function, const char *argument, char **ret,
		size_t *ret_bytes)
{
	CLEANUP(freep) char *code = agent_call(probes_source, function, argument, strlen(argument));
	struct agent_value value;
	int status = agent_eval_output(pid, talk, code, &value, ret, ret_bytes);

	if (status == EXIT_OK && value.outcome != OUTCOME_NOTHING) {
		free(*ret);
		*ret = NULL;
		status = agent_eval_fail(pid, &value);
	}
	return status;
}

/* ---- Arm ---- */

/* One probe per line, for arm() of probes.py. NULL: out of memory. */
static char *make_spec(const struct probes *probes)
{
	CLEANUP(freep) char *spec = NULL;
	unsigned interval_ms = (unsigned)(probes->interval_s * 1000 + 0.5);
	size_t n_bytes;
	FILE *out = open_memstream(&spec, &n_bytes);

	if (!out)
		return NULL;
	fprintf(out, "interval %u.%03u\n", interval_ms / 1000, interval_ms % 1000);
	for (size_t i = 0; i < probes->n_functions; i++)
		fprintf(out, "function %s\n", probes->functions[i]);
	for (size_t i = 0; i < probes->n_variables; i++)
		fprintf(out, "variable %s\n", probes->variables[i]);
	if (probes->torch)
		fputs("torch\n", out);
	return fclose(out) == 0 ? TAKE(spec) : NULL;
}

/* Handle lines "refused SENTENCE", "kept SENTENCE" (refused too, and earlier probes stay) and "note SENTENCE". */
static int take_answer(pid_t pid, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (strncmp(line, "refused ", 8) == 0)
			return cli_fail(EXIT_FAILED, "process %d has no probes: %s", (int)pid, line + 8);
		if (strncmp(line, "kept ", 5) == 0)
			return cli_fail(EXIT_FAILED, "process %d keeps its earlier probes: %s", (int)pid, line + 5);
		if (strncmp(line, "note ", 5) == 0)
			cli_say("probing: %s\n", line + 5);
	}
	return EXIT_OK;
}

int probes_arm(pid_t pid, struct agent_talk *talk, const struct probes *probes)
{
	CLEANUP(freep) char *spec = make_spec(probes), *text = NULL;
	size_t n_bytes;
	int status;

	if (!spec)
		return cli_fail(EXIT_FAILED, "not enough memory");
	status = call(pid, talk, "arm", spec, &text, &n_bytes);
	return status == EXIT_OK ? take_answer(pid, text) : status;
}

/* ---- Read ---- */

static int find(pid_t pid, struct agent_state *ret, char *why, size_t n_why)
{
	int r = agent_look(pid, ret);

	if (r == -ENOENT)
		snprintf(why, n_why, "process %d has no agent: probing attach %d --config FILE arms probes", (int)pid,
			 (int)pid);
	else if (r == -EXDEV)
		snprintf(why, n_why,
			 "another version of the agent is in process %d: only that version's probing can ask it",
			 (int)pid);
	if (r < 0)
		return r == -EXDEV ? -EIO : r;
	if (!ret->has_probes) {
		snprintf(why, n_why, "process %d has no probes: probing attach %d --config FILE arms some", (int)pid,
			 (int)pid);
		return -ENOENT;
	}
	return 0;
}

int probes_read(pid_t pid, const char *table, char **ret, size_t *ret_bytes, char *why, size_t n_why)
{
	struct agent_state state;
	struct agent_talk talk;
	char *text = NULL;
	int status, r = find(pid, &state, why, n_why);

	if (r < 0)
		return r;
	status = agent_open(pid, &state, &talk);
	if (status == EXIT_OK) {
		status = call(pid, &talk, "read", table, &text, ret_bytes);
		agent_talk_end(&talk);
	}
	if (status != EXIT_OK) {
		snprintf(why, n_why, "the probes of process %d cannot be read", (int)pid);
		return -EIO;
	}
	if (*ret_bytes == 1) /* an empty line means no row */
		*ret_bytes = 0;
	*ret = text;
	return 0;
}
