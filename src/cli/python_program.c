/* SPDX-License-Identifier: MIT */
/* python_program.c - whether a process runs Python, by the files it is made of. */
#include "src/cli/python_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/proc.h"
#include "base/util.h"

/* Whether a file such as "python3.11" or "libpython3.11.so.1.0" is an interpreter, and its version. */
static bool is_python(const char *path, char version[PYTHON_VERSION_BYTES])
{
	const char *name = path_base_name(path);

	if (strncmp(name, "lib", 3) == 0)
		name += 3;
	if (strncmp(name, "python", strlen("python")) != 0)
		return false;
	name += strlen("python");
	snprintf(version, PYTHON_VERSION_BYTES, "%.*s",
		 (int)MIN(strspn(name, "0123456789."), (size_t)PYTHON_VERSION_BYTES - 1), name);
	if (strstr(version, ".."))
		version[0] = '\0';
	if (version[0] && version[strlen(version) - 1] == '.')
		version[strlen(version) - 1] = '\0';
	return true;
}

/* Its code, "START-END r-xp ... PATH": a profiler maps the file of another process' interpreter to read it. */
static bool maps_python(pid_t pid, char version[PYTHON_VERSION_BYTES])
{
	CLEANUP(freep) char *maps = NULL;
	char *rest, *line, permissions[5];
	size_t n_bytes = 0;

	if (proc_read(pid, "maps", 16 << 20, &maps, &n_bytes) < 0 || !maps)
		return false;
	rest = maps;
	while ((line = strsep(&rest, "\n"))) {
		const char *found = strstr(line, "/libpython");

		if (found && sscanf(line, "%*s %4s", permissions) == 1 && strchr(permissions, 'x'))
			return is_python(found, version);
	}
	return false;
}

bool python_program(pid_t pid, char version[PYTHON_VERSION_BYTES])
{
	char path[PROC_PATH_BYTES], program[4096];
	ssize_t n;

	proc_path(pid, "exe", path);
	n = readlink(path, program, sizeof program - 1);
	if (n <= 0)
		return false;
	program[n] = '\0';
	return is_python(program, version) || maps_python(pid, version);
}
