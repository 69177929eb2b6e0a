/* SPDX-License-Identifier: MIT */
/* sample_ring.h - the memory through which an agent hands samples of its own process to a recorder.
 *
 * A sealed memfd of a fixed size: one page of struct sample_ring, then data_bytes of records. Signal handlers of all
 * threads write: each reserves its bytes by moving `head` (compare and swap, no lock), fills them, and commits them by
 * one store. One recorder reads, and moves `tail`. A record lies in one piece; where it does not fit before the end of
 * the data, padding fills that end. If there is no room, a sample is dropped and counted.
 *
 * Positions count bytes since the beginning and never wrap; a record at a position lies at that position modulo
 * data_bytes. A record is whole once its `commit` is sample_ring_commit() of its own position, a value that no earlier
 * record has had there.
 *
 * Neither side trusts the other: the writers take data_bytes from their own variables and bound each position; the
 * reader copies a record out and checks the copy.
 *
 * Any change of a structure here is a change of SAMPLE_RING_VERSION.
 */
#ifndef PROBING_AGENT_SAMPLE_RING_H
#define PROBING_AGENT_SAMPLE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/python_record.h"

#define SAMPLE_RING_MAGIC UINT64_C(0x676e6972656c7073) /* "splering" */

enum {
	SAMPLE_RING_VERSION = 1,
	SAMPLE_RING_HEADER_BYTES = 4096,
	SAMPLE_RING_ALIGNMENT = 16, /* of records */
	SAMPLE_RING_MIN_BYTES = 1 << 19,
	SAMPLE_RING_MAX_BYTES = 1 << 26,
	SAMPLE_RING_MAX_REGS = 35, /* of any machine (base/machine.h), and a multiple of 16 bytes in all */
	SAMPLE_RING_MAX_STACK_BYTES = 1 << 18,
	SAMPLE_RING_MEASURED = 8, /* every so many samples of a thread the handler's time is measured */
};

/* Why no sample comes any more. */
enum sample_ring_state {
	SAMPLE_RING_RUNS,
	SAMPLE_RING_STOPPED, /* on request, or the agent has ended */
	SAMPLE_RING_YIELDED, /* the program handles the signal itself now */
};

struct sample_ring {
	uint64_t magic;
	uint32_t version, state; /* enum sample_ring_state */
	uint64_t data_bytes;     /* a power of two */
	uint32_t signal, n_threads;
	uint32_t n_refused;         /* threads without a timer: more than RLIMIT_SIGPENDING allows, ... */
	uint32_t n_blocked;         /* ... and that block the signal */
	_Alignas(64) uint64_t head; /* reserved up to here: the writers' */
	uint64_t n_dropped;
	_Alignas(64) uint64_t tail; /* read up to here: the reader's */
};

enum sample_record_kind { SAMPLE_RECORD_PADDING, SAMPLE_RECORD_SAMPLE };

/* The beginning of each record, all that padding has. */
struct sample_record_start {
	uint64_t commit;
	uint32_t n_bytes; /* of the record, this included */
	uint32_t kind;    /* enum sample_record_kind */
};

/* Followed by python_bytes of a struct python_record with its entries, and stack_bytes from the stack pointer on. */
struct sample_record {
	struct sample_record_start start;
	uint64_t time_ns;   /* CLOCK_MONOTONIC */
	uint64_t weight_ns; /* CPU time of the thread since its last sample */
	int32_t tid;        /* as the process itself numbers it */
	uint32_t cpu;
	uint32_t python_bytes; /* 0: no frames were read */
	uint32_t stack_bytes;
	uint32_t handler_ns; /* CPU time of the handler up to the end of this record: measured in some samples, which
			      * stand for SAMPLE_RING_MEASURED each; 0: in the others */
	uint32_t reserved;
	uint64_t regs[SAMPLE_RING_MAX_REGS]; /* by DWARF number; those that the machine has */
};

enum {
	SAMPLE_RECORD_MAX_BYTES = sizeof(struct sample_record) + PYTHON_RECORD_BYTES + SAMPLE_RING_MAX_STACK_BYTES +
				  SAMPLE_RING_ALIGNMENT,
};

_Static_assert(sizeof(struct sample_ring) <= SAMPLE_RING_HEADER_BYTES, "one page");
_Static_assert(sizeof(struct sample_record_start) == 16 && offsetof(struct sample_record, time_ns) == 16, "layout");
_Static_assert(offsetof(struct sample_record, regs) == 56 && sizeof(struct sample_record) == 336, "layout");
_Static_assert(offsetof(struct sample_ring, head) == 64 && offsetof(struct sample_ring, tail) == 128, "layout");
_Static_assert((int)SAMPLE_RECORD_MAX_BYTES < (int)SAMPLE_RING_MIN_BYTES, "a record fits");

static inline uint64_t sample_ring_commit(uint64_t position)
{
	return (position + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint32_t sample_ring_align(uint32_t n_bytes)
{
	return (n_bytes + SAMPLE_RING_ALIGNMENT - 1) & ~(uint32_t)(SAMPLE_RING_ALIGNMENT - 1);
}

/* ---- Reading ---- */

/* A record copied out of the ring and checked; pointers into the reader's copy, valid until the next call. */
struct sample_ring_sample {
	struct sample_record record;
	struct python_record *python; /* NULL: none. Its entries follow it */
	const uint8_t *stack;         /* record.stack_bytes */
};

struct sample_ring_reader {
	struct sample_ring *ring;
	const uint8_t *data;
	uint64_t data_bytes;
	uint64_t tail;
	uint8_t *copy; /* SAMPLE_RECORD_MAX_BYTES */
};

/*
 * sample_ring_reader_init - read a mapped ring.
 * @memory: n_bytes, the header and the data; borrowed. @ret: ended with sample_ring_reader_done().
 * Errors: -EBADMSG the size is none of a ring, or the header is not of this version; -ENOMEM.
 */
int sample_ring_reader_init(void *memory, uint64_t n_bytes, struct sample_ring_reader *ret);
void sample_ring_reader_done(struct sample_ring_reader *reader);

/*
 * sample_ring_time - when the next whole sample was taken. False: none now. A hint: sample_ring_take() checks.
 */
bool sample_ring_time(const struct sample_ring_reader *reader, uint64_t *ret_ns);

/*
 * sample_ring_take - the next sample.
 * Returns 1; 0: none now. Errors: -EBADMSG the ring is invalid and must not be read again.
 */
int sample_ring_take(struct sample_ring_reader *reader, struct sample_ring_sample *ret);

/* Bytes up to which writers have reserved, to know later that all samples of before have been taken. */
uint64_t sample_ring_head(const struct sample_ring_reader *reader);

#endif
