/* SPDX-License-Identifier: MIT */
/* backtrace.c - all threads of a process, one after the other; see backtrace.h.
 *
 * A separate thread stops the others, and ends before symbols are resolved: at its end
 * the kernel detaches all threads that are still seized.
 */
#include "src/backtrace/backtrace.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/core_file.h"
#include "base/proc.h"
#include "base/util.h"
#include "src/backtrace/frame_names.h"
#include "src/backtrace/session.h"
#include "src/backtrace/stop.h"
#include "src/backtrace/tasks.h"
#include "src/backtrace/target.h"
#include "src/backtrace/waits.h"

enum { MAX_COMMAND_BYTES = 1 << 16, MAX_NAME_BYTES = 64, STOPPING_NICE = -10 };

/* A stack before its frames are named. */
struct raw_stack {
	struct frame *frames;
	size_t n_frames;
	struct py_tasks tasks;
};

struct look {
	struct backtrace_session *session;
	const struct backtrace_options *options;
	struct core_file *core; /* NULL: a process */
	struct target *target;
	struct backtrace *backtrace;
	struct sockets *sockets;  /* of the process; NULL for a core file */
	struct raw_stack *stacks; /* one per thread */
	pid_t *tids;
	size_t n_tids;
	int result;
};

static void raw_done(struct raw_stack *raw)
{
	free(raw->frames);
	py_tasks_done(&raw->tasks);
}

static void thread_done(struct backtrace_thread *thread)
{
	backtrace_tasks_done(thread);
	backtrace_wait_done(&thread->wait);
	free(thread->name);
	free(thread->wchan);
	free(thread->python_name);
	free(thread->frames);
	for (size_t i = 0; i < thread->n_locals; i++)
		py_locals_done(&thread->locals[i]);
	free(thread->locals);
}

void backtrace_free(struct backtrace *backtrace)
{
	if (!backtrace)
		return;
	for (size_t i = 0; i < backtrace->n_threads; i++)
		thread_done(&backtrace->threads[i]);
	free(backtrace->threads);
	free(backtrace->command);
	frame_names_free(backtrace->names);
	free(backtrace);
}

void backtrace_freep(struct backtrace **backtrace)
{
	backtrace_free(*backtrace);
}

static int store_stack(struct backtrace_thread *thread, struct raw_stack *raw, const struct stack *stack)
{
	raw->frames = calloc(stack->n_frames + 1, sizeof *raw->frames);
	if (!raw->frames)
		return -ENOMEM;
	if (stack->n_frames > 0)
		memcpy(raw->frames, stack->frames, stack->n_frames * sizeof *raw->frames);
	raw->n_frames = stack->n_frames;
	thread->verdict = stack->verdict;
	thread->end = stack->end;
	return 0;
}

static void take_python_state(const struct look *look, struct backtrace_thread *thread)
{
	thread->is_python = target_state(look->target, thread->tid, &thread->python);
	thread->waits_for_gil = thread->is_python ? target_waits_for_gil(look->target, thread->tid) : PY_UNKNOWN;
	if (thread->python.holds_gil == PY_YES) /* the thread runs: the two readings differ in time */
		thread->waits_for_gil = PY_NO;
	thread->is_idle = (thread->state == 'S' || thread->state == 'D') && thread->waits_for_gil != PY_YES;
}

/* Read the tasks while the thread is stopped, if possible. */
static int take_tasks(const struct look *look, struct backtrace_thread *thread, struct raw_stack *raw)
{
	int r;

	if (!look->options->async || !thread->is_python)
		return 0;
	r = target_tasks(look->target, thread->tid, &raw->tasks);
	thread->has_tasks = r >= 0;
	return r == -ENOMEM ? r : 0;
}

/* Read local variables before the thread continues. */
static int take_locals(struct look *look, struct backtrace_thread *thread, const struct stack *stack)
{
	if (!look->options->locals || !look->target->runtime)
		return 0;
	thread->locals = calloc(stack->n_frames + 1, sizeof *thread->locals);
	if (!thread->locals)
		return -ENOMEM;
	thread->n_locals = stack->n_frames;
	return target_locals(look->target, stack, thread->locals);
}

static int take_from_memory(struct look *look, struct backtrace_thread *thread, struct raw_stack *raw)
{
	struct stack stack = { .end = STACK_TRUNCATED, .verdict = VERDICT_PYTHON };
	int r = 0;

	if (look->target->runtime)
		r = target_python_stack(look->target, thread->tid, &stack);
	if (r >= 0)
		r = take_locals(look, thread, &stack);
	take_python_state(look, thread);
	stack.verdict = VERDICT_PYTHON;
	if (r >= 0)
		r = store_stack(thread, raw, &stack);
	return r < 0 ? r : take_tasks(look, thread, raw);
}

/* The thread and its memory do not change. */
static int take_held(struct look *look, struct backtrace_thread *thread, const struct regs *regs, struct raw_stack *raw)
{
	struct stack stack;
	int r;

	r = target_stack(look->target, thread->tid, regs, &stack);
	if (r >= 0)
		r = take_locals(look, thread, &stack);
	if (r >= 0)
		r = store_stack(thread, raw, &stack);
	take_python_state(look, thread);
	return r < 0 ? r : take_tasks(look, thread, raw);
}

static int take_stopped(struct look *look, struct backtrace_thread *thread, const struct stop *stop,
			struct raw_stack *raw)
{
	struct regs regs;
	int r;

	r = stop_registers(stop, &regs);
	if (r >= 0 && !backtrace_wait_is_of(&thread->wait, &regs))
		backtrace_wait_done(&thread->wait);
	if (r >= 0)
		r = take_held(look, thread, &regs, raw);
	thread->stopped_ns = stop_end(stop);
	return r;
}

/* A core file has neither thread names nor the kernel functions in which threads slept. */
static int take_dumped(struct look *look, const struct core_thread *dumped, struct backtrace_thread *thread,
		       struct raw_stack *raw)
{
	bool is_main = dumped->tid == look->core->pid;

	thread->tid = dumped->tid;
	thread->state = '?';
	thread->stop = STOP_DUMPED;
	thread->name = strdup(is_main ? look->core->name : "");
	thread->wchan = strdup("");
	if (!thread->name || !thread->wchan)
		return -ENOMEM;
	return take_held(look, thread, &dumped->regs, raw);
}

static bool has_ended(const struct look *look, pid_t tid)
{
	struct proc_stat stat;

	return proc_stat_read(look->options->pid, tid, &stat) < 0 || stat.state == 'Z' || stat.state == 'X';
}

/* Read the kernel function before stopping the thread, which wakes it up. */
static int read_wchan(const struct look *look, struct backtrace_thread *thread)
{
	char file[64];

	snprintf(file, sizeof file, "task/%d/wchan", (int)thread->tid);
	free(TAKE(thread->wchan));
	thread->wchan = proc_text(look->options->pid, file, MAX_NAME_BYTES);
	if (thread->wchan && strcmp(thread->wchan, "0") == 0) /* unknown, or not permitted */
		thread->wchan[0] = '\0';
	return thread->wchan ? 0 : -ENOMEM;
}

/* The thread did not stop in time: report where it sleeps. */
static int take_asleep(struct look *look, struct backtrace_thread *thread, struct raw_stack *raw)
{
	struct proc_stat stat;
	int r;

	thread->stop = STOP_TIMED_OUT;
	if (proc_stat_read(look->options->pid, thread->tid, &stat) == 0)
		thread->state = stat.state;
	r = read_wchan(look, thread);
	return r < 0 ? r : take_from_memory(look, thread, raw);
}

static int stop_and_take(struct look *look, struct backtrace_thread *thread, struct raw_stack *raw)
{
	struct stop stop;
	int r;

	r = stop_thread(look->options->pid, thread->tid, &stop);
	if (r >= 0)
		r = take_stopped(look, thread, &stop, raw);
	if (r >= 0 || r == -ESRCH || r == -ENOMEM)
		return r;
	if (has_ended(look, thread->tid)) /* ptrace(2) returns EPERM for an ended thread */
		return -ESRCH;
	if (r == -ETIMEDOUT)
		return take_asleep(look, thread, raw);
	thread->stop = r == -EOPNOTSUPP ? STOP_OTHER_MACHINE : STOP_REFUSED;
	if (thread->stop == STOP_REFUSED)
		look->backtrace->refused = r;
	return take_from_memory(look, thread, raw);
}

/* -ESRCH: the thread has ended meanwhile. */
static int take_thread(struct look *look, pid_t tid, struct backtrace_thread *thread, struct raw_stack *raw)
{
	struct proc_stat stat;
	char file[64];
	int r;

	r = proc_stat_read(look->options->pid, tid, &stat);
	if (r < 0)
		return r;
	snprintf(file, sizeof file, "task/%d/comm", (int)tid);
	thread->tid = tid;
	thread->state = stat.state;
	thread->name = proc_text(look->options->pid, file, MAX_NAME_BYTES);
	if (!thread->name)
		return -ENOMEM;
	r = read_wchan(look, thread);
	if (r >= 0 && (stat.state == 'S' || stat.state == 'D'))
		r = backtrace_wait_read(look->target, look->sockets, tid, &thread->wait);
	if (r < 0)
		return r;
	if (stat.state == 'Z') {
		thread->stop = STOP_HAS_ENDED;
		return store_stack(thread, raw, &(struct stack){ .verdict = VERDICT_NO_PYTHON });
	}
	if (!look->options->no_stop)
		return stop_and_take(look, thread, raw);
	thread->stop = STOP_NOT_WANTED;
	return take_from_memory(look, thread, raw);
}

static void tell_progress(const struct look *look, const char *what, size_t n_done, size_t n_all)
{
	if (look->options->progress)
		look->options->progress(look->options->progress_data, what, n_done, n_all);
}

/* Main function of the thread that stops others. */
static void *take_all(void *data)
{
	struct look *look = data;
	struct backtrace *backtrace = look->backtrace;

	/*
	 * While this thread waits for a processor, a target thread stays stopped, so raise its priority. Fails for an
	 * ordinary user.
	 */
	if (!look->core)
		(void)setpriority(PRIO_PROCESS, 0, STOPPING_NICE);

	for (size_t i = 0; i < look->n_tids; i++) {
		struct backtrace_thread thread = { 0 };
		struct raw_stack raw = { 0 };
		int r;

		if (look->options->tid && look->tids[i] != look->options->tid)
			continue;
		tell_progress(look, "threads read", i, look->n_tids);
		r = look->core ? take_dumped(look, &look->core->threads[i], &thread, &raw)
			       : take_thread(look, look->tids[i], &thread, &raw);
		if (r >= 0) {
			look->stacks[backtrace->n_threads] = raw;
			backtrace->threads[backtrace->n_threads++] = thread;
			continue;
		}
		thread_done(&thread);
		raw_done(&raw);
		if (r == -ENOMEM)
			look->result = r;
	}
	return NULL;
}

static int take_in_a_thread(struct look *look)
{
	pthread_t thread;
	int r;

	if (look->core) {
		take_all(look);
		return look->result;
	}
	stop_prepare();
	r = pthread_create(&thread, NULL, take_all, look);
	if (r != 0)
		return -r;
	pthread_join(thread, NULL);
	return look->result;
}

static int name_threads(struct look *look)
{
	CLEANUP(py_thread_names_done) struct py_thread_names names = { 0 };
	struct backtrace *backtrace = look->backtrace;

	if (look->target->runtime && py_thread_names_read(look->target->runtime, &names) == -ENOMEM)
		return -ENOMEM;
	for (size_t i = 0; i < backtrace->n_threads; i++) {
		struct backtrace_thread *thread = &backtrace->threads[i];
		const char *name = thread->is_python ? py_thread_name(&names, thread->python.ident) : NULL;

		thread->python_name = name ? strdup(name) : NULL;
		if (name && !thread->python_name)
			return -ENOMEM;
	}
	return 0;
}

static int name_all(struct look *look)
{
	struct backtrace *backtrace = look->backtrace;
	struct frame_names *names;
	int r;

	r = name_threads(look);
	if (!look->core)
		backtrace_find_holders(backtrace, look->target, look->tids, look->n_tids);
	if (r >= 0)
		r = frame_names_new(look->session, look->target, &names);
	if (r < 0)
		return r;
	TAKE(look->target);
	backtrace->names = names;
	for (size_t i = 0; i < backtrace->n_threads && r >= 0; i++)
		r = frame_names_start(names, look->options, look->stacks[i].frames, look->stacks[i].n_frames);
	for (size_t i = 0; i < backtrace->n_threads && r >= 0; i++) {
		struct backtrace_thread *thread = &backtrace->threads[i];

		tell_progress(look, "threads named", i, backtrace->n_threads);
		r = frame_names_put(names, look->options, look->stacks[i].frames, look->stacks[i].n_frames,
				    thread->locals, &thread->frames, &thread->n_frames);
		if (r >= 0 && thread->has_tasks)
			r = backtrace_name_tasks(names, look->options, &look->stacks[i].tasks, look->stacks[i].frames,
						 look->stacks[i].n_frames, thread);
	}
	return r;
}

static void look_done(struct look *look)
{
	for (size_t i = 0; look->stacks && i < look->n_tids; i++)
		raw_done(&look->stacks[i]);
	free(look->stacks);
	free(look->tids);
	core_file_free(look->core);
	sockets_free(look->sockets);
	target_free(look->target);
	backtrace_free(look->backtrace);
}

static int open_process(struct look *look)
{
	int r;

	r = proc_tasks(look->options->pid, &look->tids, &look->n_tids);
	if (r >= 0)
		r = sockets_new(look->options->pid, &look->sockets);
	return r < 0 ? r : target_open(look->options->pid, look->session->modules, &look->target);
}

static int open_core(struct look *look)
{
	int r;

	r = core_file_read(look->options->core, &look->core);
	if (r < 0)
		return r;
	look->n_tids = look->core->n_threads;
	look->tids = calloc(look->n_tids, sizeof *look->tids);
	if (!look->tids)
		return -ENOMEM;
	for (size_t i = 0; i < look->n_tids; i++)
		look->tids[i] = look->core->threads[i].tid;
	return target_open_core(look->options->core, look->options->executable, look->core, look->session->modules,
				&look->target);
}

static int prepare(struct look *look)
{
	struct backtrace *backtrace;
	int r;

	r = look->options->core ? open_core(look) : open_process(look);
	if (r < 0)
		return r;
	if (look->options->no_stop && !look->target->runtime)
		return -EOPNOTSUPP;
	if (look->options->async && look->target->runtime)
		py_asyncio_look(look->target->runtime, look->target->space);
	if (look->options->locals && look->target->runtime && py_locals_prepare(look->target->runtime) < 0)
		return -ENOMEM;
	look->stacks = calloc(look->n_tids + 1, sizeof *look->stacks);
	look->backtrace = backtrace = calloc(1, sizeof *backtrace);
	if (!backtrace || !look->stacks)
		return -ENOMEM;
	backtrace->pid = look->core ? look->core->pid : look->options->pid;
	backtrace->is_dumped = look->core != NULL;
	backtrace->signal = look->core ? look->core->signal : 0;
	backtrace->signalled = look->core ? look->core->threads[0].tid : 0;
	backtrace->n_files_missing = look->target->n_files_missing;
	backtrace->threads = calloc(look->n_tids + 1, sizeof *backtrace->threads);
	backtrace->command = look->core ? strdup(look->core->command)
					: proc_text(backtrace->pid, "cmdline", MAX_COMMAND_BYTES);
	if (!backtrace->threads || !backtrace->command)
		return -ENOMEM;
	memcpy(backtrace->python, look->target->python, sizeof backtrace->python);
	if (!look->target->runtime && look->target->python_error != -ENOENT)
		backtrace->python_error = look->target->python_error;
	return 0;
}

static bool anybody_was_stopped(const struct backtrace *backtrace)
{
	for (size_t i = 0; i < backtrace->n_threads; i++)
		if (backtrace->threads[i].stop == STOP_DONE)
			return true;
	return false;
}

static int look_at(struct look *look)
{
	int r;

	r = prepare(look);
	if (r >= 0)
		r = take_in_a_thread(look);
	if (r < 0)
		return r;
	if (look->backtrace->n_threads == 0)
		return -ESRCH;
	if (look->backtrace->refused && !look->target->runtime && !anybody_was_stopped(look->backtrace))
		return look->backtrace->refused;
	return name_all(look);
}

int backtrace_take(struct backtrace_session *session, const struct backtrace_options *options, struct backtrace **ret)
{
	CLEANUP(look_done) struct look look = { .session = session, .options = options };
	int r;

	r = look_at(&look);
	if (r < 0)
		return r;
	*ret = TAKE(look.backtrace);
	return 0;
}
