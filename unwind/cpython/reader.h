/* reader.h - what the files of this folder share. Private. */
#ifndef PROBING_READER_H
#define PROBING_READER_H

#include "unwind/cpython/cpython.h"
#include "unwind/cpython/layout.h"

/*
 * Pages of the target read for the current sample. Frames lie close together,
 * so that one page serves many of them; forgotten before each sample.
 */
enum { WINDOW_PAGE_BYTES = 4096, WINDOW_N_PAGES = 8 };

struct window {
	struct remote *remote;
	struct window_page {
		uint64_t address; /* page-aligned; 1: free */
		uint8_t bytes[WINDOW_PAGE_BYTES];
	} pages[WINDOW_N_PAGES];
	unsigned next; /* to be replaced */
};

void window_forget(struct window *window);
/* n_bytes at most a page. -EFAULT. */
int window_read(struct window *window, uint64_t address, void *to, size_t n_bytes);

/* Where a thread's state was last found. */
struct thread_slot {
	pid_t tid;
	uint64_t state;
};

/* Code objects by identity, and by address for the current sample. */
struct code_identity {
	uint64_t address, qualname, file, lines;
	uint64_t name_length, name_hash; /* of the name object, where codes carry no version */
	uint32_t first_line, n_units, version;
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
		uint64_t address;
		struct py_code *code;
	} seen[256];
	/* Ranges of bytecode, sorted by start; rebuilt when codes were added. */
	struct code_range {
		uint64_t start, end;
		struct py_code *code;
	} *ranges;
	size_t n_ranges, ranges_allocated;
	uint64_t type; /* what all code objects have as their type; 0: none seen yet */
	/* Addresses that no code object was found around; forgotten when codes are added. */
	uint64_t not_code[64];
	size_t not_code_as_of; /* n, then */
};

/* Where objects have the pointer to their type. */
enum { OBJECT_TYPE = 8 };

struct py_runtime {
	struct remote *remote;
	const struct module *module;
	uint64_t text_start, text_end;
	int64_t bias;
	uint64_t address; /* of _PyRuntime */
	struct layout layout;
	char version[32];
	struct window window;
	/* What one sample may cost at most, whatever memory says: frames to look at, and
	 * bytes of line tables. */
	unsigned frames_left;
	size_t table_bytes_left;
	struct thread_slot *threads;
	size_t n_threads, threads_allocated;
	struct code_cache codes;
	/* Code addresses and results of the walk under way. */
	uint64_t *walk_codes;
	struct py_code **walk_results;
	size_t walk_codes_allocated, walk_results_allocated;
};

static inline uint64_t reader_field(const struct py_runtime *runtime, enum layout_field field)
{
	return (uint64_t)(int64_t)runtime->layout.field[field];
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
 * reader_thread - the thread state of an operating system's thread.
 * A remembered one is checked before it is given out. -ESRCH, -EFAULT.
 */
int reader_thread(struct py_runtime *runtime, pid_t tid, uint64_t *ret);

struct frame_head {
	uint64_t code, previous, instruction;
	bool is_entry; /* 3.11: outermost of its evaluation */
	bool is_shim;  /* 3.12 and later: belongs to the evaluation itself, is no Python frame */
};
int reader_frame(struct py_runtime *runtime, uint64_t address, struct frame_head *ret);

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

/*
 * line_at - walk a location table (3.11 and later) to one code unit.
 * Source: Objects/locations.md, CPython 3.11. 0: no line there, or a damaged table.
 */
int line_at(const uint8_t *table, size_t n_bytes, int first_line, uint32_t unit);

#endif
