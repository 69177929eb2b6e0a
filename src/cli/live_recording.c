/* SPDX-License-Identifier: MIT */
/* live_recording.c - see live_recording.h.
 *
 * The recorder is a process of its own: it gives up its privileges, its priority and its signals, none of which could be
 * had back. Signals that are sent to us meanwhile are its, and ours again when it has ended.
 *
 * A signal that ends this process at another moment, as while samples are fetched, removes the folders first.
 */
#include "src/cli/live_recording.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"

extern const struct verb verb_record;

enum { MAX_FOLDERS = 8 }; /* others stay if a signal ends the process */

/* A name is set last and cleared first, because a signal may come at any moment. */
static struct {
	int parent, fd;
	const char *_Atomic name;
} folders[MAX_FOLDERS];

/* Source: signal-safety(7). SA_RESETHAND: once this returns, the signal has its default effect. */
static void remove_and_end(int number)
{
	static const char *const files[] = { "live.db", "live.db-journal", "live.db-wal", "live.db-shm" };

	for (size_t i = 0; i < N_ELEMENTS(folders); i++) {
		const char *name = atomic_load(&folders[i].name);

		for (size_t k = 0; name && k < N_ELEMENTS(files); k++)
			(void)unlinkat(folders[i].fd, files[k], 0);
		if (name)
			(void)unlinkat(folders[i].parent, name, AT_REMOVEDIR);
	}
	(void)raise(number);
}

static void remember(const struct private_folder *folder)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const struct sigaction action = { .sa_handler = remove_and_end, .sa_flags = (int)SA_RESETHAND };
	struct sigaction before;
	size_t i = 0;

	while (i < N_ELEMENTS(folders) && atomic_load(&folders[i].name))
		i++;
	if (i == N_ELEMENTS(folders))
		return;
	folders[i].parent = folder->parent;
	folders[i].fd = folder->fd;
	atomic_store(&folders[i].name, folder->name);
	for (size_t k = 0; k < N_ELEMENTS(signals); k++)
		if (sigaction(signals[k], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
			(void)sigaction(signals[k], &action, NULL);
}

static void forget(const struct private_folder *folder)
{
	for (size_t i = 0; i < N_ELEMENTS(folders); i++)
		if (folder->name && atomic_load(&folders[i].name) == folder->name)
			atomic_store(&folders[i].name, NULL);
}

static int make_in(const char *parent, struct live_recording *ret)
{
	CLEANUP(closep) int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = private_folder_make(fd, "probing-live.", &ret->folder);
	if (r >= 0)
		remember(&ret->folder);
	if (r >= 0 && asprintf(&ret->path, "%s/live.db", ret->folder.path) < 0) {
		ret->path = NULL;
		r = -ENOMEM;
	}
	return r;
}

/* Signals wait meanwhile: one between the folder and its handler would leave the folder behind. */
int live_folder(struct live_recording *ret)
{
	const char *const parents[] = { getenv("TMPDIR"), "/tmp" };
	sigset_t all, before;
	int r = -ENOENT;

	*ret = (struct live_recording){ 0 };
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (size_t i = 0; i < N_ELEMENTS(parents) && r < 0; i++)
		if (parents[i] && parents[i][0])
			r = make_in(parents[i], ret);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

void live_recording_done(struct live_recording *live)
{
	forget(&live->folder);
	private_folder_remove(&live->folder);
	free(live->path);
	*live = (struct live_recording){ 0 };
}

static int record(pid_t pid, double seconds, char *path)
{
	char name[] = "probing record", who[16], how_long[32];
	char *words[] = { name, "--no-summary", "--pid", who, "--duration", how_long, "--output", path, NULL };

	snprintf(who, sizeof who, "%d", (int)pid);
	snprintf(how_long, sizeof how_long, "%.6f", seconds);
	return verb_record.run(N_ELEMENTS(words) - 1, words);
}

static void taken_signals(sigset_t *ret)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD };

	sigemptyset(ret);
	for (size_t i = 0; i < N_ELEMENTS(signals); i++)
		sigaddset(ret, signals[i]);
}

/*
 * Wait for the recorder's end, and forward signals. The recorder gets a terminal's signals itself. @ret_signal: the
 * last signal that also ends this process.
 */
static int wait_for(pid_t recorder, const sigset_t *taken, int *ret_signal)
{
	int status, signal;

	*ret_signal = 0;
	for (;;) {
		siginfo_t info;

		if (waitpid(recorder, &status, WNOHANG) == recorder)
			return status;
		signal = sigwaitinfo(taken, &info);
		if (signal < 0 || signal == SIGCHLD)
			continue;
		if (signal != SIGINT)
			*ret_signal = signal;
		if (info.si_code <= 0)
			kill(recorder, signal);
	}
}

/* Ctrl-C only ends the recording; this process then shows it. */
static int end_like(int status, int signal)
{
	if (signal > 0)
		raise(signal); /* pending until the signal mask is restored */
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

int live_recording_make(pid_t pid, double seconds, struct live_recording *ret)
{
	sigset_t taken, before;
	int r, status, signal;
	pid_t recorder;

	taken_signals(&taken);
	pthread_sigmask(SIG_BLOCK, &taken, &before); /* before there is a folder that a signal would leave behind */
	r = live_folder(ret);
	if (r < 0) {
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		return cli_fail(EXIT_NO_OUTPUT, "no file for the samples can be created in $TMPDIR or /tmp: %s",
				strerror(-r));
	}
	cli_say("recording process %d for %.10g s; -d TIME changes that\n", (int)pid, seconds);
	fflush(NULL);
	recorder = fork();
	if (recorder == 0) {
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		exit(record(pid, seconds, ret->path));
	}
	status = recorder < 0 ? -1 : wait_for(recorder, &taken, &signal);
	if (recorder < 0)
		r = cli_fail(EXIT_FAILED, "a process cannot be started: %s", strerror(errno));
	else
		r = end_like(status, signal);
	if (r != EXIT_OK || (recorder > 0 && signal > 0))
		live_recording_done(ret);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}
