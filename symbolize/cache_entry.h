/* SPDX-License-Identifier: MIT */
/* cache_entry.h - the symbols of one module, as a file of the cache. Private to this folder.
 *
 * Arrays of the structs below, one after the other, with a head that contains their offsets. Offsets, never pointers:
 * the file is used as it is mapped. Its reader compares or bounds everything in it.
 */
#ifndef PROBING_SYMBOLIZE_CACHE_ENTRY_H
#define PROBING_SYMBOLIZE_CACHE_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/elf_file.h"

/* Identity of a file by fstat(2): without write access nobody can make another file with the same values. */
struct cache_file {
	uint64_t device, inode, n_bytes;
	int64_t modified_s, modified_ns, changed_s, changed_ns;
};

/* Everything that the cached symbols depend on. */
struct cache_key {
	uint8_t id[BUILD_ID_MAX];      /* of the module; zeros behind n_id */
	uint8_t program[BUILD_ID_MAX]; /* of the program that found it out */
	uint32_t n_id, n_program;
	struct cache_file module, debug; /* debug zeros: there is no separate debug file */
};

enum cache_part {
	CACHE_SYMBOLS,  /* struct cache_symbol, by address */
	CACHE_METHODS,  /* struct cache_method, by address */
	CACHE_INTERNAL, /* uint64_t: starts of nameless functions that are internal, in order */
	CACHE_UNITS,    /* uint64_t: where units of debug information have their first entry */
	CACHE_RANGES,   /* struct cache_range, by start */
	CACHE_STRINGS,  /* ended by NUL; the one at 0 is empty, and means none */
	CACHE_IMAGE,    /* an ELF file: debug sections, unpacked */
	CACHE_N_PARTS
};

struct cache_symbol {
	uint64_t address, parent, body_of;
	uint32_t size, name; /* name: its offset in CACHE_STRINGS */
	uint8_t rank, n_underscores, exported;
	uint8_t unused[5];
};

struct cache_method {
	uint64_t address;
	uint32_t owner, member; /* offsets; 0: none */
	uint8_t kind, is_body, is_shared, is_ambiguous;
	uint8_t unused[4];
};

struct cache_range {
	uint64_t start, end, unit; /* index into CACHE_UNITS */
};

enum {
	CACHE_HAS_STATIC = 1,
	CACHE_HAS_GC_MAIN = 4 /* struct symtab */,
	CACHE_HAS_NO_LINES = 2 /* there is no debug information */
};

enum { CACHE_IMAGE_ALIGNMENT = 4096, CACHE_MAX_ENTRY = 64 << 20 };

struct cache_entry {
	uint32_t flags;
	struct cache_bytes {
		const void *bytes; /* NULL: was not found out; an empty array is not NULL */
		size_t n;
	} parts[CACHE_N_PARTS];
};

/*
 * cache_entry_read - the parts of a file.
 * @bytes: aligned to a page; borrowed, also by the result.
 * Errors: -EBADMSG damaged, or another kind of file; -ESTALE intact, but of another module, file or program.
 */
int cache_entry_read(const void *bytes, size_t n, const struct cache_key *key, struct cache_entry *ret);

/*
 * cache_checksum - that of a whole file, whose own bytes count as zero; @n: at least CACHE_KEY_AT.
 * The fuzz target sets it, so that the reader accepts its changes.
 */
enum { CACHE_CHECKSUM_AT = 24, CACHE_KEY_AT = 32 };
uint64_t cache_checksum(const void *bytes, size_t n);

/* The pieces of a file, to be written one after the other. */
enum { CACHE_MAX_PIECES = 2 * CACHE_N_PARTS + 1, CACHE_HEAD_BYTES = 512 };
struct cache_pieces {
	struct iovec pieces[CACHE_MAX_PIECES];
	int n;
	size_t n_bytes;
	uint8_t head[CACHE_HEAD_BYTES];
};

/* cache_entry_write - borrows the entry's parts. @to must not move. Errors: -E2BIG more than CACHE_MAX_ENTRY. */
int cache_entry_write(const struct cache_entry *entry, const struct cache_key *key, struct cache_pieces *to);

void cache_file_of(const struct stat *st, struct cache_file *ret);

/* The name of a key's file: its build-id, and a hash of all the key. */
enum { CACHE_NAME_BYTES = 2 * BUILD_ID_MAX + 18 };
void cache_key_name(const struct cache_key *key, char to[CACHE_NAME_BYTES]);

#endif
