/* SPDX-License-Identifier: MIT */
/* script.c - see script.h.
 *
 * The script is a file in the process' own /tmp, which its user owns and nobody else can write. It runs in the
 * interpreter's thread, loads the agent, and removes its file; on failure it writes the reason there. Only one thread
 * at a time has the request, and a request that no thread has taken is withdrawn.
 *
 * Invariants:
 * - the script's path is written before the word that announces it, and that before the breaker;
 * - requests of other processes are not touched.
 *
 * The breaker's other bits may change between our reading and our writing, as they may for sys.remote_exec(): a
 * breaker that is set already is therefore left alone, since the thread checks for scripts as well.
 * Source: Python/ceval_gil.c, _PyRunRemoteDebugger(), 3.14 and 3.15.
 */
#include "src/inject/script.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/inject/call.h"

enum {
	MAX_LIBRARY_BYTES = 4 << 20,
	MAX_THREADS = 4,
	MAX_FOLDER_BYTES = 256,
	TAKE_MS = 60,  /* time for a running thread to take the script; */
	SLEEP_MS = 20, /* for a sleeping one, and again after waking it */
	RUN_MS = 3000, /* time for the script to run */
	LOOK_AGAIN_US = 300,
	LAST_LOOK_US = 5000,
};

extern const char script_source[]; /* script.py */

struct script {
	const struct script_job *job;
	int folder, file;
	char name[64];
	char path[MAX_FOLDER_BYTES + 64]; /* path inside the process's root */
	char *why;
};

static int __attribute__((format(printf, 2, 3))) give_up(struct script *script, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(script->why, INJECT_WHY_BYTES, format, arguments);
	va_end(arguments);
	return 0;
}

/* ---- File ---- */

/* Resolve the path within the process's root, so that no link leads out of it. Linux 5.6. */
static int open_inside(pid_t pid, const char *path, int flags)
{
	const struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	CLEANUP(closep) int root = -1;
	char name[PROC_PATH_BYTES];
	long fd;

	proc_path(pid, "root", name);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = syscall(SYS_openat2, root, path, &how, sizeof how);
	return fd < 0 ? -errno : (int)fd;
}

static bool sees_library(const struct script *script)
{
	const struct agent_library *library = script->job->library;
	CLEANUP(closep) int fd = open_inside(script->job->target->pid, library->path, O_RDONLY);
	struct stat ours, theirs;

	return fd >= 0 && fstat(fd, &theirs) == 0 && fstat(elf_file_fd(library->elf), &ours) == 0 &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

static void put_hex(FILE *out, const char *name, const void *bytes, size_t n_bytes)
{
	const unsigned char *at = bytes;

	fprintf(out, "%s = bytes.fromhex(\"", name);
	for (size_t i = 0; i < n_bytes; i++)
		fprintf(out, "%02x", at[i]);
	fprintf(out, "\")\n");
}

static int put_library(const struct script *script, FILE *out)
{
	CLEANUP(freep) char *bytes = NULL;
	size_t n_bytes;
	int r;

	if (script->job->entry || sees_library(script)) {
		fprintf(out, "LIBRARY = None\n");
		return 0;
	}
	r = read_file(script->job->library->path, MAX_LIBRARY_BYTES, &bytes, &n_bytes);
	if (r >= 0 && n_bytes >= MAX_LIBRARY_BYTES)
		r = -EFBIG; /* read_file() has cut it */
	if (r >= 0)
		put_hex(out, "LIBRARY", bytes, n_bytes);
	return r;
}

static int make_text(const struct script *script, char **ret, size_t *ret_bytes)
{
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes = 0;
	FILE *out = open_memstream(&text, &n_bytes);
	int r;

	if (!out)
		return -ENOMEM;
	put_hex(out, "SCRIPT", script->path, strlen(script->path));
	put_hex(out, "PATH", script->job->library->path, strlen(script->job->library->path));
	fprintf(out, "OPTIONS = %u\nENTRY = %llu\n", script->job->options, (unsigned long long)script->job->entry);
	r = put_library(script, out);
	fputs(script_source, out);
	if (fclose(out) != 0)
		r = -ENOMEM;
	if (r < 0)
		return r;
	*ret = TAKE(text);
	*ret_bytes = n_bytes;
	return 0;
}

static int create_in(struct script *script, const char *folder)
{
	struct stat process;
	char path[PROC_PATH_BYTES];
	uint64_t number;

	script->folder = open_inside(script->job->target->pid, folder, O_RDONLY | O_DIRECTORY);
	if (script->folder < 0)
		return script->folder;
	if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
		return -EIO;
	snprintf(script->name, sizeof script->name, "probing-%016llx.py", (unsigned long long)number);
	snprintf(script->path, sizeof script->path, "%s/%s", folder, script->name);
	script->file = openat(script->folder, script->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (script->file < 0)
		return -errno;
	snprintf(path, sizeof path, "/proc/%d", (int)script->job->target->pid);
	if (stat(path, &process) < 0)
		return -ESRCH;
	if (process.st_uid != geteuid() && fchown(script->file, process.st_uid, process.st_gid) < 0)
		return -errno;
	return 0;
}

static void remove_file(struct script *script)
{
	if (script->file >= 0) {
		(void)unlinkat(script->folder, script->name, 0);
		close(script->file);
	}
	if (script->folder >= 0)
		close(script->folder);
	script->folder = script->file = -1;
}

/* The TMPDIR from the process's initial environment. To be freed; NULL: none. */
static char *own_folder(pid_t pid)
{
	static const char name[] = "TMPDIR=";
	CLEANUP(freep) char *environment = NULL;
	size_t n_bytes = 0;

	if (proc_read(pid, "environ", 1 << 20, &environment, &n_bytes) < 0)
		return NULL;
	for (size_t i = 0; i < n_bytes; i += strlen(environment + i) + 1) /* read_file() appends a NUL */
		if (strncmp(environment + i, name, sizeof name - 1) == 0 &&
		    strlen(environment + i) < MAX_FOLDER_BYTES + sizeof name)
			return strdup(environment + i + sizeof name - 1);
	return NULL;
}

static int make_file(struct script *script)
{
	CLEANUP(freep) char *own = own_folder(script->job->target->pid);
	const char *const folders[] = { own ? own : "/tmp", "/tmp", "/dev/shm", "/var/tmp" };
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes;
	int r = -ENOENT;

	for (size_t i = 0; i < N_ELEMENTS(folders) && r < 0; i++) {
		remove_file(script);
		r = create_in(script, folders[i]);
	}
	if (r >= 0)
		r = make_text(script, &text, &n_bytes);
	if (r >= 0 && write(script->file, text, n_bytes) != (ssize_t)n_bytes)
		r = -EIO;
	return r;
}

/* The error message that the script has written; "": none. No script begins like that. */
static void read_answer(const struct script *script, char *to, size_t room)
{
	ssize_t n = pread(script->file, to, room - 1, 0);

	to[n > 0 ? n : 0] = '\0';
	if (strncmp(to, "SCRIPT = ", 9) == 0)
		to[0] = '\0';
	for (char *c = to; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
}

/* ---- A thread's slot ---- */

static void nap_us(unsigned us)
{
	const struct timespec a_while = { .tv_nsec = us * 1000L };

	nanosleep(&a_while, NULL);
}

static uint64_t in_ms(unsigned ms)
{
	return monotonic_ns() + ms * UINT64_C(1000000);
}

/* True also if the slot is unreadable, because its thread has ended. */
static bool is_taken(const struct inject_target *target, const struct py_script_slot *slot)
{
	int32_t pending;

	return remote_read(target->remote, RADDR(slot->pending), &pending, sizeof pending) < 0 || pending != 1;
}

static int set_pending(const struct inject_target *target, const struct py_script_slot *slot, int32_t value)
{
	return inject_target_write(target->pid, slot->pending, &value, sizeof value);
}

static int set_breaker(const struct inject_target *target, const struct py_script_slot *slot)
{
	uint64_t word;
	int r = remote_read(target->remote, RADDR(slot->breaker), &word, sizeof word);

	if (r < 0)
		return r;
	if (word & 0xff)
		return 0;
	word |= slot->breaker_bit;
	return inject_target_write(target->pid, slot->breaker, &word, sizeof word);
}

/* -EBUSY: another script waits in the slot. */
static int ask(const struct script *script, const struct py_script_slot *slot)
{
	const struct inject_target *target = script->job->target;
	int r;

	if (strlen(script->path) >= slot->script_bytes)
		return -ENAMETOOLONG;
	if (!is_taken(target, slot))
		return -EBUSY;
	r = inject_target_write(target->pid, slot->script, script->path, strlen(script->path) + 1);
	if (r >= 0)
		r = set_pending(target, slot, 1);
	return r < 0 ? r : set_breaker(target, slot);
}

static bool await_taken(const struct inject_target *target, const struct py_script_slot *slot, unsigned ms)
{
	uint64_t due_ns = in_ms(ms);

	while (!is_taken(target, slot)) {
		if (monotonic_ns() >= due_ns)
			return false;
		nap_us(LOOK_AGAIN_US);
		/* The interpreter may have changed the breaker in between: set it again. */
		(void)set_breaker(target, slot);
	}
	return true;
}

/* A stop interrupts the sleep; the interpreter checks its breaker and sleeps again. */
static void wake(pid_t pid, pid_t tid)
{
	if (trace_stop(pid, tid) == 0)
		trace_end(tid);
}

static bool is_running(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	return proc_stat_read(pid, tid, &stat) == 0 && stat.state == 'R';
}

/* A thread that may not be woken has all the time at once. */
static unsigned take_ms(const struct script *script, pid_t tid)
{
	if (script->job->target->untraceable[0])
		return script->job->patience_ms / MAX_THREADS;
	return is_running(script->job->target->pid, tid) ? TAKE_MS : SLEEP_MS;
}

/* On a busy machine a thread that was woken may not run for long. */
static unsigned woken_ms(const struct script *script)
{
	return script->job->is_only_way ? script->job->patience_ms / MAX_THREADS : SLEEP_MS;
}

/* Returns 1 if the thread took the script, 0 if not in time, -ESRCH if it cannot or may not. */
static int offer(const struct script *script, pid_t tid)
{
	struct inject_target *target = script->job->target;
	struct py_script_slot slot;
	int r = py_script_slot(target->runtime, tid, &slot);

	if (r >= 0)
		r = script->job->may_run_in(script->job->data, tid) ? ask(script, &slot) : -ESRCH;
	if (r < 0)
		return r == -EACCES || r == -EOPNOTSUPP || r == -EPERM ? r : -ESRCH;
	if (await_taken(target, &slot, take_ms(script, tid)))
		return 1;
	if (!target->untraceable[0]) {
		wake(target->pid, tid);
		if (await_taken(target, &slot, woken_ms(script)))
			return 1;
	}
	(void)set_pending(target, &slot, 0);
	return 0;
}

/* ---- Threads ---- */

/* Prefer running threads; among equals the main thread comes last, because it runs the program's signal handlers. */
static unsigned rank_of(pid_t pid, pid_t tid)
{
	return (is_running(pid, tid) ? 0 : 2) + (tid == pid);
}

struct candidate {
	pid_t tid;
	unsigned rank;
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	return left->rank != right->rank ? (left->rank > right->rank) - (left->rank < right->rank)
					 : (left->tid > right->tid) - (left->tid < right->tid);
}

/* Read the state of each thread once: one that sleeps and runs in turn would be passed over by a second reading. */
static int find_candidates(pid_t pid, struct candidate **ret, size_t *ret_n)
{
	CLEANUP(freep) pid_t *tids = NULL;
	struct candidate *candidates;
	size_t n;
	int r = proc_tasks(pid, &tids, &n);

	if (r < 0)
		return r;
	candidates = calloc(n + 1, sizeof *candidates);
	if (!candidates)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		candidates[i] = (struct candidate){ tids[i], rank_of(pid, tids[i]) };
	qsort(candidates, n, sizeof *candidates, compare_candidates);
	*ret = candidates;
	*ret_n = n;
	return 0;
}

static int offer_to_all(const struct script *script)
{
	CLEANUP(freep) struct candidate *candidates = NULL;
	unsigned n_asked = 0;
	size_t n = 0;
	int r = find_candidates(script->job->target->pid, &candidates, &n);

	for (size_t i = 0; i < n && r >= 0 && n_asked < MAX_THREADS; i++) {
		r = offer(script, candidates[i].tid);
		if (r != 0 && r != -ESRCH)
			return r;
		n_asked += r == 0;
		r = 0;
	}
	return r;
}

static int await_agent(struct script *script)
{
	const struct script_job *job = script->job;
	uint64_t due_ns = in_ms(job->is_only_way && job->patience_ms > RUN_MS ? job->patience_ms : RUN_MS);
	unsigned us = LOOK_AGAIN_US; /* each check reads the process's maps */
	char answer[256] = "";

	while (!script->job->is_armed(script->job->data)) {
		read_answer(script, answer, sizeof answer);
		if (answer[0])
			return give_up(script, "the interpreter could not load it: %s", answer);
		if (monotonic_ns() >= due_ns)
			return give_up(script, "the interpreter did not run the script (an audit hook may forbid it)");
		nap_us(us);
		us = MIN(2 * us, 10 * 1000u);
	}
	return 1;
}

static int run(struct script *script)
{
	int r = make_file(script);

	if (r < 0)
		return r == -ENOMEM ? r : give_up(script, "it has no folder for a script: %s", strerror(-r));
	r = offer_to_all(script);
	if (r == -EACCES)
		return give_up(script, "its interpreter was started without remote debugging");
	if (r == -EOPNOTSUPP)
		return give_up(script, "its interpreter runs no scripts for others (before 3.14)");
	if (r == -EPERM)
		return give_up(script, "its memory may not be written");
	if (r < 0)
		return r;
	if (r == 0) {
		nap_us(LAST_LOOK_US); /* a thread may have taken it at the last moment, and needs the file */
		r = script->job->is_armed(script->job->data);
	}
	return r == 0 ? give_up(script, "no thread of the interpreter took the script in time") : await_agent(script);
}

int script_inject(const struct script_job *job, char *why)
{
	struct script script = { .job = job, .folder = -1, .file = -1, .why = why };
	struct py_script_slot slot;
	int r;

	why[0] = '\0';
	/* Most interpreters are older: do not create files for them. */
	if (!job->target->runtime || py_script_slot(job->target->runtime, job->target->pid, &slot) == -EOPNOTSUPP)
		return give_up(&script, "its interpreter runs no scripts for others (before 3.14)");
	trace_prepare();
	r = run(&script);
	remove_file(&script);
	return r;
}
