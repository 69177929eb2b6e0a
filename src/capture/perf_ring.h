/* SPDX-License-Identifier: MIT */
/* perf_ring.h - one CPU's perf ring, and all of them together. */
#ifndef PROBING_CAPTURE_PERF_RING_H
#define PROBING_CAPTURE_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_ring {
	int fd; /* of the event that owns it; -1: a ring in ordinary memory */
	unsigned cpu;
	struct perf_event_mmap_page *control;
	const uint8_t *data;
	size_t n_bytes; /* of data, a power of two */

	uint64_t position, head; /* [position, head) is known, but not read */
	/* Of the record at position; n_record_bytes is 0 where there is none. */
	size_t n_record_bytes;
	uint64_t time_ns;

	uint64_t n_malformed;
};

/*
 * perf_ring_init - read a ring in memory.
 * @control, @data: borrowed; data is n_bytes long, a power of two, aligned to 8.
 */
void perf_ring_init(struct perf_ring *ring, struct perf_event_mmap_page *control, const void *data, size_t n_bytes);

/*
 * perf_ring_open - a ring that events of one CPU can be redirected to.
 * @n_bytes: of data, a power of two of pages.
 * @ret:     set on success only; ended with perf_ring_close().
 * Errors: -ENOBUFS more than may be locked, or than there is; -EACCES, -EPERM,
 *         -ENOSYS, -EMFILE.
 * Source: perf_event_open(2), "MMAP layout".
 */
int perf_ring_open(unsigned cpu, size_t n_bytes, struct perf_ring *ret);
void perf_ring_close(struct perf_ring *ring);

/* Read the kernel's head. No record may be in use. */
void perf_ring_refresh(struct perf_ring *ring);

/*
 * perf_ring_record - the record at position (n_record_bytes > 0).
 * @copy: RECORD_MAX_BYTES aligned to 8, used where the record wraps around.
 * The result is valid until perf_ring_release().
 */
const struct perf_event_header *perf_ring_record(const struct perf_ring *ring, void *copy);

/* The record so many bytes behind the end of the one at position, if it is known and does not wrap
 * around; else NULL. */
const struct perf_event_header *perf_ring_peek(const struct perf_ring *ring, size_t n_behind);

/* Go on to the next record; the memory is not given back yet. */
void perf_ring_advance(struct perf_ring *ring);

/* Return all bytes before position to the kernel. */
void perf_ring_release(struct perf_ring *ring);

/* One ring for each CPU that is online. */
struct perf_rings {
	struct perf_ring *ring;
	size_t n;
	size_t ring_bytes;
	bool was_shrunk; /* the largest was not permitted */
	int epoll_fd;    /* readable when the kernel has woken us for any of them */
};

/*
 * perf_rings_open - open all of them, of one size.
 * @ring_bytes: 0: the largest of 4 MiB, 2 MiB, ... 64 KiB that is permitted.
 * @ret:        ended with perf_rings_close().
 * Errors: -ENOBUFS not even the smallest (or not the given one) may be locked;
 *         -EINVAL not a power of two of pages; those of perf_ring_open().
 */
int perf_rings_open(size_t ring_bytes, struct perf_rings *ret);

/* perf_rings_watch - notify another epoll instead of epoll_fd, edge-triggered. Errors: what epoll_ctl(2) reports. */
int perf_rings_watch(struct perf_rings *rings, int epoll_fd, uint32_t data);

void perf_rings_close(struct perf_rings *rings);

#endif
