/* SPDX-License-Identifier: MIT */
/* name_wire.h - messages between the recorder and the process that resolves symbols. Private.
 *
 * A message is a head, its bytes, and at most one descriptor. Both ends are the same program on one machine, so
 * the recorder's messages are structs in their memory layout. The other end reads foreign files
 * and is not trusted: a cursor reads its answers, and no field is used without a check that
 * could affect more than a name.
 */
#ifndef PROBING_NAME_WIRE_H
#define PROBING_NAME_WIRE_H

#include "base/cursor.h"
#include "src/pipeline/batch.h"

enum {
	WIRE_MAX_BYTES = 1 << 20, /* of a message */
	WIRE_MAX_PLACES = 64,     /* places of one request */
	WIRE_MAX_STRING = 8192,   /* longer ones are cut */
};

enum wire_kind {
	/* Of the recorder. */
	WIRE_MODULE,    /* struct wire_module, its path; the file */
	WIRE_PLACES,    /* struct wire_places */
	WIRE_PROGRAM,   /* struct new_program */
	WIRE_DUMP,      /* uint32_t program; the file */
	WIRE_FEED,      /* struct wire_feed; the perf map, or nothing */
	WIRE_GENERATED, /* struct wire_generated */
	WIRE_REFRESH,
	WIRE_FILE, /* int32_t error; the requested file, if it is 0 */
	/* Of the other end. */
	WIRE_ANSWERS,     /* struct wire_answer, as encoded below, one after another */
	WIRE_STALE,       /* struct wire_stale, one after another */
	WIRE_WANT_PATH,   /* the path, NUL included */
	WIRE_WANT_ID,     /* struct wire_wanted_id */
	WIRE_WANT_CACHED, /* a file's name in the cache, NUL included */
	WIRE_END,         /* struct wire_limited: the request is complete */
	/* Of both ends of another conversation: see cfi_wire.h. */
	WIRE_CFI,
};

/* Modules have numbers of the recorder's. */
struct wire_module {
	uint32_t module;
	bool has_file; /* else it is looked for by its build-id */
	struct build_id build_id;
	char root[64]; /* in front of the path, for debug files; "": nothing */
};

struct wire_places {
	uint32_t module, n;
	uint64_t addresses[WIRE_MAX_PLACES];
};

struct wire_feed {
	uint32_t program;
	bool is_gone;
};

/* Of a frame in generated code, all that its name depends on. */
struct wire_generated {
	uint32_t n;
	struct wire_frame {
		uint32_t id, program;
		uint64_t address, time_ns;
	} frames[WIRE_MAX_PLACES];
};

struct wire_stale {
	uint32_t program;
	uint64_t address;
};

struct wire_wanted_id {
	struct build_id id;
	bool executable;
};

/* Names missing because of limits: see struct symbol_limited. */
struct wire_limited {
	uint64_t n_places, n_modules;
	uint32_t limit; /* enum symbol_limit, of the first one */
	char path[256];
};

/* ---- Messages ---- */

struct wire {
	uint32_t kind;
	uint8_t *bytes; /* kept from message to message */
	size_t n_bytes, allocated;
	int fd; /* of the message; -1: none */
};

void wire_init(struct wire *wire);
void wire_done(struct wire *wire);

/* wire_send - @fd: -1: none; remains the caller's. Errors: -EPIPE the other end is closed; of sendmsg(2). */
int wire_send(int socket, enum wire_kind kind, const void *bytes, size_t n_bytes, int fd);

/*
 * wire_receive - wait for a message. Drops the contents of the previous one.
 * @patience_ms: time without any data; -1: no limit.
 * Errors: -EPIPE the other end is closed; -ETIMEDOUT; -EMSGSIZE; -ENOMEM; of recvmsg(2).
 */
int wire_receive(int socket, int patience_ms, struct wire *wire);

/* wire_struct - copy a message that is one struct; false: it has another size. */
bool wire_struct(const struct wire *wire, void *to, size_t n_bytes);

/* ---- Answers ---- */

/* One function at a place; strings are borrowed. */
struct wire_symbol {
	const char *name, *linkage, *file; /* linkage and file may be NULL */
	uint64_t start;
	int32_t line, first_line;
	uint8_t role; /* enum symbol_role */
	bool is_offset, is_python;
};

/* The answer for one place, or one frame of generated code. */
struct wire_answer {
	uint32_t subject; /* index of the requested place, or a frame's id */
	uint32_t n;       /* 0: nothing is known */
	struct wire_symbol symbols[SYMBOL_MAX_INLINED];
};

/* Answers on their way out. */
struct wire_answers {
	uint8_t *bytes;
	size_t n, allocated;
};

/* wire_put_answer - append. -ENOMEM. */
int wire_put_answer(struct wire_answers *answers, const struct wire_answer *answer);

/*
 * wire_take_answer - the next answer of a message.
 * @ret: strings point into the message.
 * Returns 1, 0 at the end of the message, -EBADMSG invalid.
 */
int wire_take_answer(struct cursor *from, struct wire_answer *ret);

#endif
