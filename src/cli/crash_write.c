/* SPDX-License-Identifier: MIT */
/* crash_write.c - see crash_write.h.
 *
 * The stacks and rows are those that `probing backtrace` and `probing sql` print, each run by a child with a time bound: whatever
 * state the process is in, the report has what could be read.
 */
#include "src/cli/crash_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/util.h"
#include "src/agent/agent.h"
#include "src/cli/cli.h"
#include "src/prompt/prompt.h"

enum {
	STACKS_MS = 15000,
	ROWS_MS = 3000,
	ALL_MS = 25000, /* the process waits for no longer than 30 s */
	MAX_RINGS = 24,
	MAX_KEPT = 20, /* reports in the user's folder */
	MAX_COMMAND = 4096,
};

struct report {
	const struct crash_page *page;
	FILE *out;
	int fd;
	uint64_t due_ns;
};

/* ---- Output of other verbs ---- */

/* Wait for the end of a child, and end it when its time is over. */
static void await(pid_t child, uint64_t due_ns)
{
	const struct timespec a_while = { .tv_nsec = 2000000 };

	while (waitpid(child, NULL, WNOHANG) == 0) {
		if (monotonic_ns() >= due_ns) {
			kill(child, SIGKILL);
			(void)waitpid(child, NULL, 0);
			return;
		}
		nanosleep(&a_while, NULL);
	}
}

/* Run probing with words, its output to a descriptor. */
static void run(const struct report *report, char *const words[], int to, unsigned limit_ms)
{
	uint64_t due_ns = monotonic_ns() + limit_ms * UINT64_C(1000000);
	pid_t child = fork();

	if (child == 0) {
		(void)dup2(to, STDOUT_FILENO);
		(void)dup2(to, STDERR_FILENO);
		execv("/proc/self/exe", words);
		_exit(127);
	}
	if (child > 0)
		await(child, MIN(due_ns, report->due_ns));
}

static void put_verb(const struct report *report, char *const words[], unsigned limit_ms)
{
	fflush(report->out);
	run(report, words, report->fd, limit_ms);
}

static void put_sql(const struct report *report, char *pid, char *sql)
{
	char *const words[] = { (char[]){ "probing" }, (char[]){ "sql" }, pid, sql, NULL };

	put_verb(report, words, ROWS_MS);
}

/* ---- Parts of the report ---- */

static void put_heading(const struct report *report, const char *heading)
{
	fputs("\n== ", report->out);
	text_put_spelled(report->out, heading, strlen(heading));
	fputs(" ==\n", report->out);
}

static void put_command(const struct report *report)
{
	CLEANUP(freep) char *command = NULL;
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof path, "/proc/%d/cmdline", (int)report->page->pid);
	if (read_file(path, MAX_COMMAND, &command, &n) < 0)
		return;
	while (n > 0 && command[n - 1] == '\0')
		n--;
	for (size_t i = 0; i < n; i++)
		if (command[i] == '\0')
			command[i] = ' ';
	fputs("command: ", report->out);
	text_put_spelled(report->out, command, n);
	fputc('\n', report->out);
}

static void put_time(const struct report *report)
{
	time_t now = time(NULL);
	struct tm local;
	char text[64] = "";

	if (localtime_r(&now, &local))
		(void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &local);
	fprintf(report->out, "time:    %s\n", text);
}

static void put_signal(const struct report *report)
{
	const struct crash_page *page = report->page;
	const char *name = sigabbrev_np(page->signal), *what = sigdescr_np(page->signal);

	fprintf(report->out, "reason:  SIG%s (%s) in thread %d", name ? name : "?", what ? what : "?", (int)page->tid);
	if (page->code > 0)
		fprintf(report->out, ", address 0x%llx\n", (unsigned long long)page->address);
	else if (page->sender == page->pid)
		fputs(", raised by the process itself\n", report->out);
	else
		fprintf(report->out, ", sent by process %d\n", (int)page->sender);
}

static void put_registers(const struct report *report)
{
#ifdef __x86_64__
	/* The order of gregs. Source: sys/ucontext.h of glibc, enum REG_R8... */
	static const char *const names[] = { "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rdi",
					     "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp", "rip" };
	const struct crash_page *page = report->page;

	if (page->n_registers < N_ELEMENTS(names) || page->n_registers > CRASH_N_REGISTERS)
		return;
	put_heading(report, "Registers");
	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		fprintf(report->out, "%-3s %016llx%s", names[i], (unsigned long long)page->registers[i],
			i % 4 == 3 || i + 1 == N_ELEMENTS(names) ? "\n" : "  ");
#else
	(void)report;
#endif
}

static void put_traceback(const struct report *report)
{
	const struct crash_page *page = report->page;
	size_t n = MIN(page->n_text, sizeof page->text);

	put_heading(report, "Uncaught exception");
	for (size_t at = 0; at < n;) {
		const char *line = page->text + at, *end = memchr(line, '\n', n - at);
		size_t n_line = end ? (size_t)(end - line) : n - at;

		text_put_spelled(report->out, line, n_line);
		fputc('\n', report->out);
		at += n_line + 1;
	}
}

static void put_rows(const struct report *report, char *pid, const char *name)
{
	char sql[512], quoted[2 * 64 + 1], heading[128];
	size_t n = 0;

	if (strcmp(name, "probing_variables") == 0)
		name = "variables";
	for (; *name && n + 2 < sizeof quoted; name++) {
		quoted[n++] = *name;
		if (*name == '"')
			quoted[n++] = '"';
	}
	quoted[n] = '\0';
	snprintf(heading, sizeof heading, "Last rows of %.100s", quoted);
	put_heading(report, heading);
	snprintf(sql, sizeof sql, "SELECT * FROM python.\"%s\" ORDER BY timestamp DESC LIMIT 20", quoted);
	put_sql(report, pid, sql);
	if (strcmp(quoted, "spans") != 0)
		return;
	put_heading(report, "Open spans");
	snprintf(
		sql, sizeof sql,
		"SELECT name, span, parent, tid, step, round(now() - timestamp, 3) AS seconds, attributes FROM python.spans "
		"WHERE phase = 'begin' AND span NOT IN (SELECT span FROM python.spans WHERE phase = 'end') ORDER BY timestamp");
	put_sql(report, pid, sql);
}

/* The rings' names, a line each. */
static void put_rings(const struct report *report, char *pid)
{
	char sql[] = "SELECT DISTINCT name FROM python.rings WHERE \"rows\" > 0", format[] = "-f", csv[] = "csv";
	char *const words[] = {
		(char[]){ "probing" }, (char[]){ "sql" }, pid, sql, format, csv, (char[]){ "--no-header" }, NULL
	};
	CLEANUP(closep) int file = memfd_create("rings", MFD_CLOEXEC);
	char text[MAX_RINGS * 80], *rest = text, *line;
	ssize_t n;

	if (file < 0)
		return;
	run(report, words, file, ROWS_MS);
	n = pread(file, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < MAX_RINGS && (line = strsep(&rest, "\r\n")) != NULL; i++)
		if (line[0] && strlen(line) < 64)
			put_rows(report, pid, line);
}

static void put_report(const struct report *report)
{
	char pid[16];
	char *const words[] = { (char[]){ "probing" }, (char[]){ "backtrace" }, pid, NULL };

	snprintf(pid, sizeof pid, "%d", (int)report->page->pid);
	fprintf(report->out, "probing crash report of process %s\n", pid);
	put_command(report);
	put_time(report);
	if (report->page->signal)
		put_signal(report);
	else
		fprintf(report->out, "reason:  an uncaught exception in thread %d\n", (int)report->page->tid);
	if (!report->page->signal)
		put_traceback(report);
	put_heading(report, "Stacks");
	put_verb(report, words, STACKS_MS);
	if (report->page->signal)
		put_registers(report);
	put_rings(report, pid);
}

/* ---- Files ---- */

int crash_folder(char **ret)
{
	CLEANUP(freep) char *path = NULL;
	int r = history_path("crash", &path);

	if (r < 0)
		return r;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	*ret = TAKE(path);
	return 0;
}

static int is_report(const struct dirent *entry)
{
	size_t n = strspn(entry->d_name, "0123456789-"), length = strlen(entry->d_name);

	return n > 0 && length == n + 4 && strcmp(entry->d_name + n, ".txt") == 0;
}

/* The oldest reports go. Their names do not say which is older. */
static void remove_old(const char *folder)
{
	struct dirent **entries = NULL;
	int n = scandir(folder, &entries, is_report, NULL);

	while (n > MAX_KEPT) {
		int oldest = -1;
		time_t when = 0;
		char path[PATH_MAX];

		for (int i = 0; i < n; i++) {
			struct stat st = { 0 };

			snprintf(path, sizeof path, "%.2000s/%s", folder, entries[i]->d_name);
			if (stat(path, &st) < 0 || (oldest >= 0 && st.st_mtime >= when))
				continue;
			oldest = i;
			when = st.st_mtime;
		}
		if (oldest < 0)
			break;
		snprintf(path, sizeof path, "%.2000s/%s", folder, entries[oldest]->d_name);
		(void)unlink(path);
		free(entries[oldest]);
		entries[oldest] = entries[--n];
	}
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
}

static int find_folder(const struct crash_page *page, char **ret)
{
	if (!page->folder[0])
		return crash_folder(ret);
	*ret = strndup(page->folder, sizeof page->folder);
	return *ret ? 0 : -ENOMEM;
}

static bool write_report(const struct crash_page *page)
{
	CLEANUP(output_abandon) struct output output = { .fd = -1 };
	CLEANUP(freep) char *folder = NULL, *path = NULL;
	time_t now = time(NULL);
	struct report report = { .page = page, .due_ns = monotonic_ns() + ALL_MS * UINT64_C(1000000) };
	struct tm local;
	char when[32] = "0";

	if (find_folder(page, &folder) < 0)
		return false;
	if (localtime_r(&now, &local))
		(void)strftime(when, sizeof when, "%Y%m%d-%H%M%S", &local);
	if (asprintf(&path, "%s/%d-%s.txt", folder, (int)page->pid, when) < 0) {
		path = NULL;
		return false;
	}
	if (output_open(&output, path, NEW_FILE_MODE) < 0)
		return false;
	report.out = output.file;
	report.fd = output.fd;
	put_report(&report);
	if (output_finish(&output) < 0)
		return false;
	if (!page->folder[0])
		remove_old(folder);
	return true;
}

/* ---- Wait ---- */

static bool is_writing, has_ended;

static void futex(uint32_t *word, int operation, uint32_t value)
{
	(void)syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* A thread: the process has ended, or has no agent any more. A report that is being written gets its end. */
static void *await_end(void *data)
{
	int pipe = *(const int *)data;
	struct pollfd polled = { .fd = pipe, .events = POLLIN };

	while (poll(&polled, 1, -1) < 0 && errno == EINTR)
		;
	if (!__atomic_load_n(&is_writing, __ATOMIC_SEQ_CST))
		_exit(EXIT_OK);
	__atomic_store_n(&has_ended, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static int wait_and_write(struct crash_page *page)
{
	bool is_written;

	while (__atomic_load_n(&page->request, __ATOMIC_ACQUIRE) == 0)
		futex(&page->request, FUTEX_WAIT, 0);
	__atomic_store_n(&is_writing, true, __ATOMIC_SEQ_CST);
	is_written = write_report(page);
	__atomic_store_n(&page->done, is_written ? CRASH_WRITTEN : CRASH_FAILED, __ATOMIC_SEQ_CST);
	futex(&page->done, FUTEX_WAKE, INT32_MAX);
	return is_written ? EXIT_OK : EXIT_FAILED;
}

int crash_write(int fd, int pipe)
{
	struct crash_page *page = mmap(NULL, CRASH_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct stat st;
	pthread_t thread;

	if (page == MAP_FAILED || fstat(fd, &st) < 0 || st.st_size < CRASH_PAGE_BYTES || page->magic != CRASH_MAGIC)
		return cli_fail(EXIT_USAGE, "only the agent of a process starts this, with its memory");
	if (chdir("/") < 0) /* keep no file system busy */
		return cli_fail(EXIT_FAILED, "/ cannot be entered: %s", strerror(errno));
	if (pthread_create(&thread, NULL, await_end, &pipe) != 0)
		return cli_fail(EXIT_FAILED, "a thread cannot be made");
	__atomic_store_n(&page->writer, (int32_t)getpid(), __ATOMIC_SEQ_CST);
	futex((uint32_t *)&page->writer, FUTEX_WAKE, INT32_MAX);
	return wait_and_write(page);
}
