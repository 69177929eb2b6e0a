/* SPDX-License-Identifier: MIT */
/* event.h - the sampled event: the CPU's clock, or another one. Part of capture.h.
 *
 * A name becomes a struct sampled_event (event_find), with the kernel's attributes.
 * event_check() decides whether it is available here.
 */
#ifndef PROBING_CAPTURE_EVENT_H
#define PROBING_CAPTURE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracepoint;

enum event_kind {
	EVENT_CLOCK,      /* time: weights are nanoseconds. Of all others they are how many there were */
	EVENT_SOFTWARE,   /* counted by the kernel */
	EVENT_HARDWARE,   /* counted by the processor */
	EVENT_TRACEPOINT, /* a place in the kernel, with the values that it is about */
};

enum { EVENT_MAX_NAME = 128 };

struct sampled_event {
	enum event_kind kind;
	uint32_t type;   /* as in struct perf_event_attr */
	uint64_t config; /* the same; of a tracepoint 0 until event_resolve() */
	/* Default: sample every Nth event; 0: sample at a frequency. */
	uint64_t usual_count;
	/* It happens in kernel mode: without the right to see that side there are no samples. */
	bool in_kernel;
	char name[EVENT_MAX_NAME]; /* "page-faults", "sched:sched_switch" */
};

/*
 * event_find - the event of a name, its type and number. Opens nothing.
 * Errors: -ENOENT there is none; -EINVAL a tracepoint's that cannot be one ("a:", "a:b:c").
 */
int event_find(const char *name, struct sampled_event *ret);

/* event_nth - all but tracepoints, in a good order for a list. False: there are no so many. */
bool event_nth(size_t n, struct sampled_event *ret);

/* A short description of an event; "" for tracepoints. */
const char *event_summary(const struct sampled_event *event);

/*
 * event_resolve - a tracepoint's number, and the fields that it has.
 * @ret: NULL where it is no tracepoint, or its fields cannot be known in this build;
 *       ended with tracepoint_free(). Untouched on failure.
 * Errors: -ENODEV tracefs is not mounted; -EACCES it may not be read; -ENOENT no such
 *         tracepoint; -EBADMSG it is described in a way that is not understood; -ENOMEM.
 * Source: Documentation/trace/events.rst, Linux 6.12.
 */
int event_resolve(struct sampled_event *event, struct tracepoint **ret);

/*
 * event_check - whether this machine has it, and we may sample our own threads at it.
 * Errors: -ENOENT, -EOPNOTSUPP it has not; -EACCES, -EPERM we may not; -ENOSYS...
 */
int event_check(const struct sampled_event *event);

/* event_explain - one sentence for an error of the two above, with the remedy. At least 512 bytes. */
void event_explain(int error, const struct sampled_event *event, char *to, size_t n_bytes);

/*
 * event_each_tracepoint - call @take with the name of each, in order.
 * Errors: those of event_resolve(), but -ENOENT; a negative result of take.
 */
int event_each_tracepoint(int (*take)(void *data, const char *name), void *data);

/* ---- Fields of a tracepoint ---- */

enum tracepoint_type {
	TRACEPOINT_INTEGER,
	TRACEPOINT_TEXT,
	TRACEPOINT_BYTES,
	TRACEPOINT_NUMBERS, /* an array of integers, shown as text */
	TRACEPOINT_SYSCALL, /* the name of the system call of that number, of this machine */
};

/* Position of a field in a record. */
struct tracepoint_field {
	char name[64];
	enum tracepoint_type type;
	uint32_t offset, n_bytes; /* of a dynamic one: of the word that refers to it */
	uint32_t element_bytes;   /* of TRACEPOINT_NUMBERS */
	bool is_signed;           /* of integers and numbers */
	bool is_dynamic;          /* a word refers to it: length << 16 | offset */
	bool is_relative;         /* that offset counts from the end of the word */
};

enum { TRACEPOINT_MAX_FIELDS = 128 };

struct tracepoint {
	char name[EVENT_MAX_NAME];
	struct tracepoint_field *fields;
	size_t n_fields;
};
void tracepoint_free(struct tracepoint *tracepoint);
void tracepoint_freep(struct tracepoint **tracepoint);

/* A field's value. Bytes are borrowed from the record, or from the room that was given. */
struct tracepoint_value {
	enum { VALUE_NONE, VALUE_INTEGER, VALUE_TEXT, VALUE_BYTES } type; /* NONE: not in the record */
	int64_t integer;   /* 64 bits without a sign come as those bits */
	const void *bytes; /* of the record, of @room, or static; VALUE_TEXT: valid UTF-8 without a NUL, n_bytes long */
	size_t n_bytes;
};

/*
 * tracepoint_decode - one field of a raw record.
 * @raw:  the record's n_bytes, with any contents.
 * @room: for formatted values, room_bytes (at least 1) long; longer ones are truncated.
 */
struct tracepoint_value tracepoint_decode(const struct tracepoint_field *field, const void *raw, size_t n_bytes,
					  char *room, size_t room_bytes);

#endif
