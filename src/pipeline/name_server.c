/* SPDX-License-Identifier: MIT */
/* name_server.c - see name_server.h. */
#include "src/pipeline/name_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/pipeline/confined.h"
#include "src/pipeline/name_wire.h"

/* How long all questions to servers may take together. */
enum { SERVER_PATIENCE_S = 30 };

/* What a worker may take. Modules have up to three descriptors each. */
#define MAX_WORKER_MEMORY (4ULL << 30)
#define MAX_WORKER_FILE (4ULL << 30)
#define MAX_WORKER_FILES (1ULL << 14)

/* ---- The keeper ---- */

/* It starts workers, which open one file more before their own filter. */
static const struct call_rule keeper_rules[] = {
	ALLOW(clone), ALLOW(wait4), ALLOW(kill), ALLOW(socketpair), ALLOW(openat), ALLOW(seccomp), ALLOW(prlimit64),
};

/*
 * The one file that a worker opens has no name. Others, which libdw opens by itself, are asked for by the worker's handler
 * (name_worker.c).
 */
static const struct call_rule worker_rules[] = {
	ALLOW_IF(openat, CALL_EQUALS, 2, O_TMPFILE | O_RDWR | O_CLOEXEC),
	{ __NR_openat, CALL_SIGNALS, CALL_WITHOUT_BITS, 2, O_ACCMODE | O_CREAT | O_TRUNC },
};

static void limit_memory(void)
{
	if (!HAS_SANITIZER) /* whose shadow counts */
		confined_limit(RLIMIT_DATA, MAX_WORKER_MEMORY);
}

static void __attribute__((noreturn)) run_worker(int socket)
{
	name_worker_run(socket);
	_exit(0);
}

static pid_t start_worker(int keeper_socket, int *ret)
{
	CLEANUP(closep) int own = -1;
	CLEANUP(closep) int other = -1;
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	own = ends[0];
	other = ends[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(keeper_socket);
		close(own);
		run_worker(other);
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

static void keep(int socket, int filter_error)
{
	pid_t worker = -1;
	char asked;

	confined_limit(RLIMIT_NOFILE, MAX_WORKER_FILES);
	confined_limit(RLIMIT_FSIZE, MAX_WORKER_FILE);
	limit_memory();
	while (read(socket, &asked, 1) == 1) {
		struct name_server_answer answer = { .filter_error = filter_error };
		CLEANUP(closep) int fd = -1;

		end_worker(worker);
		worker = start_worker(socket, &fd);
		answer.error = worker < 0 ? worker : 0;
		if (wire_send(socket, WIRE_FILE, &answer, sizeof answer, fd) < 0)
			break;
	}
	end_worker(worker);
}

int name_keeper_start(int *ret_socket, pid_t *ret_pid)
{
	const struct call_table tables[] = { calls_fatal, { keeper_rules, N_ELEMENTS(keeper_rules) }, calls_basic };
	const struct confinement confinement = {
		.name = "probing-names",
		.is_nobody = true,
		.tables = tables,
		.n_tables = N_ELEMENTS(tables),
		.otherwise = CALL_NOT_THERE,
		.run = keep,
	};

	return confined_start(&confinement, ret_socket, ret_pid);
}

/* The keeper's filter is in force, too: what either refuses is refused. */
int name_worker_confine(void)
{
	const struct call_table tables[] = { calls_fatal, { worker_rules, N_ELEMENTS(worker_rules) }, calls_basic };

	return call_filter_install(tables, N_ELEMENTS(tables), CALL_NOT_THERE, false);
}

/* ---- The fetcher ---- */

static void fetch(int socket, int filter_error)
{
	const struct symbol_search_options options = { .debuginfod = true, .patience_s = SERVER_PATIENCE_S };
	CLEANUP(symbol_search_freep) struct symbol_search *search = NULL;
	struct wire wire;

	(void)filter_error; /* libcurl parses on without one */
	wire_init(&wire);
	if (symbol_search_new(&options, &search) < 0)
		return;
	while (wire_receive(socket, -1, &wire) >= 0) {
		CLEANUP(closep) int fd = -1;
		struct wire_wanted_id wanted;
		int32_t error;

		if (wire.kind != WIRE_WANT_ID || !wire_struct(&wire, &wanted, sizeof wanted))
			break;
		error = symbol_search_ask(search, &wanted.id, wanted.executable, &fd);
		if (wire_send(socket, WIRE_FILE, &error, sizeof error, error < 0 ? -1 : fd) < 0)
			break;
	}
	wire_done(&wire);
}

int name_fetcher_start(int *ret_socket, pid_t *ret_pid)
{
	const struct confinement confinement = {
		.name = "probing-fetch",
		.tables = &calls_fatal,
		.n_tables = 1,
		.otherwise = CALL_ALLOWED,
		.run = fetch,
	};

	return confined_start(&confinement, ret_socket, ret_pid);
}
