/* SPDX-License-Identifier: MIT */
/* perf_file.h - the parts of a perf.data file. Private to import_perf.c and its neighbours.
 *
 * Source: tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h, Linux 6.12.
 */
#ifndef PROBING_IMPORT_PERF_FILE_H
#define PROBING_IMPORT_PERF_FILE_H

#include <linux/perf_event.h>

#include "base/cursor.h"
#include "base/elf_file.h"
#include "src/import/sink.h"

enum { PERF_MAX_EVENTS = 256 };

struct perf_event {
	struct perf_event_attr attr;
	uint64_t *ids; /* of the event; owned */
	size_t n_ids;
	char name[64]; /* "" not known */
};

/* A file and its build-id, as they were recorded. */
struct perf_build_id {
	char *path; /* owned */
	struct build_id id;
};

/* A record, somewhere in the file, not aligned. */
struct perf_record {
	uint64_t time_ns; /* by the clock of the recording; 0: before all others */
	uint64_t at;      /* of its header */
};

struct perf_file {
	struct sink *sink;
	const uint8_t *bytes;
	size_t n_bytes;
	struct perf_event events[PERF_MAX_EVENTS];
	size_t n_events;
	struct perf_record *records; /* in order of time */
	size_t n_records, records_allocated;
	struct perf_build_id *build_ids;
	size_t n_build_ids, build_ids_allocated;
	int64_t to_realtime_ns; /* added to a time it is CLOCK_REALTIME */
	bool has_clock;         /* that is known */
};

/*
 * perf_file_read - headers, events, properties of the machine, and the range of the records.
 * @ret: its sink and bytes are set; ended with perf_file_done(), also after an error.
 * Errors: -EBADMSG; -EPROTONOSUPPORT written to a pipe, of another byte order, or compressed; -ENOMEM.
 */
int perf_file_read(struct perf_file *file);
void perf_file_done(struct perf_file *file);

/* The header of a record, and the bytes after it. */
struct perf_event_header perf_record_header(const struct perf_file *file, const struct perf_record *record);
struct cursor perf_record_body(const struct perf_file *file, const struct perf_record *record);

/* Which of the events wrote a record of type PERF_RECORD_SAMPLE; NULL: none that is known. */
const struct perf_event *perf_event_of(const struct perf_file *file, const struct perf_record *record);

/* A number of bits of a mask. */
static inline size_t bits_of(uint64_t mask)
{
	return (size_t)__builtin_popcountll(mask);
}

/* One sample, decoded; pointers into the file. */
struct perf_sample {
	uint64_t ip, time_ns, period;
	pid_t pid, tid;
	uint32_t cpu;
	const uint8_t *chain; /* n_chain words, not aligned; NULL: none */
	size_t n_chain;
	uint64_t abi;        /* PERF_SAMPLE_REGS_ABI_* */
	const uint8_t *regs; /* a word for each bit of the event's mask; NULL: none */
	const uint8_t *stack;
	size_t stack_bytes;
};

/* perf_sample_read - Errors: -EBADMSG a field does not fit; -EPROTONOSUPPORT with fields that are not known here. */
int perf_sample_read(const struct perf_file *file, const struct perf_record *record, const struct perf_event *event,
		     struct perf_sample *ret);

#endif
