/* SPDX-License-Identifier: MIT */
/* debuginfod.c - files by build-id from the servers in DEBUGINFOD_URLS.
 *
 * libdebuginfod implements the protocol and a cache; it is loaded on demand,
 * as libdw does, so that it need not be installed. By itself it waits for 90
 * seconds on each file of a server that does not answer: its progress function,
 * called about once a second, enforces two limits of ours.
 *
 * Invariants: after a server was too slow once, there are no more requests;
 * all requests together take no longer than patience_s and one timeout more.
 * Source: debuginfod_find_debuginfo(3) and elfutils/debuginfod.h, 0.188.
 */
#include "symbolize/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/util.h"

#define SECOND_NS UINT64_C(1000000000)

enum { DEFAULT_STALL_S = 10, MAX_STALL_S = 3600 };

typedef int (*progress_function)(void *client, long done, long all);

struct debuginfod {
	const struct symbol_search_options *options;
	void *library, *client;
	bool tried, too_slow, cancelled;
	uint64_t spent_ns;             /* total of completed requests */
	uint64_t started_ns, moved_ns; /* of the current request: start and last byte */
	long done;
	void *(*begin)(void);
	void (*end)(void *client);
	int (*find_debuginfo)(void *client, const unsigned char *id, int n_bytes, char **path);
	int (*find_executable)(void *client, const unsigned char *id, int n_bytes, char **path);
	void (*set_progress)(void *client, progress_function function);
};

int debuginfod_open(const struct symbol_search_options *options, struct debuginfod **ret)
{
	struct debuginfod *servers = calloc(1, sizeof *servers);

	if (!servers)
		return -ENOMEM;
	servers->options = options;
	*ret = servers;
	return 0;
}

void debuginfod_close(struct debuginfod *servers)
{
	if (!servers)
		return;
	if (servers->client)
		servers->end(servers->client);
	/* Keep the library loaded: it has registered exit handlers. */
	free(servers);
}

/* The only cast from an object pointer to a function pointer, which C does not define. */
static bool load(struct debuginfod *servers, const char *name, void *to)
{
	void *symbol = dlsym(servers->library, name);

	*(void **)to = symbol;
	return symbol != NULL;
}

static bool load_all(struct debuginfod *servers)
{
	return load(servers, "debuginfod_begin", &servers->begin) && load(servers, "debuginfod_end", &servers->end) &&
	       load(servers, "debuginfod_find_debuginfo", &servers->find_debuginfo) &&
	       load(servers, "debuginfod_find_executable", &servers->find_executable) &&
	       load(servers, "debuginfod_set_progressfn", &servers->set_progress);
}

/* The request of this thread: the library's callback only passes the client. */
static __thread struct debuginfod *asking;

static uint64_t stall_ns(void)
{
	const char *text = getenv("DEBUGINFOD_TIMEOUT");
	long seconds = text ? strtol(text, NULL, 10) : 0;

	return (uint64_t)(seconds > 0 ? MIN(seconds, (long)MAX_STALL_S) : DEFAULT_STALL_S) * SECOND_NS;
}

/* A non-zero result ends the request. */
static int progress(void *client, long done, long all)
{
	struct debuginfod *servers = asking;
	const struct symbol_search_options *options = servers->options;
	uint64_t now = monotonic_ns();

	(void)client;
	if (done != servers->done) {
		servers->done = done;
		servers->moved_ns = now;
	}
	if (now - servers->moved_ns > stall_ns() ||
	    (options->patience_s > 0 &&
	     servers->spent_ns + (now - servers->started_ns) > options->patience_s * SECOND_NS))
		servers->too_slow = true;
	if (options->keep_going && !options->keep_going(options->data, done, all))
		servers->cancelled = true;
	return servers->too_slow || servers->cancelled;
}

static int get_ready(struct debuginfod *servers)
{
	if (servers->tried)
		return servers->client ? 0 : -ENOSYS;
	servers->tried = true;
	servers->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!servers->library || !load_all(servers))
		return -ENOSYS;
	servers->client = servers->begin();
	if (!servers->client)
		return -ENOSYS;
	servers->set_progress(servers->client, progress);
	return 0;
}

/* Ignore SIGPIPE: a server may close the connection while the library writes. */
static int find_quietly(struct debuginfod *servers,
			int (*find)(void *client, const unsigned char *id, int n_bytes, char **path),
			const struct build_id *id, char **path)
{
	const struct timespec at_once = { 0, 0 };
	sigset_t pipe_only, before;
	int fd;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	fd = find(servers->client, id->bytes, (int)id->n_bytes, path);
	if (!sigismember(&before, SIGPIPE))
		(void)sigtimedwait(&pipe_only, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return fd;
}

int debuginfod_get(struct debuginfod *servers, const struct build_id *id, bool executable, int *ret)
{
	CLEANUP(freep) char *path = NULL;
	int fd, r;

	if (servers->cancelled)
		return -ECANCELED;
	if (servers->too_slow)
		return -ETIMEDOUT;
	r = get_ready(servers);
	if (r < 0)
		return r;
	asking = servers;
	servers->done = -1;
	servers->started_ns = servers->moved_ns = monotonic_ns();
	fd = find_quietly(servers, executable ? servers->find_executable : servers->find_debuginfo, id, &path);
	servers->spent_ns += monotonic_ns() - servers->started_ns;
	asking = NULL;
	if (fd == -ETIME || fd == -ETIMEDOUT)
		servers->too_slow = true;
	if (fd < 0)
		return servers->cancelled ? -ECANCELED : servers->too_slow ? -ETIMEDOUT : fd;
	*ret = fd;
	return 0;
}
