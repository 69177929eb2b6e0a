/* SPDX-License-Identifier: MIT */
/* agent.c - start and end of the agent, and its handling of fork(2). See agent.h. */
#include "src/agent/agent.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/agent/crash.h"
#include "src/agent/private.h"
#include "src/agent/python.h"
#include "src/agent/rows.h"
#include "src/agent/sampler.h"
#include "src/agent/settings.h"
#include "src/agent/worker.h"

__attribute__((section(AGENT_SECTION), used)) struct agent_state agent = { .magic = AGENT_MAGIC };

static void set_status(enum agent_status status)
{
	__atomic_store_n(&agent.status, status, __ATOMIC_SEQ_CST);
}

void agent_off(const char *reason)
{
	snprintf(agent.reason, sizeof agent.reason, "%s", reason);
	set_status(AGENT_OFF);
}

int agent_thread_with(void *(*body)(void *), void *data, size_t stack_bytes, pthread_t *ret)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int r;

	r = pthread_attr_init(&attributes);
	if (r != 0)
		return -r;
	(void)pthread_attr_setstacksize(&attributes, stack_bytes);
	sigfillset(&all); /* but for those that libc keeps for itself */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret, &attributes, body, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -r;
}

/* ---- fork(2) ---- */

/*
 * A forked child cannot run Python code until PyOS_AfterFork_Child() has reset its locks and removed the other
 * threads' states. So what starts the child's agent is queued before the fork, and the child's interpreter calls it
 * when it runs again. A child that only executes a program never does.
 */
static bool child_starts;
static bool is_queued; /* once: the main thread may be in C code for long, while others fork */

/*
 * Without a GIL, a child that another thread than the main one has forked keeps a pointer to the main thread's state
 * (_PyRuntime.main_tstate), which it frees. A queued call is written there. So such a child, and its children, have no
 * agent. Source: Py_AddPendingCall() in Python/ceval_gil.c and PyOS_AfterFork_Child(), 3.13 to 3.15.
 */
static __thread bool forks_safely; /* before the fork, and in its child */
static bool is_without_main;

static enum agent_status get_status(void)
{
	return __atomic_load_n(&agent.status, __ATOMIC_SEQ_CST);
}

static bool follows_forks(void)
{
	enum agent_status status = get_status();

	return settings_follow_forks() && (status == AGENT_ARMED || status == AGENT_STARTING);
}

/* In the parent it has nothing to do. */
static int start_in_child(void *unused)
{
	int saved = errno;

	(void)unused;
	if (!child_starts || !python_is_forking() || !python_call_soon(start_in_child)) {
		__atomic_store_n(&is_queued, false, __ATOMIC_SEQ_CST);
		if (child_starts)
			(void)probing_agent_start(0); /* its configuration is the parent's */
		child_starts = false;
	}
	errno = saved;
	return 0;
}

static void before_fork(void)
{
	int saved = errno;

	forks_safely = !is_without_main && (!python_is_free_threaded() || syscall(SYS_gettid) == getpid());
	if (forks_safely && follows_forks() && python_is_running() &&
	    !__atomic_exchange_n(&is_queued, true, __ATOMIC_SEQ_CST) && !python_call_soon(start_in_child))
		__atomic_store_n(&is_queued, false, __ATOMIC_SEQ_CST);
	settings_before_fork();
	errno = saved;
}

static void after_fork(void)
{
	int saved = errno;

	settings_after_fork();
	errno = saved;
}

/* Its threads are not in the child, nor are the listener's files. */
static void begin_child(void)
{
	int saved = errno;

	settings_after_fork();
	is_without_main = python_is_free_threaded() && !forks_safely;
	child_starts = !is_without_main && follows_forks();
	rows_fork();
	crash_fork();
	worker_reset();
	sampler_reset();
	agent.listener = agent.worker = 0;
	agent.has_probes = agent.has_undo = 0; /* it is undone here, too (src/cli/probes.py, package.py) */
	if (!child_starts)
		settings_forget_applied();
	agent_off("it is a forked child of the process that the agent was loaded into");
	errno = saved;
}

/* ---- Start ---- */

/* Whether this call is the one that starts it. */
static bool begin_start(void)
{
	uint32_t before = __atomic_load_n(&agent.status, __ATOMIC_SEQ_CST);

	if (before != AGENT_NONE && before != AGENT_OFF)
		return false;
	return __atomic_compare_exchange_n(&agent.status, &before, AGENT_STARTING, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

/* What is set stays set when it is started again. */
static void set_options(uint32_t options)
{
	char why[CONFIG_MAX_WHY];

	agent.options |= options;
	if (options & AGENT_FOLLOW_FORKS)
		(void)settings_assign("follow_forks=on", why);
	if (options & AGENT_NO_EVAL)
		(void)settings_assign("eval=off", why);
}

/* In the main thread, between two instructions. */
static int begin_in_python(void *unused)
{
	struct config config;

	(void)rows_offer(unused);
	python_offer_package();
	settings_get(&config);
	python_apply(&config);
	return 0;
}

static int give_up(const char *reason, int error)
{
	agent_off(reason);
	return error;
}

__attribute__((visibility("default"))) int probing_agent_start(uint32_t options)
{
	static bool is_prepared;
	const char *missing;
	int r;

	if (!begin_start())
		return 0;
	agent.reason[0] = '\0';
	agent.pid = getpid();
	set_options(options);
	__atomic_store_n(&is_queued, false, __ATOMIC_SEQ_CST); /* an interpreter that has ended has dropped it */
	missing = python_find();
	if (missing)
		return give_up(missing, -EOPNOTSUPP);
	python_look_at_caller();
	if (!python_is_running())
		return give_up("its Python has not been started, or has ended", -EAGAIN);
	if (is_without_main)
		return give_up("its Python has no GIL, and another thread than the main one forked it", -EOPNOTSUPP);
	if (!is_prepared) {
		r = pthread_atfork(before_fork, after_fork, begin_child);
		if (r != 0)
			return give_up("not enough memory", -r);
		is_prepared = true;
	}
	r = worker_start();
	if (r < 0)
		return give_up("it cannot have another thread", r);
	agent.n_starts++;
	r = listener_start(); /* which arms it */
	if (r < 0) {
		(void)worker_stop();
		return give_up("it cannot have another thread", r);
	}
	(void)python_call_soon(begin_in_python); /* refused: the next evaluation does it */
	if (syscall(SYS_gettid) != getpid())
		worker_take_turn();
	return 0;
}

__attribute__((visibility("default"))) int probing_agent_configure(const char *assignment, char why[CONFIG_MAX_WHY])
{
	if (get_status() == AGENT_STARTING || get_status() == AGENT_ARMED) {
		snprintf(why, CONFIG_MAX_WHY, "the agent runs already: its socket is the way to configure it");
		return -EBUSY;
	}
	return settings_assign(assignment, why);
}
