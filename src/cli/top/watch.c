/* SPDX-License-Identifier: MIT */
/* watch.c - see top.h.
 *
 * The GIL and the collector are polled from outside, in memory: a share is
 * the number of recent polls that found it held. The polls are independent of the samples, which
 * are of running threads only.
 */
#include "src/cli/top/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address_space.h"
#include "base/proc.h"
#include "base/util.h"
#include "unwind/cpython/cpython.h"

enum {
	N_LOOKS = 50,       /* shares are computed over this many looks */
	MAX_LOOKED_AT = 64, /* threads per look */
	REST_LOOKS = 50,    /* looks before asking again about a thread unknown to the interpreter */
	MAX_FAILURES = 20,  /* failed looks before searching the interpreter again */
	FIRST_RETRY_NS = 500000000,
};

#define LONGEST_RETRY_NS 10000000000ull

struct watched_thread {
	pid_t tid;
	unsigned rest; /* number of looks to skip */
};

struct top_watch {
	pid_t pid;
	struct module_table *modules;
	struct address_space *space;
	struct remote *remote;
	struct py_runtime *runtime; /* NULL: not found yet */
	uint64_t next_try_ns, retry_ns;
	struct watched_thread *threads;
	size_t n_threads;
	pid_t *tids; /* TIDs of threads */
	pid_t holder;
	struct {
		enum py_answer gil, gc;
	} looks[N_LOOKS];
	size_t n_looks; /* number of looks so far */
	unsigned n_failures;
	uint64_t cpu_ns, read_ns; /* at the last read */
};

static void forget_memory(struct top_watch *watch)
{
	py_runtime_free(TAKE(watch->runtime));
	address_space_free(TAKE(watch->space));
	remote_free(TAKE(watch->remote));
	module_table_free(TAKE(watch->modules));
}

void top_watch_free(struct top_watch *watch)
{
	if (!watch)
		return;
	forget_memory(watch);
	free(watch->threads);
	free(watch->tids);
	free(watch);
}

static uint64_t cpu_time(pid_t pid, unsigned *ret_threads)
{
	unsigned long long user = 0, system = 0;
	CLEANUP(freep) char *text = NULL;
	const char *rest;
	char path[64];

	*ret_threads = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (read_file(path, 4096, &text, NULL) < 0)
		return 0;
	rest = strrchr(text, ')'); /* the name may contain any character */
	if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %u",
			    &user, &system, ret_threads) != 3)
		return 0;
	return (user + system) * (1000000000ull / (unsigned long long)sysconf(_SC_CLK_TCK));
}

static const struct watched_thread *find_thread(const struct top_watch *watch, pid_t tid)
{
	for (size_t i = 0; i < watch->n_threads && i < MAX_LOOKED_AT; i++)
		if (watch->threads[i].tid == tid)
			return &watch->threads[i];
	return NULL;
}

/* Update the thread list; keep the state of remaining threads. */
static void list_threads(struct top_watch *watch)
{
	struct watched_thread *threads;
	pid_t *tids = NULL;
	size_t n = 0;

	if (proc_tasks(watch->pid, &tids, &n) < 0)
		return;
	threads = calloc(n + 1, sizeof *threads);
	if (!threads) {
		free(tids);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct watched_thread *known = find_thread(watch, tids[i]);

		threads[i] = (struct watched_thread){ tids[i], known ? known->rest : 0 };
	}
	free(watch->threads);
	free(watch->tids);
	watch->threads = threads;
	watch->tids = tids;
	watch->n_threads = n;
}

int top_watch_new(pid_t pid, struct top_watch **ret)
{
	struct top_watch *watch = calloc(1, sizeof *watch);
	unsigned n_threads;

	if (!watch)
		return -ENOMEM;
	watch->pid = pid;
	watch->retry_ns = FIRST_RETRY_NS;
	watch->read_ns = monotonic_ns();
	watch->cpu_ns = cpu_time(pid, &n_threads);
	list_threads(watch);
	*ret = watch;
	return 0;
}

/* ---- Look at threads ---- */

static int open_memory(struct top_watch *watch)
{
	char version[64];
	int r;

	r = module_table_new(&watch->modules);
	if (r >= 0)
		r = address_space_new(watch->pid, watch->modules, &watch->space);
	if (r >= 0)
		r = remote_open_process(watch->pid, &watch->remote);
	if (r >= 0)
		r = address_space_load(watch->space);
	if (r >= 0)
		r = py_runtime_find(watch->space, watch->remote, version, &watch->runtime);
	return r;
}

/* The interpreter may load later, or exec may replace it: retry with growing intervals. */
static bool find_runtime(struct top_watch *watch, uint64_t now_ns)
{
	if (watch->runtime)
		return true;
	if (now_ns < watch->next_try_ns)
		return false;
	watch->next_try_ns = now_ns + watch->retry_ns;
	watch->retry_ns = MIN(2 * watch->retry_ns, LONGEST_RETRY_NS);
	if (open_memory(watch) >= 0 && watch->runtime)
		return true;
	forget_memory(watch);
	return false;
}

/* Returns whether the interpreter knows the thread. */
static bool ask(struct top_watch *watch, pid_t tid, struct py_state *all)
{
	struct py_state state;

	if (py_state_of(watch->runtime, tid, &state) < 0)
		return false;
	if (all->holds_gil != PY_YES)
		all->holds_gil = state.holds_gil == PY_YES ? PY_YES : MAX(all->holds_gil, state.holds_gil);
	all->collects = MAX(all->collects, state.collects);
	if (state.holds_gil == PY_YES)
		watch->holder = tid;
	return true;
}

void top_watch_look(struct top_watch *watch, uint64_t now_ns)
{
	struct py_state all = { .holds_gil = PY_UNKNOWN, .collects = PY_UNKNOWN };
	bool any = false;

	if (!find_runtime(watch, now_ns))
		return;
	py_begin_sample(watch->runtime);
	if (watch->holder)
		any = ask(watch, watch->holder, &all);
	for (size_t i = 0; i < watch->n_threads && i < MAX_LOOKED_AT && all.holds_gil != PY_YES; i++) {
		struct watched_thread *thread = &watch->threads[i];

		if (thread->rest > 0)
			thread->rest--;
		else if (ask(watch, thread->tid, &all))
			any = true;
		else
			thread->rest = REST_LOOKS;
	}
	watch->n_failures = any ? 0 : watch->n_failures + 1;
	if (watch->n_failures > MAX_FAILURES) {
		forget_memory(watch);
		watch->holder = 0;
		return;
	}
	if (!any)
		return;
	watch->looks[watch->n_looks % N_LOOKS].gil = all.holds_gil;
	watch->looks[watch->n_looks++ % N_LOOKS].gc = all.collects;
}

/* ---- Results ---- */

static double share(size_t n_yes, size_t n_known)
{
	return n_known > 0 ? (double)n_yes / (double)n_known : -1;
}

static void read_shares(const struct top_watch *watch, struct top_status *ret)
{
	size_t n_gil = 0, n_gc = 0, gil_known = 0, gc_known = 0;

	for (size_t i = 0; i < MIN(watch->n_looks, (size_t)N_LOOKS); i++) {
		gil_known += watch->looks[i].gil != PY_UNKNOWN;
		gc_known += watch->looks[i].gc != PY_UNKNOWN;
		n_gil += watch->looks[i].gil == PY_YES;
		n_gc += watch->looks[i].gc == PY_YES;
	}
	ret->gil_share = share(n_gil, gil_known);
	ret->gc_share = share(n_gc, gc_known);
}

void top_watch_read(struct top_watch *watch, uint64_t now_ns, struct top_status *ret)
{
	uint64_t cpu_ns = cpu_time(watch->pid, &ret->n_threads);

	ret->cpu_share = -1;
	if (cpu_ns >= watch->cpu_ns && now_ns > watch->read_ns && ret->n_threads > 0)
		ret->cpu_share = (double)(cpu_ns - watch->cpu_ns) / (double)(now_ns - watch->read_ns);
	watch->cpu_ns = cpu_ns;
	watch->read_ns = now_ns;
	read_shares(watch, ret);
	list_threads(watch);
	ret->tids = watch->tids;
	ret->n_tids = watch->n_threads;
}
