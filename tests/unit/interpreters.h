/* interpreters.h - real CPythons for tests: found, started, asked for the truth. */
#ifndef PROBING_TESTS_INTERPRETERS_H
#define PROBING_TESTS_INTERPRETERS_H

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_INTERPRETERS = 16 };

struct interpreter {
	char path[512];
	unsigned version; /* major << 8 | minor */
};

/* Versions that the reader knows, oldest first, one each. */
static inline size_t find_interpreters(struct interpreter *found)
{
	static const char *const patterns[] = { "/usr/bin/python3.[0-9]*", "/usr/local/bin/python3.[0-9]*",
						"%s/.pyenv/versions/3.*/bin/python3.[0-9]*" };
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
			unsigned minor;
			int length = 0;

			if (sscanf(name, "python3.%u%n", &minor, &length) != 1 || name[length] != '\0' ||
			    minor < 11 || minor > 13)
				continue;
			snprintf(found[n].path, sizeof found[n].path, "%s", paths.gl_pathv[k]);
			found[n++].version = 3 << 8 | minor;
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
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		execl(interpreter->path, interpreter->path, "-c", text, (char *)NULL);
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
