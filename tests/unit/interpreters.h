/* SPDX-License-Identifier: MIT */
/* interpreters.h - real CPythons for tests: found, started, asked for the truth. */
#ifndef PROBING_TESTS_INTERPRETERS_H
#define PROBING_TESTS_INTERPRETERS_H

#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_INTERPRETERS = 32 };

struct interpreter {
	char path[512];
	unsigned version; /* major << 8 | minor */
	bool has_gil;
};

/* Find all installed interpreters. */
static inline size_t find_interpreters(struct interpreter *found)
{
	static const char *const patterns[] = { "/usr/bin/python[23].[0-9]*", "/usr/local/bin/python[23].[0-9]*",
						"%s/.pyenv/versions/[23].*/bin/python[23].[0-9]*",
						"%s/.cache/probing/roots/free-threaded/3.*t/bin/python3.*t" };
	const char *home = getenv("HOME") ? getenv("HOME") : "/nonexistent";
	size_t n = 0;

	for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
		char pattern[512];
		glob_t paths;

		snprintf(pattern, sizeof pattern, patterns[i], home);
		if (glob(pattern, 0, NULL, &paths) != 0)
			continue;
		for (size_t k = 0; k < paths.gl_pathc && n < MAX_INTERPRETERS; k++) {
			const char *name = strrchr(paths.gl_pathv[k], '/') + 1;
			unsigned major, minor;
			int length = 0;

			if (sscanf(name, "python%u.%u%n", &major, &minor, &length) != 2 ||
			    (name[length] != '\0' && strcmp(name + length, "t") != 0))
				continue;
			snprintf(found[n].path, sizeof found[n].path, "%s", paths.gl_pathv[k]);
			found[n].has_gil = name[length] != 't';
			found[n++].version = major << 8 | minor;
		}
		globfree(&paths);
	}
	return n;
}

struct script {
	pid_t pid;
	FILE *output;
};

/* Start a script; its stdout is read from script->output. */
static inline int start_script(const struct interpreter *interpreter, const char *text, struct script *script)
{
	int ends[2];

	if (pipe(ends) < 0)
		return -1;
	script->pid = fork();
	if (script->pid < 0)
		return -1;
	if (script->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when a test is killed */
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		execl(interpreter->path, interpreter->path, "-B", "-c", text, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	script->output = fdopen(ends[0], "r");
	return script->output ? 0 : -1;
}

static inline void end_script(struct script *script)
{
	kill(script->pid, SIGKILL);
	waitpid(script->pid, NULL, 0);
	fclose(script->output);
}

#endif
