/* SPDX-License-Identifier: MIT */
/* inject.c - the steps of an injection: see inject.h.
 *
 * For the method thread, all threads are tried one after the other, first those that sleep in a restartable system
 * call. A refused try stops a thread for some hundred microseconds. The chosen one, in one stop, calls:
 *
 *   mmap            a page for struct agent_stub
 *   open            the agent's file; memfd_create(2), filled by us, if the process' mounts have another file there
 *   mmap            the file's pages with the stub; skipped, together with open, if the library is loaded already
 *   stub()          makes a thread, which does the rest
 *
 * A failure before the stub's call is undone by that thread. A failure of the stub is undone once no thread is in it, in
 * another stop. Otherwise the pages stay mapped.
 */
#include "src/inject/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/task_ids.h"
#include "base/util.h"
#include "src/inject/call.h"
#include "src/inject/script.h"
#include "src/inject/seccomp.h"

enum {
	PAGE = 4096,
	STUB_BYTES = 2 * PAGE,
	START_PATIENCE_MS = 15000, /* the target's loader and the machine may be busy */
	BETWEEN_ROUNDS_US = 2000,
	MAX_STOPS = 20, /* of the main thread, for its filters: signals may come in between */
	MAX_FILE_BYTES = 8 << 20,
	MFD_EXECUTABLE = 0x10, /* MFD_EXEC of Linux 6.3 */
};

struct injection {
	const struct inject_options *options;
	struct inject_result *result;
	struct inject_target *target;
	struct agent_library library;
	struct call call;
	uint64_t page, code; /* in the process; 0: not mapped */
	int64_t fd;          /* in the process; -1: not open */
	bool is_copied;      /* the file is a memfd */
	uint32_t agent;      /* options of its start */
	bool undoes;         /* the next thread that is used takes back what a stub has left */
	const char *failed;  /* the system call that the process could not make; NULL: all could be made */
};

static void nap(unsigned us)
{
	const struct timespec a_while = { .tv_nsec = us * 1000L };

	nanosleep(&a_while, NULL);
}

static int __attribute__((format(printf, 3, 4))) say(struct inject_result *result, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(result->why, sizeof result->why, format, arguments);
	va_end(arguments);
	return error;
}

/* ---- In the stopped thread ---- */

static int named_call(struct injection *in, const char *name, long number, const uint64_t arguments[6], int64_t *ret)
{
	int r = call_system(&in->call, number, arguments, ret);

	in->failed = NULL;
	if (r < 0 || *ret >= 0 || *ret <= -4096)
		return r;
	in->failed = name;
	return (int)*ret;
}
#define SYSTEM_CALL(in, name, arguments, ret) named_call(in, #name, SYS_##name, arguments, ret)

static int map_page(struct injection *in)
{
	const uint64_t arguments[6] = { 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0 };
	int64_t got;
	int r = SYSTEM_CALL(in, mmap, arguments, &got);

	if (r >= 0)
		in->page = (uint64_t)got;
	return r;
}

/* Whether the process sees the same file at that path. */
static bool is_same_file(struct injection *in)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)in->target->pid, (int)in->fd);
	return fstat(elf_file_fd(in->library.elf), &ours) == 0 && stat(path, &theirs) == 0 &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

static void close_file(struct injection *in)
{
	const uint64_t arguments[6] = { (uint64_t)in->fd };
	int64_t got;

	(void)SYSTEM_CALL(in, close, arguments, &got);
	in->fd = -1;
}

static int open_file(struct injection *in)
{
	const uint64_t arguments[6] = { (uint64_t)AT_FDCWD, in->page, O_RDONLY | O_CLOEXEC, 0 };
	int r = inject_target_write(in->target->pid, in->page, in->library.path, strlen(in->library.path) + 1);

	if (r >= 0)
		r = SYSTEM_CALL(in, openat, arguments, &in->fd);
	if (r < 0) {
		in->fd = -1;
		return r;
	}
	if (is_same_file(in))
		return 0;
	close_file(in);
	return -ENOENT;
}

/* Write through /proc, from this process. */
static int fill_file(const struct injection *in)
{
	CLEANUP(freep) char *bytes = NULL;
	CLEANUP(closep) int to = -1;
	char path[64];
	size_t n_bytes;
	int r;

	r = read_file(in->library.path, MAX_FILE_BYTES, &bytes, &n_bytes);
	if (r < 0)
		return r;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)in->target->pid, (int)in->fd);
	to = open(path, O_WRONLY | O_CLOEXEC);
	if (to < 0)
		return -errno;
	return write(to, bytes, n_bytes) == (ssize_t)n_bytes ? 0 : -EIO;
}

static int make_file(struct injection *in)
{
	uint64_t arguments[6] = { in->page, MFD_CLOEXEC | MFD_EXECUTABLE };
	int r = inject_target_write(in->target->pid, in->page, AGENT_FILE, sizeof AGENT_FILE);

	if (r >= 0)
		r = SYSTEM_CALL(in, memfd_create, arguments, &in->fd);
	if (r == -EINVAL) {
		arguments[1] = MFD_CLOEXEC;
		r = SYSTEM_CALL(in, memfd_create, arguments, &in->fd);
	}
	if (r < 0) {
		in->fd = -1;
		return r;
	}
	in->is_copied = true;
	return fill_file(in);
}

static int map_code(struct injection *in)
{
	const uint64_t arguments[6] = { 0,           STUB_BYTES,       PROT_READ | PROT_EXEC,
					MAP_PRIVATE, (uint64_t)in->fd, in->library.stub_offset & ~(uint64_t)(PAGE - 1) };
	int64_t got;
	int r = SYSTEM_CALL(in, mmap, arguments, &got);

	if (r >= 0)
		in->code = (uint64_t)got;
	return r;
}

static int put_stub(struct injection *in, uint64_t entry)
{
	const struct inject_target *target = in->target;
	struct agent_stub stub = {
		.pthread_create = target->pthread_create,
		.pthread_self = target->pthread_self,
		.pthread_detach = target->pthread_detach,
		.dlopen = target->dlopen,
		.dlsym = target->dlsym,
		.dlerror = target->dlerror,
		.errno_location = target->errno_location,
		.close = target->close,
		.syscall = target->syscall,
		.entry = entry,
		.fd = in->is_copied ? (int32_t)in->fd : -1,
		.options = in->agent,
		.entry_name = AGENT_ENTRY,
		.create_error = -1,
	};

	/* glibc identifies a library by its path, so use one that is unique. */
	if (in->is_copied)
		snprintf(stub.path, sizeof stub.path, "/proc/self/task/../fd/%d", (int)in->fd);
	else
		memcpy(stub.path, in->library.path, sizeof stub.path);
	return inject_target_write(target->pid, in->page, &stub, sizeof stub);
}

/* Undo what was created so far. A thread that runs again cannot do it. */
static void take_back(struct injection *in)
{
	uint64_t arguments[6] = { in->page, PAGE };
	int64_t got;

	if (in->fd >= 0)
		close_file(in);
	if (in->page)
		(void)SYSTEM_CALL(in, munmap, arguments, &got);
	arguments[0] = in->code;
	arguments[1] = STUB_BYTES;
	if (in->code)
		(void)SYSTEM_CALL(in, munmap, arguments, &got);
	in->page = in->code = 0;
}

/* Whether the thread is still stopped after an error. */
static bool is_held(int error)
{
	return error != -ECANCELED && error != -ESRCH && error != -ETIMEDOUT;
}

static int map_stub(struct injection *in)
{
	int r = open_file(in);

	if (r < 0 && is_held(r))
		r = make_file(in);
	if (r >= 0)
		r = map_code(in);
	if (r >= 0 && !in->is_copied)
		close_file(in);
	return r;
}

static int run_stub(struct injection *in, uint64_t entry)
{
	uint64_t stub = entry - in->library.entry + in->library.stub; /* in a library that is already loaded */
	const char *failed;
	int r;

	in->failed = NULL;
	in->page = in->code = 0;
	in->fd = -1;
	in->is_copied = false;
	r = map_page(in);
	if (r >= 0 && !entry) {
		r = map_stub(in);
		stub = in->code + (in->library.stub_offset & (PAGE - 1));
	}
	if (r >= 0)
		r = put_stub(in, entry);
	if (r >= 0)
		return call_function(&in->call, stub, in->page);
	failed = in->failed;
	if (is_held(r))
		take_back(in);
	if (!failed)
		return r;
	return say(in->result, r, "process %d cannot call %s, which the agent needs: %s%s", (int)in->target->pid,
		   failed, strerror(-r),
		   seccomp_count(in->target->pid, in->call.tid) > 0 ? " (it has a seccomp filter)" : "");
}

/* ---- Threads ---- */

static int find_calls(struct injection *in)
{
	const struct inject_target *target = in->target;
	size_t n_bytes = target->code_end - target->code_start;
	CLEANUP(freep) uint8_t *code = malloc(n_bytes);

	if (!code)
		return -ENOMEM;
	if (remote_read(target->remote, RADDR(target->code_start), code, n_bytes) < 0 ||
	    call_find(code, n_bytes, target->code_start, &in->call) < 0)
		return say(in->result, -EOPNOTSUPP, "the libc of process %d is of a kind that is not known here",
			   (int)target->pid);
	return 0;
}

static int check_filters(struct injection *in, pid_t tid, char why[INJECT_WHY_BYTES])
{
	return seccomp_check(in->target->pid, tid, SECCOMP_START | SECCOMP_TALK, in->options->trusts_filter, why,
			     INJECT_WHY_BYTES);
}

/* Runs while the thread is stopped. -EAGAIN, -EFAULT: try another thread, or later. */
static int use_stopped(struct injection *in, uint64_t entry)
{
	int r = call_look(&in->call);
	uint64_t since_ns = monotonic_ns();

	if (r >= 0)
		r = place_is_safe(in->target, in->call.tid, &in->call.regs, &in->call.in);
	if (r == 0)
		return -EAGAIN;
	if (r > 0)
		r = check_filters(in, in->call.tid, in->result->why);
	if (r >= 0)
		r = call_begin(&in->call);
	if (r >= 0 && in->undoes)
		take_back(in); /* and the thread restores itself when it goes on */
	else if (r >= 0)
		r = run_stub(in, entry);
	in->result->stopped_ns = monotonic_ns() - since_ns;
	return r;
}

static int try_thread(struct injection *in, pid_t tid, uint64_t entry)
{
	int r;

	in->call.pid = in->target->pid;
	in->call.tid = tid;
	r = trace_stop(in->target->pid, tid);
	if (r < 0)
		return r;
	in->result->n_tries++;
	r = use_stopped(in, entry);
	trace_end(tid);
	if (r == -EAGAIN && place_learn(in->target) < 0)
		return -ENOMEM;
	return r;
}

/* Lower is better. Threads in calls that a stop would end early come last. */
static unsigned rank_of(pid_t pid, pid_t tid)
{
	struct proc_stat stat;
	struct proc_call call;

	if (proc_stat_read(pid, tid, &stat) < 0 || stat.state == 'Z' || stat.state == 'X' || stat.state == 'D')
		return 4;
	if (proc_call_read(pid, tid, &call) < 0 || call.is_running)
		return 1;
	switch (call.number) {
	case SYS_futex:
	case SYS_read:
	case SYS_wait4:
	case SYS_pselect6:
	case SYS_accept4:
		return 0;
	case SYS_epoll_pwait:
	case SYS_nanosleep:
	case SYS_ppoll:
	case SYS_recvfrom:
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
	case SYS_poll:
#endif
		return 3;
	default:
		return 2;
	}
}

/* Try the threads, best first. -EAGAIN: none was usable. */
static int try_all(struct injection *in, uint64_t entry)
{
	CLEANUP(freep) pid_t *tids = NULL;
	CLEANUP(freep) unsigned *ranks = NULL;
	size_t n;
	int r;

	r = proc_tasks(in->target->pid, &tids, &n);
	if (r < 0)
		return r;
	ranks = calloc(n + 1, sizeof *ranks);
	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		ranks[i] = rank_of(in->target->pid, tids[i]);
	for (unsigned rank = 0; rank < 4; rank++)
		for (size_t i = 0; i < n; i++) {
			if (ranks[i] != rank)
				continue;
			r = try_thread(in, tids[i], entry);
			/* Filters belong to threads. One that has others than the main thread is left out. */
			if (r == -EPERM && in->result->why[0] && tids[i] != in->target->pid) {
				in->result->why[0] = '\0';
				continue;
			}
			if (r != -EAGAIN && r != -EFAULT && r != -ESRCH && r != -ETIMEDOUT)
				return r;
		}
	return -EAGAIN;
}

static int try_until_due(struct injection *in, uint64_t entry)
{
	uint64_t due_ns = monotonic_ns() + in->options->patience_ms * UINT64_C(1000000);
	int r;

	trace_prepare();
	while ((r = try_all(in, entry)) == -EAGAIN) {
		if (monotonic_ns() >= due_ns)
			return say(in->result, -EBUSY,
				   "no thread of process %d was at a place where the agent can be loaded safely, in "
				   "%u tries: try again, or with a longer --wait",
				   (int)in->target->pid, in->result->n_tries);
		nap(BETWEEN_ROUNDS_US);
		r = address_space_load(in->target->space);
		if (r < 0)
			return r;
	}
	if (r == -ECANCELED)
		return say(in->result, -EBUSY,
			   "process %d was stopped or signalled at that moment, and nothing was loaded: try again",
			   (int)in->target->pid);
	return r;
}

/* ---- Wait for the agent ---- */

static int read_state(struct injection *in, struct agent_state *ret)
{
	uint64_t base;
	int r = address_space_load(in->target->space);

	if (r >= 0)
		r = inject_target_agent(in->target->space, &in->library, &base);
	if (r >= 0)
		r = remote_read(in->target->remote, RADDR(base + in->library.state), ret, sizeof *ret);
	if (r < 0)
		return r;
	ret->socket[sizeof ret->socket - 1] = ret->reason[sizeof ret->reason - 1] = '\0';
	return ret->magic == AGENT_MAGIC ? 0 : -EXDEV;
}

static int judge_stub(struct injection *in, const struct agent_stub *stub)
{
	pid_t pid = in->target->pid;

	if (stub->create_error > 0)
		return say(in->result, -stub->create_error, "process %d can have no more threads: %s", (int)pid,
			   strerror(stub->create_error));
	if (stub->error[0])
		return say(in->result, -EOPNOTSUPP, "process %d cannot load the agent: %s", (int)pid, stub->error);
	return stub->is_done;
}

/* Wait until the agent reports that it is armed, or an error. */
static int wait_for_agent(struct injection *in)
{
	uint64_t due_ns = monotonic_ns() + START_PATIENCE_MS * UINT64_C(1000000);
	pid_t pid = in->target->pid;
	struct agent_stub stub;

	while (monotonic_ns() < due_ns) {
		struct agent_state *state = &in->result->state;
		int r = remote_read(in->target->remote, RADDR(in->page), &stub, sizeof stub);

		if (r < 0)
			return r;
		stub.error[sizeof stub.error - 1] = '\0';
		r = judge_stub(in, &stub);
		if (r > 0)
			r = read_state(in, state);
		if (r < 0)
			return r;
		if (stub.is_done && state->status == AGENT_ARMED)
			return 0;
		if (stub.is_done && state->status == AGENT_OFF)
			return say(in->result, -EOPNOTSUPP, "the agent in process %d has switched itself off: %s",
				   (int)pid, state->reason);
		nap(500);
	}
	return say(in->result, -ETIMEDOUT,
		   "process %d has a thread for the agent, which waits for the process' dynamic loader: it goes "
		   "on by itself",
		   (int)pid);
}

/* ---- After a failure ---- */

/* Whether a thread of the process has, or may have, that number in its own PID namespace. */
static bool has_thread(const struct injection *in, struct task_ids *ids, pid_t tid)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n;
	int r = proc_tasks(in->target->pid, &tids, &n);

	for (size_t i = 0; r >= 0 && i < n; i++) {
		pid_t own = 0;

		r = task_ids_own(ids, tids[i], &own);
		if (r >= 0 && own == tid)
			return true;
		r = r == -ESRCH ? 0 : r; /* that one has ended */
	}
	return r < 0 && r != -ESRCH;
}

/* Whether the thread that was used has left the stub, and the one that it has made, if any, has ended. */
static bool is_stub_over(const struct injection *in, const struct agent_stub *stub, struct task_ids *ids)
{
	return stub->create_error > 0 || (stub->is_done && !has_thread(in, ids, stub->tid));
}

/* Wait until no thread is in the stub. @ret: its last state. False: it stays there, or the process has ended. */
static bool wait_for_stub(const struct injection *in, struct agent_stub *ret)
{
	uint64_t due_ns = monotonic_ns() + START_PATIENCE_MS * UINT64_C(1000000);
	CLEANUP(task_ids_freep) struct task_ids *ids = NULL;

	if (task_ids_new(in->target->pid, &ids) < 0)
		return false;
	while (monotonic_ns() < due_ns && remote_read(in->target->remote, RADDR(in->page), ret, sizeof *ret) >= 0) {
		if (is_stub_over(in, ret, ids))
			return true;
		nap(BETWEEN_ROUNDS_US);
	}
	return false;
}

/* Unmap the pages of a stub that has failed, and close its file. Where that cannot be done, they stay, unused. */
static void undo_stub(struct injection *in)
{
	char why[INJECT_WHY_BYTES];
	struct agent_stub stub;

	if (!wait_for_stub(in, &stub))
		return;
	if (stub.is_done)
		in->fd = -1; /* it has closed it */
	memcpy(why, in->result->why, sizeof why);
	in->undoes = true;
	(void)try_until_due(in, 0);
	in->undoes = false;
	memcpy(in->result->why, why, sizeof why);
}

/* ---- Inject ---- */

/* Entry of a library that is loaded but off; 0: none. Returns 1 if the agent is armed. */
static int look_for_agent(struct injection *in, uint64_t *ret_entry)
{
	struct agent_state *state = &in->result->state;
	uint64_t base;
	int r = inject_target_agent(in->target->space, &in->library, &base);

	*ret_entry = 0;
	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = read_state(in, state);
	if (r == -EXDEV)
		return say(in->result, r,
			   "another version of the agent is in process %d: only that version's probing can use it, or "
			   "detach it",
			   (int)in->target->pid);
	if (r < 0)
		return r;
	*ret_entry = base + in->library.entry;
	return state->status == AGENT_ARMED || state->status == AGENT_STARTING;
}

/* Another process has begun to start the agent, and may have been killed since. */
static int wait_for_start(struct injection *in)
{
	uint64_t due_ns = monotonic_ns() + START_PATIENCE_MS * UINT64_C(1000000);
	struct agent_state *state = &in->result->state;
	int r = 0;

	while (r >= 0 && state->status == AGENT_STARTING && monotonic_ns() < due_ns) {
		nap(500);
		r = read_state(in, state);
	}
	if (r < 0 || state->status == AGENT_ARMED)
		return r;
	return say(in->result, -EBUSY, "the agent in process %d did not start: %s", (int)in->target->pid,
		   state->reason[0] ? state->reason : "try again");
}

/* An agent that is there remembers that its user trusts the filter. */
static int note_trust(struct injection *in)
{
	uint32_t options = in->result->state.options | AGENT_TRUSTS_FILTER;
	uint64_t base;
	int r;

	if (!in->options->trusts_filter || options == in->result->state.options)
		return 0;
	r = inject_target_agent(in->target->space, &in->library, &base);
	if (r >= 0)
		r = inject_target_write(in->target->pid,
					base + in->library.state + offsetof(struct agent_state, options), &options,
					sizeof options);
	in->result->state.options = options;
	return r;
}

static bool is_armed(void *data)
{
	struct injection *in = data;

	return read_state(in, &in->result->state) == 0 && in->result->state.status == AGENT_ARMED;
}

static int check_running(struct injection *in, pid_t tid, char why[INJECT_WHY_BYTES])
{
	pid_t pid = in->target->pid;
	int stopped = -EAGAIN, r = seccomp_count(pid, tid);

	if (r <= 0)
		return r;
	trace_prepare();
	for (int i = 0; i < MAX_STOPS && stopped == -EAGAIN && !in->target->untraceable[0]; i++) {
		if (i > 0)
			nap(BETWEEN_ROUNDS_US);
		stopped = trace_stop(pid, tid);
	}
	r = check_filters(in, tid, why);
	if (stopped == 0)
		trace_end(tid);
	return r;
}

/* Filters belong to threads. One that has others than the main thread is left out. */
static bool may_run_in(void *data, pid_t tid)
{
	char why[INJECT_WHY_BYTES];

	return check_running(data, tid, why) >= 0;
}

/* Returns 1 if armed, 0: use another way. */
static int by_interpreter(struct injection *in, uint64_t entry)
{
	const struct script_job job = {
		.target = in->target,
		.library = &in->library,
		.entry = entry,
		.options = in->agent,
		.is_only_way = in->target->untraceable[0] || in->options->method == INJECT_BY_INTERPRETER,
		.patience_ms = in->options->patience_ms,
		.is_armed = is_armed,
		.may_run_in = may_run_in,
		.data = in,
	};
	char why[INJECT_WHY_BYTES];
	int r;

	if (in->options->method == INJECT_BY_THREAD)
		return 0;
	in->result->method = INJECT_BY_INTERPRETER;
	r = check_running(in, in->target->pid, in->result->why);
	if (r < 0)
		return r;
	r = script_inject(&job, why);
	if (r == 0 && in->options->method == INJECT_BY_INTERPRETER)
		return say(in->result, -EOPNOTSUPP, "Python in process %d does not load the agent itself: %s",
			   (int)in->target->pid, why);
	return r;
}

static int by_thread(struct injection *in, uint64_t entry)
{
	int r;

	in->result->method = INJECT_BY_THREAD;
	if (call_refusal())
		return say(in->result, -EOPNOTSUPP, "%s", call_refusal());
	if (in->target->untraceable[0])
		return say(in->result, -EPERM, "%s", in->target->untraceable);
	r = find_calls(in);
	if (r >= 0)
		r = try_until_due(in, entry);
	if (r < 0)
		return r;
	r = wait_for_agent(in);
	if (r < 0)
		undo_stub(in);
	return r;
}

/* Any thread may write rows. A filter that only forbids them leaves all else of the agent. */
static void check_rows(struct injection *in)
{
	char ignored[INJECT_WHY_BYTES];

	if (inject_check(in->target->pid, INJECT_ROWS, true, ignored) == -EPERM)
		in->agent |= AGENT_NO_ROWS;
}

static int inject_into(struct injection *in)
{
	uint64_t entry;
	int r = look_for_agent(in, &entry);

	if (r > 0) {
		in->result->was_there = true;
		r = wait_for_start(in);
		return r < 0 ? r : note_trust(in);
	}
	if (r >= 0) {
		check_rows(in);
		r = by_interpreter(in, entry);
	}
	if (r == 0)
		r = by_thread(in, entry);
	return r < 0 ? r : 0;
}

int inject(pid_t pid, const struct inject_options *options, struct inject_result *ret)
{
	struct injection in = { .options = options, .result = ret, .agent = options->agent, .fd = -1 };
	int r;

	*ret = (struct inject_result){ 0 };
	if (options->trusts_filter)
		in.agent |= AGENT_TRUSTS_FILTER;
	r = agent_library_open(options->library, &in.library);
	if (r < 0)
		return say(ret, r, "the agent's library %s cannot be read: %s", options->library, strerror(-r));
	r = inject_target_open(pid, &in.target, ret->why);
	if (r >= 0)
		r = inject_into(&in);
	inject_target_free(in.target);
	agent_library_done(&in.library);
	return r;
}

int inject_find(pid_t pid, const char *library, struct agent_state *ret)
{
	CLEANUP(inject_target_freep) struct inject_target *target = calloc(1, sizeof *target);
	struct inject_result result = { 0 };
	struct injection in = { .target = target, .result = &result };
	int r;

	if (!target)
		return -ENOMEM;
	target->pid = pid;
	r = agent_library_open(library, &in.library);
	if (r < 0)
		return r;
	r = module_table_new(&target->modules);
	if (r >= 0)
		r = address_space_new(pid, target->modules, &target->space);
	if (r >= 0)
		r = remote_open_process(pid, &target->remote);
	if (r >= 0)
		r = read_state(&in, ret);
	agent_library_done(&in.library);
	return r;
}
