/* SPDX-License-Identifier: MIT */
/* name_server.c - see name_server.h. */
#include "src/pipeline/name_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/util.h"
#include "src/pipeline/keeper.h"
#include "src/pipeline/name_wire.h"

/* Total time of all requests to debuginfod servers. */
enum { SERVER_PATIENCE_S = 30 };

/* Limits of a worker. A module needs up to three descriptors. */
#define MAX_WORKER_MEMORY (4ULL << 30)
#define MAX_WORKER_FILE (4ULL << 30)
#define MAX_WORKER_FILES (1ULL << 14)

/* ---- The keeper and its workers ---- */

/*
 * A worker opens only one file itself, an unnamed temporary one. The worker's signal handler passes the opens of libdw
 * to the recorder (name_worker.c).
 */
static const struct call_rule worker_rules[] = {
	ALLOW_IF(openat, CALL_EQUALS, 2, O_TMPFILE | O_RDWR | O_CLOEXEC),
	{ __NR_openat, CALL_SIGNALS, CALL_WITHOUT_BITS, 2, O_ACCMODE | O_CREAT | O_TRUNC },
};

static void run_keeper(int socket, int filter_error)
{
	static const struct keeper_kind names = {
		.socket_type = SOCK_STREAM,
		.max_memory = MAX_WORKER_MEMORY,
		.max_file = MAX_WORKER_FILE,
		.max_files = MAX_WORKER_FILES,
		.run_worker = name_worker_run,
	};

	keeper_run(socket, filter_error, &names);
}

int name_keeper_start(int *ret_socket, pid_t *ret_pid)
{
	return keeper_start("probing-names", run_keeper, ret_socket, ret_pid);
}

/* The keeper's filter stays in force: both must allow a call. */
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

	(void)filter_error; /* libcurl parses even without a filter */
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
