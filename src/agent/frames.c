/* SPDX-License-Identifier: MIT */
/* frames.c - the walk of base/python_walk.h over the process' own memory; see frames.h.
 *
 * Before a page is read for the first time in a sample, the kernel is asked whether it can be: rt_sigprocmask(2) with an
 * invalid `how` reads the set, and reports EFAULT or EINVAL. It changes nothing, and no usual seccomp filter refuses it.
 */
#include "src/agent/frames.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define bpf_loop(n, step, context, flags) walk_loop(n, step, context)

struct walk;

static __always_inline void walk_loop(uint32_t n, long (*step)(uint32_t, struct walk *), struct walk *walk)
{
	for (uint32_t i = 0; i < n; i++)
		if (step(i, walk) != 0)
			return;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter" /* the kernel's helper wants an index, and the walk not always */
#pragma GCC diagnostic ignored "-Wunused-function"
#include "base/python_walk.h"
#pragma GCC diagnostic pop

enum {
	PAGE_BYTES = PAGE_MASK + 1,
	N_GUARDED = 64,
	KERNEL_SIGSET_BYTES = 8,
};

struct frames_room {
	struct room room;
	/* By page number: pages that can be read, as of this sample and as of the last one; 0: none. */
	uint64_t readable[N_GUARDED], before[N_GUARDED];
	struct known_thread known;
	bool has_known;
};

size_t frames_room_bytes(void)
{
	return sizeof(struct frames_room);
}

void frames_forget(struct frames_room *room)
{
	room->has_known = false;
}

void frames_begin(struct frames_room *room)
{
	memcpy(room->before, room->readable, sizeof room->before);
	memset(room->readable, 0, sizeof room->readable);
}

static uint64_t *guard_of(uint64_t pages[N_GUARDED], uint64_t page)
{
	return &pages[page / PAGE_BYTES % N_GUARDED];
}

static bool ask_kernel(uint64_t address)
{
	return syscall(SYS_rt_sigprocmask, -1, (void *)(uintptr_t)address, NULL, KERNEL_SIGSET_BYTES) < 0 &&
	       errno == EINVAL;
}

/* Ask for two pages by a set that begins on the first and ends on the second. */
static bool are_readable(struct frames_room *room, uint64_t first)
{
	if (!ask_kernel(first + PAGE_BYTES - KERNEL_SIGSET_BYTES / 2))
		return false;
	*guard_of(room->readable, first) = first;
	*guard_of(room->readable, first + PAGE_BYTES) = first + PAGE_BYTES;
	return true;
}

static bool is_wanted(struct frames_room *room, uint64_t page)
{
	return *guard_of(room->before, page) == page && *guard_of(room->readable, page) != page;
}

/* A neighbour that the last sample read is asked for at once: this one will mostly read it, too. */
static bool is_readable(struct frames_room *room, uint64_t page)
{
	if (page == 0)
		return false;
	if (*guard_of(room->readable, page) == page)
		return true;
	if (is_wanted(room, page + PAGE_BYTES) && are_readable(room, page))
		return true;
	if (is_wanted(room, page - PAGE_BYTES) && are_readable(room, page - PAGE_BYTES))
		return true;
	if (!ask_kernel(page))
		return false;
	*guard_of(room->readable, page) = page;
	return true;
}

uint64_t frames_readable(struct frames_room *room, uint64_t address, uint64_t n_bytes)
{
	uint64_t page = address & ~(uint64_t)PAGE_MASK;

	if (address + n_bytes < address)
		return 0;
	for (; page < address + n_bytes; page += PAGE_BYTES)
		if (!is_readable(room, page))
			return page > address ? page - address : 0;
	return n_bytes;
}

/* ---- What the walk asks for ---- */

static __always_inline long read_memory(struct room *room, void *to, uint32_t n_bytes, uint64_t address)
{
	struct frames_room *whole = (struct frames_room *)room; /* its first member */

	if (frames_readable(whole, address, n_bytes) < n_bytes)
		return -EFAULT;
	memcpy(to, (const void *)(uintptr_t)address, n_bytes);
	return 0;
}

static __always_inline bool is_own_pthread(struct walk *walk, uint64_t id)
{
	(void)walk;
	return id == (uint64_t)pthread_self();
}

static __always_inline uint32_t own_tid(const struct python_layout *layout, uint32_t tid)
{
	(void)layout;
	return tid;
}

static __always_inline const struct known_thread *known_thread(struct walk *walk, uint32_t tid)
{
	const struct frames_room *whole = (const struct frames_room *)walk->room;

	(void)tid;
	return whole->has_known ? &whole->known : NULL;
}

static __always_inline void keep_thread(struct walk *walk, uint32_t tid)
{
	struct frames_room *whole = (struct frames_room *)walk->room;

	(void)tid;
	whole->known = walk->room->now.thread;
	whole->has_known = true;
}

static __always_inline bool meet_code(struct walk *walk, uint64_t key)
{
	(void)walk;
	(void)key;
	return false; /* the reader comes often enough */
}

uint32_t frames_read(struct frames_room *room, const struct python_layout *layout, int32_t tid,
		     const struct python_record **ret)
{
	struct walk walk = { .room = &room->room, .layout = layout };

	begin_record(&room->room, (uint32_t)tid, 0);
	if (!add_states(&walk, (uint32_t)tid))
		return 0;
	room->room.record.layout_id = layout->id;
	*ret = &room->room.record;
	return (uint32_t)(sizeof room->room.record + room->room.record.n_entries * sizeof room->room.entries[0]);
}
