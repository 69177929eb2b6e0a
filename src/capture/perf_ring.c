/* SPDX-License-Identifier: MIT */
/* perf_ring.c - perf's ring buffers; see perf_ring.h.
 *
 * The ring of a CPU belongs to an event of our own process that counts nothing
 * and is never switched on; the events of the target are redirected to it. If
 * it belonged to the target, its descriptor would report only
 * EPOLLHUP after that thread's end.
 *
 * poll(2) on a perf event clears what it reports, so a woken reader reads
 * until nothing is left.
 *
 * Invariants:
 * 1. data_tail <= position <= head. The kernel does not write to
 *    [data_tail, head), so a record found there does not change.
 * 2. Records begin at multiples of 8 and the ring's size is one, so that a
 *    word never wraps around; a record can.
 * 3. n_record_bytes is 0 or the whole record lies in [position, head). An
 *    inconsistent ring is skipped up to its head and counted as malformed.
 */
#include "src/capture/perf_ring.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "src/capture/cpus.h"
#include "src/capture/decode.h"

enum { RING_MAX_BYTES = 4 << 20, RING_MIN_BYTES = 64 << 10 };

void perf_ring_init(struct perf_ring *ring, struct perf_event_mmap_page *control, const void *data, size_t n_bytes)
{
	*ring = (struct perf_ring){ .fd = -1, .control = control, .data = data, .n_bytes = n_bytes };
}

static int open_owner(unsigned cpu, size_t n_bytes)
{
	struct perf_event_attr attr = {
		.size = sizeof attr,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)MIN(n_bytes / 4, (size_t)UINT32_MAX),
		.use_clockid = 1, /* an event of another clock cannot be redirected here */
		.clockid = CLOCK_MONOTONIC,
	};
	long fd;

	/* The main thread lasts as long as the process, hence getpid(). */
	fd = syscall(SYS_perf_event_open, &attr, getpid(), (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int perf_ring_open(unsigned cpu, size_t n_bytes, struct perf_ring *ret)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	CLEANUP(closep) int fd = -1;
	uint8_t *pages;

	fd = open_owner(cpu, n_bytes);
	if (fd < 0)
		return fd;
	/* Only a writable mapping makes the kernel respect data_tail. */
	pages = mmap(NULL, page_bytes + n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED)
		return errno == EPERM || errno == ENOMEM ? -ENOBUFS : -errno;

	perf_ring_init(ret, (struct perf_event_mmap_page *)pages, pages + page_bytes, n_bytes);
	ret->cpu = cpu;
	ret->fd = TAKE_FD(fd);
	return 0;
}

void perf_ring_close(struct perf_ring *ring)
{
	if (ring->fd < 0)
		return;
	munmap(ring->control, (size_t)sysconf(_SC_PAGESIZE) + ring->n_bytes);
	close(ring->fd);
	ring->fd = -1;
}

static const uint8_t *at(const struct perf_ring *ring, uint64_t position)
{
	return ring->data + (position & (ring->n_bytes - 1));
}

static bool is_whole(const struct perf_ring *ring, size_t n_bytes)
{
	return n_bytes >= sizeof(struct perf_event_header) && n_bytes % 8 == 0 &&
	       n_bytes <= ring->head - ring->position;
}

/* Skip malformed data; records end at the kernel's head. */
static void skip_to(struct perf_ring *ring, uint64_t head)
{
	ring->position = ring->head = head;
	ring->n_record_bytes = 0;
	ring->n_malformed++;
}

/*
 * The kernel wrote the next record on another processor. Prefetch its registers and the start of its stack while this
 * one is used.
 */
static void prefetch_next(const struct perf_ring *ring)
{
	enum { BEGINNING_BYTES = 2304, LINE_BYTES = 64 };
	uint64_t next = ring->position + ring->n_record_bytes;

	for (uint64_t offset = 0; next < ring->head && offset < BEGINNING_BYTES; offset += LINE_BYTES)
		__builtin_prefetch(at(ring, next + offset));
}

/* Read size and time of the record at position. */
static void look(struct perf_ring *ring)
{
	struct perf_event_header header;
	int offset;

	ring->n_record_bytes = 0;
	if (ring->position == ring->head)
		return;
	memcpy(&header, at(ring, ring->position), sizeof header);
	if (!is_whole(ring, header.size)) {
		skip_to(ring, ring->head);
		return;
	}
	ring->n_record_bytes = header.size;
	/* A record too short for a time has time 0, so it comes first; its decoder rejects it. */
	ring->time_ns = 0;
	offset = record_time_offset(header.type, header.size);
	if (offset >= 0)
		memcpy(&ring->time_ns, at(ring, ring->position + (uint64_t)offset), sizeof ring->time_ns);
	prefetch_next(ring);
}

void perf_ring_refresh(struct perf_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE);

	if (head - ring->position > ring->n_bytes || head % 8 != 0) {
		skip_to(ring, head & ~(uint64_t)7);
	} else {
		ring->head = head;
		if (ring->n_record_bytes == 0)
			look(ring);
	}
	/* Release skipped bytes here: nobody else does, because they are never current. */
	if (ring->n_record_bytes == 0 && ring->control->data_tail != ring->position)
		perf_ring_release(ring);
}

const struct perf_event_header *perf_ring_record(const struct perf_ring *ring, void *copy)
{
	size_t start = ring->position & (ring->n_bytes - 1);
	size_t n_until_end = ring->n_bytes - start;

	if (ring->n_record_bytes <= n_until_end)
		return (const struct perf_event_header *)(ring->data + start);
	memcpy(copy, ring->data + start, n_until_end);
	memcpy((uint8_t *)copy + n_until_end, ring->data, ring->n_record_bytes - n_until_end);
	return copy;
}

const struct perf_event_header *perf_ring_peek(const struct perf_ring *ring, size_t n_behind)
{
	uint64_t position = ring->position + ring->n_record_bytes + n_behind;
	size_t start = position & (ring->n_bytes - 1);
	struct perf_event_header header;

	if (ring->n_record_bytes == 0 || position > ring->head || ring->head - position < sizeof header)
		return NULL;
	memcpy(&header, ring->data + start, sizeof header);
	if (header.size < sizeof header || header.size % 8 != 0 || header.size > ring->head - position ||
	    header.size > ring->n_bytes - start)
		return NULL;
	return (const struct perf_event_header *)(ring->data + start);
}

void perf_ring_advance(struct perf_ring *ring)
{
	ring->position += ring->n_record_bytes;
	look(ring);
}

void perf_ring_release(struct perf_ring *ring)
{
	__atomic_store_n(&ring->control->data_tail, ring->position, __ATOMIC_RELEASE);
}

static int watch(int epoll_fd, const struct perf_ring *ring, struct epoll_event event)
{
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ring->fd, &event) < 0 ? -errno : 0;
}

int perf_rings_watch(struct perf_rings *rings, int epoll_fd, uint32_t data)
{
	/* Edge-triggered: the reader drains the rings at each wake-up. */
	const struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u32 = data };
	int r = 0;

	for (size_t i = 0; i < rings->n && r >= 0; i++) {
		r = watch(epoll_fd, &rings->ring[i], event);
		if (r >= 0 && epoll_ctl(rings->epoll_fd, EPOLL_CTL_DEL, rings->ring[i].fd, NULL) < 0)
			r = -errno;
	}
	return r;
}

static int open_all(const unsigned *cpus, size_t n_cpus, size_t ring_bytes, struct perf_rings *rings)
{
	int r;

	for (rings->n = 0; rings->n < n_cpus; rings->n++) {
		r = perf_ring_open(cpus[rings->n], ring_bytes, &rings->ring[rings->n]);
		if (r < 0)
			return r;
	}
	rings->ring_bytes = ring_bytes;
	return 0;
}

static void close_all(struct perf_rings *rings)
{
	while (rings->n > 0)
		perf_ring_close(&rings->ring[--rings->n]);
}

/*
 * How much memory may be locked depends on the user, on limits and on other locks, so try sizes instead of computing
 * one.
 */
static int open_largest(const unsigned *cpus, size_t n_cpus, struct perf_rings *rings)
{
	int r = -ENOBUFS;

	for (size_t n = RING_MAX_BYTES; n >= RING_MIN_BYTES; n /= 2) {
		r = open_all(cpus, n_cpus, n, rings);
		if (r != -ENOBUFS)
			return r;
		close_all(rings);
		rings->was_shrunk = true;
	}
	return r;
}

static bool is_ring_size(size_t n_bytes)
{
	return n_bytes >= (size_t)sysconf(_SC_PAGESIZE) && (n_bytes & (n_bytes - 1)) == 0;
}

static void rings_closep(struct perf_rings *rings)
{
	perf_rings_close(rings);
}

int perf_rings_open(size_t ring_bytes, struct perf_rings *ret)
{
	CLEANUP(rings_closep) struct perf_rings rings = { .epoll_fd = -1 };
	CLEANUP(freep) unsigned *cpus = NULL;
	size_t n_cpus;
	int r;

	if (ring_bytes != 0 && !is_ring_size(ring_bytes))
		return -EINVAL;
	r = cpus_online(&cpus, &n_cpus);
	if (r < 0)
		return r;
	rings.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (rings.epoll_fd < 0)
		return -errno;
	rings.ring = calloc(n_cpus, sizeof *rings.ring);
	if (!rings.ring)
		return -ENOMEM;
	r = ring_bytes ? open_all(cpus, n_cpus, ring_bytes, &rings) : open_largest(cpus, n_cpus, &rings);
	if (r < 0)
		return r;
	for (size_t i = 0; i < rings.n; i++) {
		r = watch(rings.epoll_fd, &rings.ring[i], (struct epoll_event){ .events = EPOLLIN });
		if (r < 0)
			return r;
	}

	*ret = rings;
	rings = (struct perf_rings){ .epoll_fd = -1 };
	return 0;
}

void perf_rings_close(struct perf_rings *rings)
{
	if (rings->ring)
		close_all(rings);
	free(rings->ring);
	closep(&rings->epoll_fd);
	*rings = (struct perf_rings){ .epoll_fd = -1 };
}
