/* SPDX-License-Identifier: MIT */
/* remote.c - reading the memory of another process.
 *
 * The generic half turns partial reads into exact and scattered ones. The
 * backends here are a live process and a buffer; others (remote_core.c) embed
 * struct remote the same way.
 *
 * Invariants:
 * 1. A backend's read() never reports more bytes than requested, and
 *    never 0 for a non-empty request.
 * 2. No function here allocates after the remote was opened.
 */
#include "base/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"

/* Number of parts per call; well below IOV_MAX. */
enum { PARTS_PER_CALL = 64 };

/* Several threads may end in turn during a read. */
enum { MAX_READERS = 8 };

struct process_remote {
	struct remote base;
	pid_t pid;
	pid_t reader; /* the thread through which memory is read: the leader until it ends */
	int comm;     /* another reader's /proc/PID/task/READER/comm, readable while it lives; else -1 */
	int memory;   /* what remote_lend() was given, where process_vm_readv(2) is refused; else -1 */
	uint64_t page_bytes;
};

struct buffer_remote {
	struct remote base;
	uint64_t start;
	const uint8_t *bytes;
	size_t n_bytes;
};

static uint64_t bytes_to_page_end(uint64_t address, uint64_t page_bytes)
{
	return page_bytes - (address & (page_bytes - 1));
}

/* -ESRCH: there is no thread, or only the one already tried. */
static int find_reader(struct process_remote *process)
{
	char path[64];
	pid_t living;
	int r;

	r = proc_live_tid(process->pid, &living);
	if (r < 0)
		return r;
	if (living == process->pid && process->reader == process->pid)
		return -ESRCH;
	closep(&process->comm);
	process->comm = -1;
	process->reader = living;
	if (living == process->pid) /* after an exec, the calling thread is the leader */
		return 0;
	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)process->pid, (int)living);
	process->comm = open(path, O_RDONLY | O_CLOEXEC);
	return process->comm < 0 && errno != ENOENT ? -errno : 0; /* ended again: the next try finds another thread */
}

/*
 * Whether the result, success or error, is from this process. The leader's TID stays the process's own. Another TID may
 * be reused, but not while its thread exists (see task_ids.c).
 */
static bool is_of_process(const struct process_remote *process, ssize_t got)
{
	char name[16];

	if (got == -ESRCH || process->reader == process->pid)
		return got != -ESRCH;
	return process->comm >= 0 && pread(process->comm, name, sizeof name, 0) >= 0;
}

/* ---- Where process_vm_readv(2) is refused ---- */

static struct {
	pthread_mutex_t lock;
	struct loan {
		pid_t pid;
		int fd;
	} * loans;
	size_t n, allocated;
} lent = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* With the lock. */
static struct loan *find_loan(pid_t pid)
{
	for (size_t i = 0; i < lent.n; i++)
		if (lent.loans[i].pid == pid)
			return &lent.loans[i];
	return NULL;
}

/* With the lock. */
static int add_loan(pid_t pid, int fd)
{
	int r = grow(&lent.loans, lent.n, &lent.allocated, sizeof *lent.loans);

	if (r >= 0)
		lent.loans[lent.n++] = (struct loan){ pid, fd };
	return r;
}

/*
 * Whether a descriptor is some process's memory in procfs: a process may lend any file it has open, such as a FIFO or one of a
 * FUSE file system, where a read would wait for as long as that process likes.
 */
static bool is_memory(int fd)
{
	static const char end[] = "/mem";
	const size_t n_end = sizeof end - 1;
	char path[64], name[PATH_MAX];
	struct statfs fs;
	struct stat st;
	ssize_t n;

	if (fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof name);
	return n > (ssize_t)n_end && memcmp(name + n - n_end, end, n_end) == 0;
}

int remote_lend(pid_t pid, int fd)
{
	struct loan *loan;
	int r = fd >= 0 && !is_memory(fd) ? -EBADF : 0;

	pthread_mutex_lock(&lent.lock);
	loan = find_loan(pid);
	if (loan) {
		close(loan->fd);
		*loan = lent.loans[--lent.n];
	}
	if (fd >= 0 && r == 0)
		r = add_loan(pid, fd);
	pthread_mutex_unlock(&lent.lock);
	if (r < 0)
		close(fd);
	return r;
}

/* -1: it has lent none. */
static int borrow(pid_t pid)
{
	const struct loan *loan;
	int fd = -1;

	pthread_mutex_lock(&lent.lock);
	loan = find_loan(pid);
	if (loan)
		fd = fcntl(loan->fd, F_DUPFD_CLOEXEC, 3);
	pthread_mutex_unlock(&lent.lock);
	return fd;
}

static bool is_refused(ssize_t got)
{
	return got == -EPERM || got == -ENOSYS;
}

/* As process_vm_readv(2) returns. The descriptor is of one program's memory, of which nothing is left at its end. */
static ssize_t read_memory(const struct process_remote *process, const struct iovec *local, const struct iovec *remote,
			   size_t n)
{
	ssize_t done = 0, got = 0;

	for (size_t i = 0; i < n; i++) {
		got = pread(process->memory, local[i].iov_base, remote[i].iov_len,
			    (off_t)(uintptr_t)remote[i].iov_base);
		if (got < 0)
			got = errno == EIO ? -EFAULT : -errno;
		if (got > 0)
			done += got;
		if (got != (ssize_t)remote[i].iov_len)
			break;
	}
	return done > 0 ? done : got == 0 ? -ESRCH : got;
}

/* ---- A live process ---- */

static ssize_t read_vectors(struct process_remote *process, const struct iovec *local, const struct iovec *remote,
			    size_t n)
{
	if (process->memory >= 0) {
		ssize_t got = read_memory(process, local, remote, n);

		if (got != -ESRCH)
			return got;
		closep(&process->memory); /* it may run another program now */
		process->memory = -1;
	}
	for (int i = 0; i < MAX_READERS; i++) {
		ssize_t got = process_vm_readv(process->reader, local, n, remote, n, 0);
		int r;

		if (got < 0)
			got = -errno;
		if (is_refused(got) && (process->memory = borrow(process->pid)) >= 0)
			return read_memory(process, local, remote, n);
		if (is_of_process(process, got))
			return got;
		r = find_reader(process);
		if (r < 0)
			return r;
	}
	return -ESRCH;
}

static ssize_t read_piece(struct process_remote *process, uint64_t from, void *to, size_t n_bytes)
{
	struct iovec local = { .iov_base = to, .iov_len = n_bytes };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)from, .iov_len = n_bytes };
	ssize_t got;

	got = read_vectors(process, &local, &remote, 1);
	return got != 0 ? got : -EFAULT;
}

/*
 * The kernel guarantees partial transfers only between iovecs, so read the rest of a short or failed transfer page by
 * page.
 */
static ssize_t process_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	struct process_remote *process = (struct process_remote *)remote;
	size_t done = 0;
	ssize_t got;

	got = read_piece(process, from.value, to, n_bytes);
	if (got < 0 && got != -EFAULT)
		return got;
	if (got > 0)
		done = (size_t)got;
	while (done < n_bytes) {
		uint64_t at = from.value + done;
		size_t piece = MIN(n_bytes - done, bytes_to_page_end(at, process->page_bytes));

		if (got < 0 && piece == n_bytes)
			break;
		got = read_piece(process, at, (uint8_t *)to + done, piece);
		if (got < 0)
			break;
		done += (size_t)got;
	}
	return done > 0 ? (ssize_t)done : got;
}

static size_t n_whole_parts(const struct remote_part *parts, size_t n_parts, size_t n_bytes)
{
	size_t n = 0;

	while (n < n_parts && parts[n].n_bytes <= n_bytes)
		n_bytes -= parts[n++].n_bytes;
	return n;
}

static size_t read_some_parts(struct process_remote *process, const struct remote_part *parts, size_t n_parts)
{
	struct iovec local[PARTS_PER_CALL], remote[PARTS_PER_CALL];
	ssize_t got;

	for (size_t i = 0; i < n_parts; i++) {
		local[i].iov_base = parts[i].to;
		remote[i].iov_base = (void *)(uintptr_t)parts[i].from.value;
		local[i].iov_len = remote[i].iov_len = parts[i].n_bytes;
	}
	got = read_vectors(process, local, remote, n_parts);
	return got > 0 ? n_whole_parts(parts, n_parts, (size_t)got) : 0;
}

static int process_read_parts(struct remote *remote, const struct remote_part *parts, size_t n_parts)
{
	struct process_remote *process = (struct process_remote *)remote;
	size_t done = 0;

	while (done < n_parts) {
		size_t n = MIN(n_parts - done, (size_t)PARTS_PER_CALL);
		size_t whole = read_some_parts(process, parts + done, n);

		done += whole;
		if (whole < n)
			break;
	}
	return (int)done;
}

static void free_process(struct remote *remote)
{
	struct process_remote *process = (struct process_remote *)remote;

	closep(&process->comm);
	closep(&process->memory);
	free(process);
}

static void free_buffer(struct remote *remote)
{
	free(remote);
}

int remote_open_process(pid_t pid, struct remote **ret)
{
	static const struct remote_ops ops = {
		.read = process_read,
		.read_parts = process_read_parts,
		.free = free_process,
	};
	struct process_remote *process;

	process = calloc(1, sizeof *process);
	if (!process)
		return -ENOMEM;
	process->base.ops = &ops;
	process->pid = process->reader = pid;
	process->comm = process->memory = -1;
	process->page_bytes = (uint64_t)getpagesize();
	*ret = &process->base;
	return 0;
}

static ssize_t buffer_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	struct buffer_remote *buffer = (struct buffer_remote *)remote;
	uint64_t offset = from.value - buffer->start;

	if (from.value < buffer->start || offset >= buffer->n_bytes)
		return -EFAULT;
	n_bytes = MIN(n_bytes, buffer->n_bytes - offset);
	memcpy(to, buffer->bytes + offset, n_bytes);
	return (ssize_t)n_bytes;
}

int remote_open_buffer(struct raddr start, const void *bytes, size_t n_bytes, struct remote **ret)
{
	static const struct remote_ops ops = { .read = buffer_read, .free = free_buffer };
	struct buffer_remote *buffer;

	buffer = calloc(1, sizeof *buffer);
	if (!buffer)
		return -ENOMEM;
	buffer->base.ops = &ops;
	buffer->start = start.value;
	buffer->bytes = bytes;
	buffer->n_bytes = n_bytes;
	*ret = &buffer->base;
	return 0;
}

void remote_free(struct remote *remote)
{
	if (remote)
		remote->ops->free(remote);
}

void remote_freep(struct remote **remote)
{
	remote_free(*remote);
}

ssize_t remote_read_some(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	if (n_bytes == 0 || n_bytes > SSIZE_MAX)
		return -EFAULT;
	return remote->ops->read(remote, from, to, n_bytes);
}

int remote_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	ssize_t got;

	if (n_bytes == 0)
		return 0;
	got = remote_read_some(remote, from, to, n_bytes);
	if (got < 0)
		return (int)got;
	return (size_t)got == n_bytes ? 0 : -EFAULT;
}

int remote_read_parts(struct remote *remote, const struct remote_part *parts, size_t n_parts)
{
	size_t n = 0;

	n_parts = MIN(n_parts, (size_t)INT_MAX);
	if (remote->ops->read_parts)
		return remote->ops->read_parts(remote, parts, n_parts);
	while (n < n_parts && remote_read(remote, parts[n].from, parts[n].to, parts[n].n_bytes) == 0)
		n++;
	return (int)n;
}

int remote_read_pointer(struct remote *remote, struct raddr from, struct raddr *ret)
{
	uint64_t value;
	int r;

	r = remote_read(remote, from, &value, sizeof value);
	if (r < 0)
		return r;
	*ret = RADDR(value);
	return 0;
}
