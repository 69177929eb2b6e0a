/* SPDX-License-Identifier: MIT */
/* ship.c - see record.h. */
#include "src/cli/record/record.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/new_file.h"
#include "base/util.h"

/*
 * The recorder blocks signals, and Ctrl-C at its terminal is not meant for the shipper. A pipe that the recorder writes to
 * must end with the recorder.
 */
static int spawn(char *const arguments[], int log, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r = posix_spawnattr_init(&attributes);

	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_init(&actions);
	if (r != 0) {
		posix_spawnattr_destroy(&attributes);
		return -r;
	}
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0 /* O_RDONLY */, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, log, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -r;
}

int record_ship(const char *path, const char *url, pid_t *ret)
{
	char *arguments[] = { "probing", "ship", "--to", (char *)url, "--", (char *)path, NULL };
	CLEANUP(freep) char *log_path = NULL;
	CLEANUP(closep) int log = -1;
	pid_t pid;
	int r;

	if (asprintf(&log_path, "%s.ship.log", path) < 0) {
		log_path = NULL;
		return -ENOMEM;
	}
	log = new_file_open_log(log_path, 0);
	if (log < 0)
		return log;
	r = spawn(arguments, log, &pid);
	if (r == 0)
		*ret = pid;
	return r;
}
