/* SPDX-License-Identifier: MIT */
/* crash.c - see crash.h.
 *
 * The writer is no child of this process: a process between the two ends at once, so that the program's wait(2) sees neither,
 * and no SIGCHLD comes. It ends when the pipe does that the listening thread alone has: at the agent's end, at exec and at the
 * end of the process.
 *
 * The handler is async-signal-safe: it writes memory, waits in futex(2), and calls sigaction(2). A report is written once in a
 * process' life. A program whose own handler repairs what has happened goes on afterwards, with one report.
 */
#include "src/agent/crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "src/agent/private.h"

enum {
	STACK_BYTES = 1 << 16,
	READY_MS = 5000,   /* the writer may take as long to start, */
	REPORT_MS = 30000, /* and to write a report */
	LOOK_MS = 100,
	MAX_PATH = 4096,
	N_SIGNALS = 6,
};

static const int signals[N_SIGNALS] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT };

static struct {
	struct crash_page *page;
	int pipe; /* of the listening thread; -1: none */
	bool is_on, is_installed;
	bool is_loud;
	uint32_t is_over; /* futex: that report is written, and announced */
	bool is_taken;    /* the one report has been asked for */
	struct sigaction previous[N_SIGNALS];
	bool is_in[N_SIGNALS]; /* ours is installed; another one in its place may call it */
	bool is_set;
	const char *why;
} on = { .pipe = -1 };

static char why[768];

/* ---- The report ---- */

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static void wait_for(uint32_t *word, unsigned limit_ms, int32_t writer)
{
	const struct timespec a_while = { .tv_nsec = LOOK_MS * 1000000 };

	for (unsigned ms = 0; ms < limit_ms && __atomic_load_n(word, __ATOMIC_ACQUIRE) == 0; ms += LOOK_MS) {
		(void)futex(word, FUTEX_WAIT, 0, &a_while);
		if (writer && kill(writer, 0) < 0 && errno == ESRCH)
			return;
	}
}

/* Whether the one report is this thread's to fill in and to ask for. */
static bool take(void)
{
	return !__atomic_exchange_n(&on.is_taken, true, __ATOMIC_SEQ_CST);
}

/* A second crashing thread waits for the first one's report, and then continues. */
static void await_report(void)
{
	wait_for(&on.is_over, REPORT_MS, on.page->writer);
}

static bool is_ours(void)
{
	return on.is_on && on.page && (int32_t)syscall(SYS_getpid) == on.page->pid;
}

/* A line on stderr, as the start hook writes them. */
static void say(int32_t pid)
{
	char line[96] = "probing: a crash report was written: probing crash ", digits[16];
	size_t n = strlen(line), n_digits = 0;

	if (!on.is_loud)
		return;
	for (; pid > 0; pid /= 10)
		digits[n_digits++] = (char)('0' + pid % 10);
	while (n_digits > 0)
		line[n++] = digits[--n_digits];
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		errno = 0; /* it has no reader */
}

static bool ask(void)
{
	struct crash_page *page = on.page;
	bool is_written;

	page->tid = (int32_t)syscall(SYS_gettid);
	/* Where only ancestors may trace: kernel.yama.ptrace_scope of 1. */
	(void)prctl(PR_SET_PTRACER, (unsigned long)page->writer, 0, 0, 0);
	__atomic_store_n(&page->request, 1, __ATOMIC_SEQ_CST);
	(void)futex(&page->request, FUTEX_WAKE, 1, NULL);
	wait_for(&page->done, REPORT_MS, page->writer);
	is_written = __atomic_load_n(&page->done, __ATOMIC_ACQUIRE) == CRASH_WRITTEN;
	if (is_written)
		say(page->pid);
	__atomic_store_n(&on.is_over, 1, __ATOMIC_SEQ_CST);
	(void)futex(&on.is_over, FUTEX_WAKE, INT32_MAX, NULL);
	return is_written;
}

bool crash_tell(const char *text, size_t n_text)
{
	struct crash_page *page = on.page;

	if (!is_ours() || !take())
		return false;
	page->signal = 0;
	page->n_text = (uint32_t)(n_text < sizeof page->text ? n_text : sizeof page->text);
	memcpy(page->text, text, page->n_text);
	return ask();
}

/* ---- The handler ---- */

static void note_registers(struct crash_page *page, const ucontext_t *context)
{
#ifdef __x86_64__
	for (unsigned i = 0; i < NGREG && i < CRASH_N_REGISTERS; i++)
		page->registers[i] = (uint64_t)context->uc_mcontext.gregs[i];
	page->n_registers = NGREG < CRASH_N_REGISTERS ? NGREG : CRASH_N_REGISTERS;
#else
	(void)page;
	(void)context;
#endif
}

static void report_signal(int number, const siginfo_t *info, const void *context)
{
	struct crash_page *page = on.page;

	if (!take()) {
		await_report();
		return;
	}
	page->signal = number;
	page->code = info->si_code;
	page->sender = info->si_code > 0 ? 0 : info->si_pid;
	page->address = info->si_code > 0 ? (uint64_t)(uintptr_t)info->si_addr : 0;
	note_registers(page, context);
	(void)ask();
}

/* A signal that the instruction raises again when the handler returns: the kernel then does what it would have done. */
static bool comes_again(int number, const siginfo_t *info)
{
	return info->si_code > 0 && number != SIGABRT && number != SIGSYS &&
	       !(number == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

static void end_by_default(int number, siginfo_t *info, const struct sigaction *previous)
{
	struct sigaction action = *previous;

	action.sa_handler = SIG_DFL;
	(void)sigaction(number, &action, NULL);
	if (!comes_again(number, info)) /* it is blocked until the handler returns */
		(void)syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), syscall(SYS_gettid), number, info);
}

static void call_previous(int number, siginfo_t *info, void *context, const struct sigaction *previous)
{
	sigset_t mask = previous->sa_mask, before;

	if (!(previous->sa_flags & SA_NODEFER))
		sigaddset(&mask, number);
	(void)pthread_sigmask(SIG_BLOCK, &mask, &before);
	if (previous->sa_flags & SA_NODEFER) {
		sigemptyset(&mask);
		sigaddset(&mask, number);
		(void)pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
	}
	if (previous->sa_flags & SA_SIGINFO)
		previous->sa_sigaction(number, info, context);
	else
		previous->sa_handler(number);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void handle(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	struct sigaction *previous = NULL;

	for (unsigned i = 0; i < N_SIGNALS; i++)
		if (signals[i] == number)
			previous = &on.previous[i];
	if (previous->sa_handler == SIG_IGN && !comes_again(number, info)) {
		errno = saved;
		return;
	}
	if (is_ours())
		report_signal(number, info, context);
	if (previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN) {
		end_by_default(number, info, previous);
	} else {
		struct sigaction once = *previous;

		if (previous->sa_flags & SA_RESETHAND)
			previous->sa_handler = SIG_DFL;
		errno = saved;
		call_previous(number, info, context, &once);
	}
	errno = saved;
}

static void install(void)
{
	struct sigaction action = { .sa_sigaction = handle };

	sigemptyset(&action.sa_mask);
	for (unsigned i = 0; i < N_SIGNALS; i++) {
		struct sigaction before;

		if (sigaction(signals[i], NULL, &before) < 0 || before.sa_sigaction == handle)
			continue;
		/* A second one above a handler that calls the first one would be called by that in turn, for ever. */
		if (on.is_in[i] && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
			continue;
		on.previous[i] = before;
		on.is_in[i] = true;
		/*
		 * On a stack for signals only where the program's handler is (faulthandler's is): from there the unwinder cannot
		 * put Python frames in their places. Without it, the kernel ends a thread whose stack is full, as before.
		 */
		action.sa_flags = SA_SIGINFO | (before.sa_flags & (SA_ONSTACK | SA_RESTART));
		(void)sigaction(signals[i], &action, NULL);
	}
	on.is_installed = true;
}

/* Where the program has installed another handler since, that may call this one: it stays, and only passes signals on. */
static void remove_handlers(void)
{
	for (unsigned i = 0; i < N_SIGNALS && on.is_installed; i++) {
		struct sigaction now;

		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_sigaction == handle) {
			(void)sigaction(signals[i], &on.previous[i], NULL);
			on.is_in[i] = false;
		}
	}
	on.is_installed = false;
}

void crash_fork(void)
{
	on.is_on = false;
	on.is_set = false;
	on.page = NULL;
	on.pipe = -1; /* the thread that had it is not here, nor are its files */
	on.is_taken = false;
}

/* ---- The writer ---- */

static bool is_program(const char *path)
{
	return access(path, X_OK) == 0;
}

/* Beside this library: PREFIX/bin above PREFIX/lib/.../probing, or as in a build. */
static bool find_beside(char path[MAX_PATH])
{
	Dl_info library;
	char folder[MAX_PATH], *slash;

	if (!dladdr(&on, &library) || !library.dli_fname || strlen(library.dli_fname) >= sizeof folder)
		return false;
	strcpy(folder, library.dli_fname);
	for (int i = 0; i < 8 && (slash = strrchr(folder, '/')); i++) {
		*slash = '\0';
		if (snprintf(path, MAX_PATH, "%s/bin/probing", folder) < MAX_PATH && is_program(path))
			return true;
		if (i == 1 && snprintf(path, MAX_PATH, "%s/cli/probing", folder) < MAX_PATH && is_program(path))
			return true;
	}
	return false;
}

static bool find_program(char path[MAX_PATH])
{
	const char *wanted = getenv("PROBING_BINARY"), *paths = getenv("PATH");

	if (wanted && wanted[0] == '/') {
		snprintf(path, MAX_PATH, "%s", wanted);
		return is_program(path);
	}
	if (find_beside(path))
		return true;
	while (paths && *paths) {
		size_t n = strcspn(paths, ":");

		if (paths[0] == '/' && snprintf(path, MAX_PATH, "%.*s/probing", (int)n, paths) < MAX_PATH &&
		    is_program(path))
			return true;
		paths += n + (paths[n] == ':');
	}
	return false;
}

struct start {
	char *const *words;
	int page, pipe;
	char stack[STACK_BYTES] __attribute__((aligned(16)));
};

/* In a process of its own that shares this memory, while the caller waits: it changes none. */
static int execute(void *data)
{
	const struct start *start = data;
	sigset_t none;

	(void)syscall(SYS_setsid);
	(void)fcntl(start->page, F_SETFD, 0);
	(void)fcntl(start->pipe, F_SETFD, 0);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	execv(start->words[0], start->words);
	_exit(127);
}

static int leave_between(void *data)
{
	struct start *start = data;

	_exit(clone(execute, start->stack + STACK_BYTES / 2, CLONE_VM | CLONE_VFORK, data) < 0 ? 1 : 0);
}

static bool start_writer(char *program, int page, int pipe)
{
	char page_text[16], pipe_text[16];
	char *const words[] = { program, (char[]){ "crash" }, (char[]){ "--write" }, page_text, pipe_text, NULL };
	struct start *start = calloc(1, sizeof *start);
	int between, status = 1;

	if (!start)
		return false;
	snprintf(page_text, sizeof page_text, "%d", page);
	snprintf(pipe_text, sizeof pipe_text, "%d", pipe);
	start->words = words;
	start->page = page;
	start->pipe = pipe;
	/* Without a signal at its end it is no child that wait(2) of the program sees. */
	between = clone(leave_between, start->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, start);
	if (between > 0)
		while (waitpid(between, &status, __WCLONE) < 0 && errno == EINTR)
			;
	free(start);
	return between > 0 && status == 0;
}

/* The crash is too late to find out. NULL, or a clause. */
static const char *check_folder(const char *folder)
{
	struct stat st;

	if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode) && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
		return NULL;
	snprintf(why, sizeof why, "no report can be written in %.500s: make it a folder that its user can write",
		 folder);
	return why;
}

static const char *begin_writer(const char *folder)
{
	char program[MAX_PATH];
	int fd = -1, ends[2] = { -1, -1 };
	struct crash_page *page;
	bool is_started;

	if (!find_program(program))
		return "the program probing, which writes reports, was not found: name it in PROBING_BINARY";
	fd = (int)syscall(SYS_memfd_create, "probing-crash", 1u /* MFD_CLOEXEC */);
	if (fd < 0 || ftruncate(fd, CRASH_PAGE_BYTES) < 0 || pipe2(ends, O_CLOEXEC) < 0)
		page = MAP_FAILED;
	else
		page = mmap(NULL, CRASH_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		snprintf(why, sizeof why, "memory for reports cannot be had: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		if (ends[0] >= 0) {
			close(ends[0]);
			close(ends[1]);
		}
		return why;
	}
	page->magic = CRASH_MAGIC;
	page->pid = agent.pid;
	snprintf(page->folder, sizeof page->folder, "%s", folder);
	is_started = start_writer(program, fd, ends[0]);
	close(fd);
	close(ends[0]);
	if (is_started)
		wait_for((uint32_t *)&page->writer, READY_MS, 0);
	if (!is_started || page->writer <= 0) {
		close(ends[1]);
		munmap(page, CRASH_PAGE_BYTES);
		snprintf(why, sizeof why, "%.200s did not start", program);
		return why;
	}
	on.pipe = ends[1];
	on.page = page; /* it stays mapped: a thread may be in the handler */
	return NULL;
}

static const char *set(const char *text)
{
	bool is_folder = text && text[0] == '/';
	const char *level = getenv("PROBING_LOGLEVEL");
	const char *problem;

	on.is_on = false;
	if (on.pipe >= 0)
		close(on.pipe);
	on.pipe = -1;
	if (!is_folder && (!text || (strcmp(text, "on") != 0 && strcmp(text, "1") != 0))) {
		remove_handlers();
		return NULL;
	}
	problem = is_folder ? check_folder(text) : NULL;
	problem = problem ? problem : begin_writer(is_folder ? text : "");
	if (problem) {
		remove_handlers();
		return problem;
	}
	on.is_taken = false;
	on.is_over = 0;
	on.is_loud = !level || (strcmp(level, "off") != 0 && strcmp(level, "error") != 0 && strcmp(level, "warn") != 0);
	on.is_on = true;
	install();
	return NULL;
}

const char *crash_set(const char *text)
{
	on.why = set(text);
	__atomic_store_n(&on.is_set, text != NULL, __ATOMIC_RELEASE);
	return on.why;
}

bool crash_is_set(const char **ret_why)
{
	if (!__atomic_load_n(&on.is_set, __ATOMIC_ACQUIRE))
		return false;
	*ret_why = on.why ? on.why : "";
	return true;
}
