/* SPDX-License-Identifier: MIT */
/* keeper.c - see keeper.h. */
#include "src/pipeline/keeper.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/pipeline/name_wire.h"

/* A keeper only forks and parses nothing: after this much silence it has been stopped. */
enum { PATIENCE_MS = 10000 };

/* A keeper starts workers, which may open one more file before they install their own filter. */
static const struct call_rule keeper_rules[] = {
	ALLOW(clone), ALLOW(wait4), ALLOW(kill), ALLOW(socketpair), ALLOW(openat), ALLOW(seccomp), ALLOW(prlimit64),
};

static void __attribute__((noreturn)) run_worker(const struct keeper_kind *kind, int socket)
{
	kind->run_worker(socket);
	_exit(0);
}

static pid_t start_worker(const struct keeper_kind *kind, int keeper_socket, int *ret)
{
	CLEANUP(closep) int own = -1;
	CLEANUP(closep) int other = -1;
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, kind->socket_type | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	own = ends[0];
	other = ends[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(keeper_socket);
		close(own);
		run_worker(kind, other);
	}
	*ret = TAKE_FD(own);
	return pid;
}

static void end_worker(pid_t worker)
{
	if (worker <= 0)
		return;
	kill(worker, SIGKILL);
	while (waitpid(worker, NULL, 0) < 0 && errno == EINTR)
		;
}

void keeper_run(int socket, int filter_error, const struct keeper_kind *kind)
{
	pid_t worker = -1;
	char asked;

	confined_limit(RLIMIT_NOFILE, kind->max_files);
	confined_limit(RLIMIT_FSIZE, kind->max_file);
	if (!HAS_SANITIZER) /* a sanitizer's shadow memory would count */
		confined_limit(RLIMIT_DATA, kind->max_memory);
	while (read(socket, &asked, 1) == 1) {
		struct keeper_answer answer = { .filter_error = filter_error };
		CLEANUP(closep) int fd = -1;

		end_worker(worker);
		worker = start_worker(kind, socket, &fd);
		answer.error = worker < 0 ? worker : 0;
		if (wire_send(socket, WIRE_FILE, &answer, sizeof answer, fd) < 0)
			break;
	}
	end_worker(worker);
}

int keeper_start(const char *name, void (*run)(int socket, int filter_error), int *ret_socket, pid_t *ret_pid)
{
	const struct call_table tables[] = { calls_fatal, { keeper_rules, N_ELEMENTS(keeper_rules) }, calls_basic };
	const struct confinement confinement = {
		.name = name,
		.is_nobody = true,
		.tables = tables,
		.n_tables = N_ELEMENTS(tables),
		.otherwise = CALL_NOT_THERE,
		.run = run,
	};

	return confined_start(&confinement, ret_socket, ret_pid);
}

int keeper_ask(int keeper_socket, int *ret_filter_error, int *ret)
{
	struct keeper_answer answer;
	struct wire wire;
	int r;

	if (send(keeper_socket, "", 1, MSG_NOSIGNAL) != 1) /* the keeper may have been killed */
		return -errno;
	wire_init(&wire);
	r = wire_receive(keeper_socket, PATIENCE_MS, &wire);
	if (r >= 0 && !wire_struct(&wire, &answer, sizeof answer))
		r = -EBADMSG;
	if (r >= 0 && (answer.error < 0 || wire.fd < 0))
		r = answer.error < 0 ? answer.error : -EBADMSG;
	if (r >= 0) {
		*ret_filter_error = answer.filter_error;
		*ret = TAKE_FD(wire.fd);
	}
	wire_done(&wire);
	return r;
}
