/* SPDX-License-Identifier: MIT */
/* task_ids.c - see task_ids.h.
 *
 * The kernel lists a thread's ids in /proc/PID/task/TID/status, from the namespace
 * of /proc inwards: one number for a thread of our own namespace, more for others.
 * Kernels without PID namespaces do not have the line.
 *
 * Reading that for each sample would cost more than unwinding it, so results are
 * cached. But the kernel reuses an id after its thread's end (after as few as 32,767
 * others), and it then means a thread with another id of its own.
 *
 * Invariants:
 * 1. An open file of /proc/PID/task/TID belongs to the thread, not to its number:
 *    reading it fails with -ESRCH after the thread's end, also if another thread has
 *    its number. (fs/proc/base.c keeps a reference to the struct pid, which contains
 *    all of a thread's ids, and these never change.)
 * 2. Each cached result has such a file, and is returned only after a successful read
 *    of it. So it is never older than the thread.
 * 3. The table is bounded, and so is the number of open files: threads whose ids
 *    collide replace each other.
 */
#include "base/task_ids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"

enum {
	N_SLOTS = 64, /* power of two; TIDs of a process are mostly close together */
	MAX_STATUS_BYTES = 1 << 16,
};

struct task_slot {
	int comm; /* /proc/PID/task/TID/comm, the shortest file there; -1: free slot */
	pid_t tid, own;
};

struct task_ids {
	pid_t pid;
	bool is_ours; /* same namespace as ours */
	struct task_slot slots[N_SLOTS];
};

static int gone_is_esrch(int r)
{
	return r == -ENOENT ? -ESRCH : r;
}

static int read_own(pid_t pid, pid_t tid, pid_t *ret_own, unsigned *ret_n)
{
	CLEANUP(freep) char *status = NULL;
	char path[64];
	int r;

	snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)tid);
	r = read_file(path, MAX_STATUS_BYTES, &status, NULL);
	if (r < 0)
		return gone_is_esrch(r);
	return proc_status_own_pid(status, ret_own, ret_n);
}

int task_ids_new(pid_t pid, struct task_ids **ret)
{
	struct task_ids *ids;
	unsigned n;
	pid_t own;
	int r;

	r = read_own(pid, pid, &own, &n);
	if (r < 0 && r != -ENODATA)
		return r;
	ids = malloc(sizeof *ids);
	if (!ids)
		return -ENOMEM;
	ids->pid = pid;
	ids->is_ours = r == -ENODATA || n == 1;
	for (size_t i = 0; i < N_SLOTS; i++)
		ids->slots[i] = (struct task_slot){ .comm = -1 };
	*ret = ids;
	return 0;
}

static void empty(struct task_slot *slot)
{
	closep(&slot->comm);
	slot->comm = -1;
}

void task_ids_free(struct task_ids *ids)
{
	if (!ids)
		return;
	for (size_t i = 0; i < N_SLOTS; i++)
		empty(&ids->slots[i]);
	free(ids);
}

void task_ids_freep(struct task_ids **ids)
{
	task_ids_free(*ids);
}

/* Whether the thread of this comm file still exists. On any other error, look again. */
static bool is_alive(int comm)
{
	char name[16];

	return pread(comm, name, sizeof name, 0) >= 0;
}

static int open_comm(pid_t pid, pid_t tid)
{
	char path[64];
	int comm;

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	comm = open(path, O_RDONLY | O_CLOEXEC);
	return comm < 0 ? gone_is_esrch(-errno) : comm;
}

/* Two files opened one after the other belong to one thread if it still exists afterwards. */
static int fill(struct task_slot *slot, pid_t pid, pid_t tid)
{
	CLEANUP(closep) int comm = -1;
	unsigned n;
	pid_t own;
	int r;

	comm = open_comm(pid, tid);
	if (comm < 0)
		return comm;
	r = read_own(pid, tid, &own, &n);
	if (r < 0)
		return r;
	if (!is_alive(comm))
		return -ESRCH;
	*slot = (struct task_slot){ .comm = TAKE_FD(comm), .tid = tid, .own = own };
	return 0;
}

int task_ids_own(struct task_ids *ids, pid_t tid, pid_t *ret)
{
	struct task_slot *slot = &ids->slots[(unsigned)tid & (N_SLOTS - 1)];
	int r;

	if (!ids->is_ours && (slot->comm < 0 || slot->tid != tid || !is_alive(slot->comm))) {
		empty(slot);
		r = fill(slot, ids->pid, tid);
		if (r < 0)
			return r;
	}
	*ret = ids->is_ours ? tid : slot->own;
	return 0;
}
