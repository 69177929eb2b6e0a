/* SPDX-License-Identifier: MIT */
/* confined.c - see confined.h.
 *
 * The order matters: files are closed while that is allowed, the user is changed while the
 * capability to do so is there, and the filter comes last.
 */
#include "base/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/privilege.h"
#include "base/util.h"

enum { SOCKET = 3 };

/* Close all of the recorder's files: rings, the recording, the terminal. Negative errno. */
static int close_others(int socket)
{
	CLEANUP(closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int own;

	if (null < 0)
		return -errno;
	own = fcntl(socket, F_DUPFD, SOCKET + 1); /* a number that the loops below do not overwrite */
	if (own < 0)
		return -errno;
	for (int fd = 0; fd < SOCKET; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	if (dup2(own, SOCKET) < 0)
		return -errno;
	TAKE_FD(null); /* close_range() below closes it */
	if (syscall(SYS_close_range, SOCKET + 1, ~0U, 0) < 0)
		for (long fd = SOCKET + 1; fd < sysconf(_SC_OPEN_MAX); fd++)
			close((int)fd);
	return 0;
}

void confined_limit(int resource, unsigned long long most)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return;
	limit.rlim_max = MIN(limit.rlim_max, (rlim_t)most);
	limit.rlim_cur = MIN(limit.rlim_cur, limit.rlim_max);
	(void)setrlimit(resource, &limit);
}

/* Block the terminal's signals: the recorder handles those. Keep synchronous faults unblocked for their handlers. */
static void block_signals(void)
{
	static const int own[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT };
	sigset_t blocked;

	sigfillset(&blocked);
	for (size_t i = 0; i < N_ELEMENTS(own); i++)
		sigdelset(&blocked, own[i]);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static void __attribute__((noreturn)) run(const struct confinement *confinement, int socket)
{
	int r;

	block_signals();
	(void)prctl(PR_SET_NAME, confinement->name, 0, 0, 0);
	confined_limit(RLIMIT_CORE, 0);
	r = close_others(socket);
	if (r >= 0 && confinement->is_nobody)
		(void)privilege_become_nobody(); /* fails for an ordinary user, who has no privilege to drop */
	if (r >= 0)
		r = privilege_drop(0);
	if (r >= 0)
		r = privilege_lock();
	if (r < 0)
		_exit(1);
	r = call_filter_install(confinement->tables, confinement->n_tables, confinement->otherwise, false);
	confinement->run(SOCKET, r);
	_exit(0);
}

/* The last processes. A thread may ask while another one starts one. */
static pid_t started[64];
static unsigned n_started;

static void note_started(pid_t pid)
{
	unsigned i = __atomic_fetch_add(&n_started, 1, __ATOMIC_RELAXED);

	__atomic_store_n(&started[i % N_ELEMENTS(started)], pid, __ATOMIC_RELAXED);
}

bool confined_is(pid_t pid)
{
	for (size_t i = 0; i < N_ELEMENTS(started); i++)
		if (__atomic_load_n(&started[i], __ATOMIC_RELAXED) == pid)
			return true;
	return false;
}

int confined_start(const struct confinement *confinement, int *ret_socket, pid_t *ret_pid)
{
	CLEANUP(closep) int own = -1;
	CLEANUP(closep) int other = -1;
	int type = confinement->socket_type ? confinement->socket_type : SOCK_STREAM;
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	own = ends[0];
	other = ends[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		run(confinement, other);
	note_started(pid);
	*ret_socket = TAKE_FD(own);
	*ret_pid = pid;
	return 0;
}
