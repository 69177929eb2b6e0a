/* SPDX-License-Identifier: MIT */
/* ring.h - one CPU's perf ring, and all of them together. */
#ifndef PROBING_CAPTURE_RING_H
#define PROBING_CAPTURE_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
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
 * ring_init - read a ring in memory.
 * @control, @data: borrowed; data is n_bytes long, a power of two, aligned to 8.
 */
void ring_init(struct ring *ring, struct perf_event_mmap_page *control, const void *data, size_t n_bytes);

/*
 * ring_open - a ring that events of one CPU can be redirected to.
 * @n_bytes: of data, a power of two of pages.
 * @ret:     set on success only; ended with ring_close().
 * Errors: -ENOBUFS more than may be locked, or than there is; -EACCES, -EPERM,
 *         -ENOSYS, -EMFILE.
 * Source: perf_event_open(2), "MMAP layout".
 */
int ring_open(unsigned cpu, size_t n_bytes, struct ring *ret);
void ring_close(struct ring *ring);

/* Read the kernel's head. No record may be in use. */
void ring_refresh(struct ring *ring);

/*
 * ring_record - the record at position (n_record_bytes > 0).
 * @copy: RECORD_MAX_BYTES aligned to 8, used where the record wraps around.
 * The result is valid until ring_release().
 */
const struct perf_event_header *ring_record(const struct ring *ring, void *copy);

/* The record so many bytes behind the end of the one at position, if it is known and does not wrap
 * around; else NULL. */
const struct perf_event_header *ring_peek(const struct ring *ring, size_t n_behind);

/* Go on to the next record; the memory is not given back yet. */
void ring_advance(struct ring *ring);

/* Return all bytes before position to the kernel. */
void ring_release(struct ring *ring);

/* One ring for each CPU that is online. */
struct rings {
	struct ring *ring;
	size_t n;
	size_t ring_bytes;
	bool was_shrunk; /* the largest was not permitted */
	int epoll_fd;    /* readable when the kernel has woken us for any of them */
};

/*
 * rings_open - open all of them, of one size.
 * @ring_bytes: 0: the largest of 4 MiB, 2 MiB, ... 64 KiB that is permitted.
 * @ret:        ended with rings_close().
 * Errors: -ENOBUFS not even the smallest (or not the given one) may be locked;
 *         -EINVAL not a power of two of pages; those of ring_open().
 */
int rings_open(size_t ring_bytes, struct rings *ret);

/* rings_watch - notify another epoll instead of epoll_fd, edge-triggered. Errors: what epoll_ctl(2) reports. */
int rings_watch(struct rings *rings, int epoll_fd, uint32_t data);

void rings_close(struct rings *rings);

#endif
