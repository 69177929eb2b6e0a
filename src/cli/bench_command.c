/* SPDX-License-Identifier: MIT */
/*
 * bench_command.c - a run of the command, alone or under probing record; see bench.h.
 *
 * The recorder is a new process of this program: a run ends with all its resources, and nothing of one run remains in
 * the next.
 */
#include "src/cli/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/size_limit.h"
#include "base/util.h"

static size_t count_words(char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* Build "probing record -q -o FILE OPTION... -- COMMAND...". The caller frees only the array. */
static char **record_words(const struct bench_command *command, const char *recording)
{
	static const char *const first[] = { "probing", "record", "-q", "-o" };
	size_t n_options = count_words(command->record_options), n_command = count_words(command->command), n = 0;
	char **words = calloc(N_ELEMENTS(first) + n_options + n_command + 3, sizeof(char *));

	if (!words)
		return NULL;
	for (size_t i = 0; i < N_ELEMENTS(first); i++)
		words[n++] = (char *)first[i];
	words[n++] = (char *)recording;
	for (size_t i = 0; i < n_options; i++)
		words[n++] = command->record_options[i];
	words[n++] = "--";
	for (size_t i = 0; i < n_command; i++)
		words[n++] = command->command[i];
	return words;
}

/* The exit status reports errors, as with record -- CMD. */
static void run_child(const char *program, char **words, bool show_output)
{
	int nowhere = show_output ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (nowhere >= 0)
		dup2(nowhere, STDOUT_FILENO);
	size_limit_as_found();
	execvp(program, words);
	_exit(errno == ENOENT ? 127 : 126);
}

static double seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static int wait_for(pid_t pid, uint64_t began_ns, struct bench_measure *measure)
{
	struct rusage usage;
	int status;

	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return -errno;
	measure->wall_s = (double)(monotonic_ns() - began_ns) / 1e9;
	measure->user_s = seconds(&usage.ru_utime);
	measure->sys_s = seconds(&usage.ru_stime);
	measure->max_rss_bytes = (int64_t)usage.ru_maxrss * 1024;
	measure->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}

int bench_measure(const struct bench_command *command, const char *recording, struct bench_measure *ret)
{
	CLEANUP(freep) char **words = recording ? record_words(command, recording) : NULL;
	struct bench_measure measure = { .started_ns = realtime_ns() };
	uint64_t began_ns;
	pid_t pid;
	int r;

	if (recording && !words)
		return -ENOMEM;
	began_ns = monotonic_ns();
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		run_child(words ? "/proc/self/exe" : command->command[0], words ? words : command->command,
			  command->show_output);
	r = wait_for(pid, began_ns, &measure);
	if (r < 0)
		return r;
	*ret = measure;
	return 0;
}
