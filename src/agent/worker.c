/* SPDX-License-Identifier: MIT */
/* worker.c - see worker.h. */
#include "src/agent/worker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/agent/private.h"
#include "src/agent/python.h"
#include "src/agent/sanitizer.h"

enum { STACK_BYTES = 8 << 20, OUTPUT_BYTES = PROTOCOL_MAX_OUTPUT };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* Number of the current worker. One that was stopped while waiting for the GIL may end after the next one starts. */
static uintptr_t generation;

static struct {
	bool is_started, is_stopping, has_died;
	bool takes_turn; /* the lock is wanted, without a job */
	enum job_phase phase;
	bool is_abandoned;
	uint64_t number; /* of the evaluation */
	/* Interrupts may only hit the user's code, not ours before and after it. */
	bool is_interruptible, is_interrupt_wanted, was_interrupted;
	unsigned n_interrupting; /* threads that are raising one */
	unsigned long python_thread;
	char *code;
	size_t n_code;
	enum outcome outcome;
	char *result;
	size_t n_result;
	int stream;
	size_t n_output;
	char output[OUTPUT_BYTES];
} job;

/* ---- Worker ---- */

/* Wait, without the GIL, until the buffer has space for this stream. False: no client listens. */
static bool wait_for_room(int stream)
{
	void *paused = NULL;
	bool is_heard;

	pthread_mutex_lock(&lock);
	while (!job.is_abandoned && job.n_output > 0 && (job.stream != stream || job.n_output == OUTPUT_BYTES)) {
		if (!paused) {
			pthread_mutex_unlock(&lock);
			paused = python_pause();
			pthread_mutex_lock(&lock);
			continue;
		}
		pthread_cond_wait(&changed, &lock);
	}
	is_heard = !job.is_abandoned;
	pthread_mutex_unlock(&lock);
	if (paused)
		python_resume(paused); /* without our lock: the GIL's holder may want it */
	return is_heard;
}

static void take_output(int stream, const char *text, size_t n_bytes)
{
	while (n_bytes > 0 && wait_for_room(stream)) {
		size_t n;

		pthread_mutex_lock(&lock);
		n = OUTPUT_BYTES - job.n_output < n_bytes ? OUTPUT_BYTES - job.n_output : n_bytes;
		memcpy(job.output + job.n_output, text, n);
		job.stream = stream;
		job.n_output += n;
		pthread_mutex_unlock(&lock);
		text += n;
		n_bytes -= n;
	}
}

/* Take the queued evaluation if it is still wanted; the caller owns the code. */
static char *take_job(size_t *ret_bytes)
{
	char *code = NULL;

	pthread_mutex_lock(&lock);
	if (job.phase == JOB_QUEUED) {
		job.phase = JOB_RUNNING;
		job.is_interruptible = job.is_interrupt_wanted = job.was_interrupted = false;
		job.python_thread = python_thread();
		code = job.code;
		*ret_bytes = job.n_code;
		job.code = NULL;
	}
	pthread_mutex_unlock(&lock);
	return code;
}

static void stop_interrupts(void)
{
	pthread_mutex_lock(&lock);
	job.is_interruptible = false;
	while (job.n_interrupting > 0) { /* only without a GIL, which this thread would hold */
		void *paused;

		pthread_mutex_unlock(&lock);
		paused = python_pause();
		sched_yield();
		python_resume(paused);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}

/* An interrupt requested earlier is raised in the code's first instruction. */
static void begin_interrupts(void)
{
	bool is_wanted;

	pthread_mutex_lock(&lock);
	job.is_interruptible = true;
	is_wanted = job.is_interrupt_wanted;
	job.was_interrupted |= is_wanted;
	pthread_mutex_unlock(&lock);
	if (is_wanted)
		python_interrupt(python_thread());
}

static bool allow_interrupts(bool allowed)
{
	if (allowed)
		begin_interrupts();
	else
		stop_interrupts();
	return job.was_interrupted; /* no other thread changes it any more */
}

static void set_probes(bool has_probes)
{
	__atomic_store_n(&agent.has_probes, has_probes, __ATOMIC_SEQ_CST);
}

static void put_result(enum outcome outcome, char *text, size_t n_bytes)
{
	pthread_mutex_lock(&lock);
	job.phase = job.is_abandoned ? JOB_NONE : JOB_DONE;
	job.outcome = outcome;
	job.number++;
	if (job.is_abandoned) {
		free(text);
		text = NULL;
		job.n_output = 0;
	}
	job.result = text;
	job.n_result = text ? n_bytes : 0;
	job.is_abandoned = false;
	pthread_mutex_unlock(&lock);
}

static bool is_queued(void)
{
	return worker_phase() == JOB_QUEUED;
}

/* Not inlined: cancellation leaves the worker's loop by longjmp, which may clobber variables. */
static __attribute__((noinline)) void run_job(void)
{
	enum outcome outcome;
	static const struct python_side side = { take_output, set_probes, allow_interrupts };
	char *code, *text;
	size_t n_code, n_text;
	int state;

	if (!python_prepare(is_queued))
		return;
	state = python_enter();
	code = take_job(&n_code);
	if (code) {
		python_evaluate(code, n_code, &side, &outcome, &text, &n_text);
		put_result(outcome, text, n_text);
		free(code);
	}
	python_leave(state);
}

static bool wait_for_job(uintptr_t mine)
{
	bool goes_on;

	pthread_mutex_lock(&lock);
	while (job.phase != JOB_QUEUED && !job.takes_turn && !job.is_stopping && generation == mine)
		pthread_cond_wait(&changed, &lock);
	job.takes_turn = false;
	goes_on = !job.is_stopping && generation == mine;
	pthread_mutex_unlock(&lock);
	return goes_on;
}

/* Also runs if a finalizing interpreter ends the thread in python_enter(). */
static void report_end(void *mine)
{
	sanitizer_forget_frames();
	pthread_mutex_lock(&lock);
	if (generation == (uintptr_t)mine) {
		job.has_died = true;
		__atomic_store_n(&agent.worker, 0, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&lock);
}

static void *work(void *mine)
{
	(void)prctl(PR_SET_NAME, "probing-worker");
	pthread_mutex_lock(&lock);
	if (generation == (uintptr_t)mine)
		__atomic_store_n(&agent.worker, (int32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&lock);
	pthread_cleanup_push(report_end, mine);
	while (wait_for_job((uintptr_t)mine)) {
		if (!python_is_running())
			break;
		run_job();
	}
	pthread_cleanup_pop(1);
	return NULL;
}

/* ---- Listener ---- */

int worker_start(void)
{
	uintptr_t number;
	pthread_t thread;
	int r;

	pthread_mutex_lock(&lock);
	free(job.code);
	free(job.result);
	memset(&job, 0, sizeof job);
	agent.worker = 0;
	number = ++generation;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	r = agent_thread_with(work, (void *)number, STACK_BYTES, &thread);
	if (r == 0)
		pthread_detach(thread); /* the interpreter may end it */
	return r;
}

void worker_take_turn(void)
{
	pthread_mutex_lock(&lock);
	job.takes_turn = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

void worker_reset(void)
{
	const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
	const pthread_cond_t unused = PTHREAD_COND_INITIALIZER;

	lock = unlocked; /* a thread lost in the fork may have held it */
	changed = unused;
	job.code = job.result = NULL; /* not freed, because a lost thread may have been freeing them */
	python_forget_evaluation();
}

bool worker_submit(char *code, size_t n_bytes)
{
	bool is_free;

	pthread_mutex_lock(&lock);
	is_free = job.phase == JOB_NONE && !job.has_died;
	if (is_free) {
		free(job.code);
		job.code = code;
		job.n_code = n_bytes;
		job.n_output = 0;
		job.phase = JOB_QUEUED;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return is_free;
}

enum job_phase worker_phase(void)
{
	enum job_phase phase;

	pthread_mutex_lock(&lock);
	phase = job.phase;
	pthread_mutex_unlock(&lock);
	return phase;
}

bool worker_has_died(void)
{
	bool has_died;

	pthread_mutex_lock(&lock);
	has_died = job.has_died;
	pthread_mutex_unlock(&lock);
	return has_died;
}

bool worker_cancel(void)
{
	bool was_queued;

	pthread_mutex_lock(&lock);
	was_queued = job.phase == JOB_QUEUED;
	if (was_queued)
		job.phase = JOB_NONE;
	pthread_mutex_unlock(&lock);
	return was_queued;
}

void worker_abandon(void)
{
	pthread_mutex_lock(&lock);
	if (job.phase == JOB_QUEUED || job.phase == JOB_DONE) {
		job.phase = JOB_NONE;
		job.n_output = 0;
	}
	job.is_abandoned = job.phase == JOB_RUNNING;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* ---- Interrupts ---- */

/* Whether that evaluation can be interrupted; if so, stop_interrupts() waits for end_interrupt(). */
static bool begin_interrupt(uint64_t number, unsigned long *ret_thread)
{
	bool is_it;

	pthread_mutex_lock(&lock);
	is_it = job.phase == JOB_RUNNING && job.number == number && job.is_interruptible;
	if (is_it) {
		job.n_interrupting++;
		job.was_interrupted = true;
		*ret_thread = job.python_thread;
	}
	pthread_mutex_unlock(&lock);
	return is_it;
}

static void end_interrupt(void)
{
	pthread_mutex_lock(&lock);
	job.n_interrupting--;
	pthread_mutex_unlock(&lock);
}

/* A thread per interrupt, because the listener must not wait for the GIL. */
static void *interrupt(void *data)
{
	unsigned long thread;
	int state;

	if (!python_is_running())
		return NULL;
	state = python_enter();
	if (begin_interrupt((uint64_t)(uintptr_t)data, &thread)) {
		python_interrupt(thread);
		end_interrupt();
	}
	python_leave(state);
	return NULL;
}

bool worker_interrupt(void)
{
	bool needs_thread;
	pthread_t thread;
	uint64_t number;

	pthread_mutex_lock(&lock);
	number = job.number;
	needs_thread = job.phase == JOB_RUNNING && job.is_interruptible;
	job.is_interrupt_wanted = job.phase == JOB_RUNNING;
	pthread_mutex_unlock(&lock);
	if (!needs_thread)
		return true;
	if (agent_thread_with(interrupt, (void *)(uintptr_t)number, 1 << 18, &thread) < 0)
		return false;
	pthread_detach(thread);
	return true;
}

size_t worker_take_output(int *ret_stream, char *to, size_t room)
{
	size_t n;

	pthread_mutex_lock(&lock);
	n = job.n_output < room ? job.n_output : room;
	memcpy(to, job.output, n);
	memmove(job.output, job.output + n, job.n_output - n);
	job.n_output -= n;
	*ret_stream = job.stream;
	if (n > 0)
		pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return n;
}

void worker_take_result(enum outcome *ret, char **ret_text, size_t *ret_bytes)
{
	pthread_mutex_lock(&lock);
	*ret = job.outcome;
	*ret_text = job.result;
	*ret_bytes = job.n_result;
	job.result = NULL;
	job.phase = JOB_NONE;
	pthread_mutex_unlock(&lock);
}

bool worker_stop(void)
{
	bool is_busy;

	pthread_mutex_lock(&lock);
	is_busy = job.phase == JOB_RUNNING;
	if (!is_busy) {
		job.is_stopping = true;
		job.phase = JOB_NONE;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return !is_busy;
}
