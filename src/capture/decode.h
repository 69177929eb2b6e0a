/* SPDX-License-Identifier: MIT */
/* decode.h - one raw record of a perf ring into a struct capture_event.
 *
 * Nothing here touches the kernel: bytes in, a struct out.
 */
#ifndef PROBING_CAPTURE_DECODE_H
#define PROBING_CAPTURE_DECODE_H

#include <linux/perf_event.h>

#include "src/capture/capture.h"

/* Periods up to this one count switches: no clock ticks so often (MAX_HZ in events.c). */
enum { RECORD_MAX_SWITCHES = 9999 };

/* The longest record there is: its size is 16 bits wide. */
enum { RECORD_MAX_BYTES = 65536 };

/* Sample types of the events; they determine the fields of a record. */
enum {
	RECORD_SAMPLE_TYPE = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			     PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
	RECORD_SAMPLE_TYPE_KERNEL = RECORD_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN,
	/* Of the events that the BPF program writes to: its record has the rest (base/python_record.h). */
	RECORD_SAMPLE_TYPE_PYTHON = PERF_SAMPLE_RAW,
};

/* Differences of a sample from RECORD_SAMPLE_TYPE: it has a kernel's chain (RECORD_SAMPLE_TYPE_KERNEL), the data of
 * a tracepoint (PERF_SAMPLE_RAW), or no weight (no PERF_SAMPLE_PERIOD). The last: one of a small weight
 * was taken as its thread left the processor. */
enum { RECORD_HAS_CHAIN = 1, RECORD_HAS_RAW = 2, RECORD_WITHOUT_PERIOD = 4, RECORD_TELLS_SWITCHES = 8 };

/* Which event wrote a record, and on whose behalf. */
struct record_origin {
	uint64_t id; /* of the event, or of the one it was inherited from */
	pid_t tid;
	unsigned cpu;
	uint64_t period; /* of a sample */
};

/*
 * record_time_offset - offset of the time in a record.
 * @type, @n_bytes: from the record's header.
 * Returns a multiple of 8 below n_bytes - 7, or -EBADMSG: too short to have one.
 */
int record_time_offset(uint32_t type, size_t n_bytes);

/*
 * record_origin - the writer of a record.
 * @record: n_bytes long, aligned to 8; its header's size has been checked.
 * Errors: -EBADMSG.
 */
int record_origin(const struct perf_event_header *record, struct record_origin *ret);

/*
 * record_decode - the event in a record.
 * @record:      header->size bytes, aligned to 8; pointers in ret point into it.
 * @format: RECORD_HAS_CHAIN and the like, as the event was opened. Without a weight it is 1.
 * Returns 1 with ret filled, 0 for a record of no interest,
 * -EBADMSG if a field does not fit into the record.
 * Source: perf_event_open(2), "MMAP layout"; include/uapi/linux/perf_event.h, Linux 6.12.
 */
int record_decode(const struct perf_event_header *record, unsigned format, struct capture_event *ret);

/* record_is_python - whether the BPF program has written it. Its header's size has been checked. */
bool record_is_python(const struct perf_event_header *record);

/*
 * record_decode_python - a record of the BPF program.
 * @record: of an event opened with RECORD_SAMPLE_TYPE_PYTHON.
 * @ret:    PYTHON_RECORD_BYTES, aligned to 8: receives it with its entries. Its counts are
 *          checked, its contents are not.
 * Errors: -EBADMSG.
 */
int record_decode_python(const struct perf_event_header *record, struct python_record *ret);

#endif
