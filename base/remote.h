/* SPDX-License-Identifier: MIT */
/* remote.h - memory of another process.
 *
 * Everything that reads another process reads through struct remote: a live
 * process, a core file, an image in fixtures/images or a fuzzer's buffer. Nothing
 * found there is trusted. An address over there is a struct raddr, so that it
 * cannot be dereferenced here by mistake.
 */
#ifndef PROBING_BASE_REMOTE_H
#define PROBING_BASE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct raddr {
	uint64_t value;
};

#define RADDR(v) ((struct raddr){ (uint64_t)(v) })
#define RADDR_NULL RADDR(0)

static inline bool raddr_is_null(struct raddr a)
{
	return a.value == 0;
}

static inline struct raddr raddr_add(struct raddr a, int64_t offset)
{
	return RADDR(a.value + (uint64_t)offset);
}

struct remote;

/* One piece of a scattered read. */
struct remote_part {
	struct raddr from;
	void *to;
	size_t n_bytes;
};

struct remote_ops {
	/*
	 * Reads up to n_bytes from @from; returns the number of bytes read
	 * (short at the first unreadable page), or a negative errno where
	 * not even the first could be read.
	 */
	ssize_t (*read)(struct remote *remote, struct raddr from, void *to, size_t n_bytes);
	/* Reads all parts; returns how many leading parts were read completely. NULL: one by one. */
	int (*read_parts)(struct remote *remote, const struct remote_part *parts, size_t n_parts);
	void (*free)(struct remote *remote);
};

/* Backends embed this as their first member. */
struct remote {
	const struct remote_ops *ops;
};

/*
 * remote_open_process - read a live process with process_vm_readv(2).
 * It does not stop, write to or signal the process. Needs PTRACE_MODE_ATTACH
 * (same user and dumpable, or CAP_SYS_PTRACE). Where that call is refused it reads what the process has
 * lent. After the main thread's end it uses another
 * thread, with one descriptor, and one more system call for each read.
 * @ret: ended with remote_free().
 * Errors: -ENOMEM only; a missing permission shows at the first read.
 */
int remote_open_process(pid_t pid, struct remote **ret);

/*
 * remote_lend - a process' /proc/self/mem that it has opened itself: reading it needs no right.
 * Used by all struct remote of that process that are refused from then on. In the process' next program it reads nothing.
 * @fd: taken over, also on failure; -1: the loan ends. Errors: -ENOMEM; -EBADF it is no process's memory in procfs.
 * Source: proc_pid_mem(5); mem_open() in fs/proc/base.c, Linux 6.12, which checks rights, and mem_rw(), which does not.
 */
int remote_lend(pid_t pid, int fd);

/*
 * remote_open_buffer - read from a copy of memory held here.
 * @start: the address that bytes[0] had; @bytes is borrowed.
 */
int remote_open_buffer(struct raddr start, const void *bytes, size_t n_bytes, struct remote **ret);

/*
 * remote_open_core - read the memory in a core file.
 * Memory that was not dumped is unreadable. The file may be truncated, damaged or crafted.
 * @path: of an ELF file of this machine's word size and byte order.
 * @ret:  ended with remote_free(); keeps the file open.
 * Errors: -EBADMSG no core file, or segments that overlap; -EOPNOTSUPP one of another
 *         word size or byte order; -ENOMEM; whatever open(2) and pread(2) report.
 * Source: elf(5), core(5).
 */
int remote_open_core(const char *path, struct remote **ret);

void remote_free(struct remote *remote);
void remote_freep(struct remote **remote);

/* Exactly n_bytes or an error: -EFAULT unreadable, -EPERM, -ESRCH the process has ended. */
int remote_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes);

/* As many bytes as are there, up to n_bytes; 0 is an error (-EFAULT). */
ssize_t remote_read_some(struct remote *remote, struct raddr from, void *to, size_t n_bytes);

/* Several reads in one call; returns how many leading parts were read completely. */
int remote_read_parts(struct remote *remote, const struct remote_part *parts, size_t n_parts);

int remote_read_pointer(struct remote *remote, struct raddr from, struct raddr *ret);

#endif
