/* SPDX-License-Identifier: MIT */
/* frames.h - Python frames of the calling thread, read inside a signal handler. Private. */
#ifndef PROBING_AGENT_FRAMES_H
#define PROBING_AGENT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/python_record.h"

/* What reading needs for one thread; too large for a signal stack. All zero: nothing is known yet. */
struct frames_room;

size_t frames_room_bytes(void);

/*
 * frames_begin - another sample: nothing is known to be readable.
 * frames_readable - how many bytes from an address on can be read, up to n_bytes. The kernel is asked once a page and
 * sample. Another thread may unmap them nevertheless: then this is no protection.
 */
void frames_begin(struct frames_room *room);
uint64_t frames_readable(struct frames_room *room, uint64_t address, uint64_t n_bytes);

/*
 * frames_read - the calling thread's frames, as the BPF program reads them (base/python_walk.h). Async-signal-safe.
 * @tid: the calling thread. @ret: in the room; its entries follow.
 * Returns bytes of the record with its entries; 0: they cannot be read, or there are none.
 */
uint32_t frames_read(struct frames_room *room, const struct python_layout *layout, int32_t tid,
		     const struct python_record **ret);

/* Forget the thread that used this slot before. */
void frames_forget(struct frames_room *room);

#endif
