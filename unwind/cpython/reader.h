/* SPDX-License-Identifier: MIT */
/* reader.h - declarations that the files of this folder share. Private. */
#ifndef PROBING_READER_H
#define PROBING_READER_H

#include "base/task_ids.h"
#include "unwind/cpython/cpython.h"
#include "unwind/cpython/layout.h"

/* Longest version, including the kind of build. */
enum { VERSION_BYTES = 32 };

/*
 * Pages of the target read for the current sample. Frames lie close together,
 * so that one page serves many of them; dropped before each sample.
 */
enum { CACHE_PAGE_BYTES = 4096, CACHE_N_PAGES = 512, CACHE_N_SLOTS = 1024, CACHE_N_PREFETCH_SETS = 32 };

struct prefetch_set;

struct page_cache {
	struct remote *remote;
	struct page_cache_page {
		uint64_t address;
		uint16_t start, end; /* the part that was read */
		uint16_t low, high;  /* the part that was requested; high 0: nothing */
	} pages[CACHE_N_PAGES];
	uint8_t (*bytes)[CACHE_PAGE_BYTES]; /* of each */
	unsigned n;
	bool is_touched;
	uint16_t slots[CACHE_N_SLOTS];      /* hash of the address -> index + 1 */
	struct prefetch_set *prefetch_sets; /* CACHE_N_PREFETCH_SETS, by thread; NULL: none yet */
	struct prefetch_set *prefetch_set;  /* of this sample's thread; NULL: unknown thread */
};

/* -ENOMEM. */
int page_cache_init(struct page_cache *cache, struct remote *remote);
void page_cache_done(struct page_cache *cache);
void page_cache_forget(struct page_cache *cache);
/* Have the kernel give all memory that pages may need now. Forgets. */
void page_cache_touch(struct page_cache *cache);
/* Read in one call what the last samples of a thread needed. -ENOMEM. */
int page_cache_expect(struct page_cache *cache, pid_t tid);
/* Read in one call the missing ones of n objects that are about to be read. */
void page_cache_prepare(struct page_cache *cache, const uint64_t *addresses, size_t n, size_t n_bytes);
/* -EFAULT. */
int page_cache_read(struct page_cache *cache, uint64_t address, void *to, size_t n_bytes);

/* Where a thread's state was last found; in different interpreters one thread has several. */
enum { PY_MAX_STATES = 16 };

struct thread_slot {
	pid_t tid; /* its own */
	uint64_t state, interpreter;
};

/* Code objects by identity, and by address for the current sample. */
struct code_identity {
	uint64_t address, qualname, file, lines;
	uint64_t bytecode_object;        /* where the bytecode is an object of its own */
	uint64_t name_length, name_hash; /* of the name object, where codes carry no version */
	uint64_t bytecode_bytes;         /* 0: not known */
	uint32_t first_line, version;
};

struct code_entry {
	struct py_code code;
	struct code_identity identity;
};

struct code_cache {
	struct code_entry **entries; /* in order of first sight */
	size_t n, allocated;
	uint32_t *slots; /* hash of identity -> index + 1 */
	size_t n_slots;
	/* Direct-mapped, valid for the current sample only. */
	struct {
		uint64_t sample; /* its number; 0: none */
		uint64_t address;
		struct py_code *code;
	} seen[256];
	/* Ranges of bytecode, sorted by start; rebuilt when codes were added. */
	struct code_range {
		uint64_t start, end;
		struct py_code *code;
	} * ranges;
	size_t n_ranges, ranges_allocated;
	uint64_t type; /* type of all code objects; 0: no symbol for it, and none found yet */
	/* Addresses that no code object was found around; forgotten when codes are added. */
	uint64_t not_code[64];
	size_t not_code_as_of; /* n, then */
};

/* Properties of a type (object.h). */
enum { TYPE_NAME_BYTES = 96, OBJECT_N_TYPES = 64 };

struct object_type {
	uint64_t address;
	uint64_t flags;
	uint64_t base; /* 0: object's */
	int64_t basic_size, item_size, dict_offset, weakref_offset;
	char name[TYPE_NAME_BYTES]; /* tp_name: of types made by C code with the module before it; cut */
};

struct py_runtime {
	struct remote *remote;
	pid_t pid;            /* in the process' PID namespace */
	struct task_ids *ids; /* its threads' ids in that namespace; NULL: as ours */
	const struct module *module;
	uint64_t text_start, text_end;
	int64_t bias;
	struct py_symbols symbols;
	struct layout layout;
	uint64_t interpreter;  /* one of them, in releases that find them by a running thread only */
	uint64_t frame_type;   /* type of all frame objects; 0: none found yet */
	unsigned unicode_kind; /* 2.7: bytes of a character of text; 0: not known yet */
	int pthread_tid;       /* where libc's thread structure has its id; ABSENT: not known yet */
	char version[VERSION_BYTES];
	struct page_cache page_cache;
	struct {
		uint64_t sample; /* which it was read for */
		struct object_type type;
	} types[OBJECT_N_TYPES]; /* by hash of the address */
	uint64_t n_samples;
	uint64_t sample; /* changes with each sample, and to make later reads see new memory */
	/* Limits for one sample, independent of the memory's contents: frames to read, and
	 * bytes of line tables. */
	unsigned frames_left;
	size_t table_bytes_left;
	struct thread_slot *threads;
	size_t n_threads, threads_allocated;
	struct code_cache codes;
	struct asyncio *asyncio; /* NULL: not used yet */
	/* The record of the current sample's interrupt; NULL: none. */
	const struct python_record *record;
	size_t record_next;
	bool record_is_whole; /* so far */
	/* Code addresses and results of the walk under way. */
	uint64_t *walk_codes;
	struct py_code **walk_results;
	size_t walk_codes_allocated, walk_results_allocated;
};

static inline uint64_t reader_field(const struct py_runtime *runtime, enum layout_field field)
{
	return (uint64_t)(int64_t)runtime->layout.field[field];
}

static inline bool reader_has(const struct py_runtime *runtime, enum layout_field field)
{
	return runtime->layout.field[field] != ABSENT;
}

/* Values out of a structure that was read as bytes from its start. */
static inline uint64_t word_at(const uint8_t *bytes, uint64_t offset)
{
	uint64_t value;

	__builtin_memcpy(&value, bytes + offset, sizeof value);
	return value;
}

static inline uint32_t half_at(const uint8_t *bytes, uint64_t offset)
{
	uint32_t value;

	__builtin_memcpy(&value, bytes + offset, sizeof value);
	return value;
}

/*
 * A linked list in foreign memory. Brent's algorithm detects every cycle within a small multiple of
 * its length, and stores one address.
 */
struct circle {
	uint64_t mark;
	size_t n, next_mark;
};

/* Whether a list's next address, never 0, shows that it runs in a circle. Call it with each in turn. */
static inline bool circle_met(struct circle *circle, uint64_t address)
{
	if (address == circle->mark)
		return true;
	if (circle->n++ == circle->next_mark) {
		circle->mark = address;
		circle->next_mark = circle->next_mark * 2 + 64;
	}
	return false;
}

/* The first interpreter of the list. -EAGAIN: there is none yet. */
int reader_interpreters(struct py_runtime *runtime, uint64_t *ret);

/*
 * reader_states - the thread states of an operating system's thread, one for each interpreter
 * that it has entered, those of younger interpreters first.
 * Checks cached ones before it returns them.
 * @tid:    as we see it.
 * @anew:   read the list of threads even if some are cached.
 * @states: room for max.
 * Returns how many. -ESRCH, -EFAULT.
 */
int reader_states(struct py_runtime *runtime, pid_t tid, bool anew, struct thread_slot *states, size_t max);

/* The same, from the cache only. -ESRCH: it has none. */
int reader_known_states(struct py_runtime *runtime, pid_t tid, struct thread_slot *states, size_t max);

struct frame_head {
	uint64_t code, previous;
	uint64_t instruction;    /* pointer into the bytecode, or index of the last instruction */
	uint64_t type;           /* where frames are objects */
	uint32_t bytecode_index; /* free-threaded builds: which bytecode it runs */
	bool is_entry;           /* outermost of its evaluation */
	bool is_shim;            /* 3.12 and later: belongs to the evaluation, no Python frame */
};
int reader_frame(struct py_runtime *runtime, uint64_t address, struct frame_head *ret);

/* Append one frame, without its callers; includes internal code. -EFAULT, -EBADMSG, -ELOOP, -ENOMEM. */
int reader_walk_one(struct py_runtime *runtime, uint64_t address, struct py_frames *frames);

/*
 * reader_codes - the code objects behind many addresses.
 * @addresses: n of them; a tagged pointer's tag already masked.
 * @ret:       n results.
 * Errors: -EFAULT, -EBADMSG one of them is no code object; -ENOMEM.
 */
int reader_codes(struct py_runtime *runtime, const uint64_t *addresses, size_t n, struct py_code **ret);
void reader_codes_done(struct code_cache *codes);

/* A str of at most max_bytes as UTF-8, owned by the caller; longer ones end in "...". */
int reader_string(struct py_runtime *runtime, uint64_t address, size_t max_bytes, char **ret);

/* A character in UTF-8, at most four bytes; U+FFFD for invalid ones and terminal controls. */
size_t reader_put_utf8(char *to, uint32_t character);

/*
 * A character that UTF-8 writes in several bytes; 0: there is none at this place.
 * Source: utf-8(7). The shortest forms only.
 */
uint32_t reader_utf8_at(const uint8_t *data, size_t n, size_t *ret_bytes);

/*
 * line_at - walk a line table to one instruction.
 * @kind:   LINES_*.
 * @offset: of the instruction, in bytes from the start of the bytecode.
 * 0: no line there, or a damaged table.
 */
int line_at(unsigned kind, const uint8_t *table, size_t n_bytes, int first_line, uint32_t offset);

/* The same with columns. */
void position_at(unsigned kind, const uint8_t *table, size_t n_bytes, int first_line, uint32_t offset,
		 struct py_position *ret);

/* ---- Frames read in the sample's own interrupt (record.c) ---- */

/* A record's entry for a frame or _PyCFrame. NULL: none, and py_record_sufficed() becomes false. */
const struct python_entry *reader_recorded(struct py_runtime *runtime, unsigned kind, uint64_t address);

/* The same as reader_states(), by the record. */
int reader_recorded_states(const struct py_runtime *runtime, struct thread_slot *states, size_t max);

/* Where a thread's frames begin: its field, as recorded, else from memory. -EFAULT. */
int reader_top(struct py_runtime *runtime, uint64_t state, uint64_t field, uint64_t *ret);

/*
 * reader_recorded_code - the code object that a frame ran, by its identity at that instant.
 * Errors: -ESTALE it is unknown, and another one has its address now; -EFAULT, -EBADMSG; -ENOMEM.
 */
int reader_recorded_code(struct py_runtime *runtime, const struct python_entry *entry, struct py_code **ret);

/* The bytecode that a thread of a free-threaded build runs of a code object. -EFAULT, -EBADMSG. */
int reader_bytecode(struct py_runtime *runtime, uint64_t code, uint32_t index, uint64_t *ret);

/* Where the bytecode begins that py_code_at() found an address in. */
uint64_t reader_bytecode_start(const struct py_runtime *runtime, uint64_t address);

/* Bytecode of a code object at another address than in the code object. -ENOMEM. */
int reader_add_bytecode(struct py_runtime *runtime, struct py_code *code, uint64_t start);

#endif
