/* SPDX-License-Identifier: MIT */
/* stacks_file.h - recorded stacks with all that unwinding them needs, in one small file.
 *
 * A gzip stream of little-endian 64-bit words and blocks of bytes (a word of
 * length, then the bytes):
 *
 *   magic
 *   modules:  count; name, size of the file, pieces: count; (offset, bytes) each
 *   mappings: count; start, end, file offset, number of the module
 *   samples:  count; registers, stack bytes, frames: count; (pc, sp) each,
 *             1 if the stack reaches the thread's start
 *
 * A module's pieces are its ELF and program headers, a .eh_frame_hdr whose table
 * lists the needed functions only, and their CIEs and FDEs, where they were in
 * the file. The frames are what libdwfl made of the sample with the whole files.
 * Written by bench/keep_stacks.c.
 */
#ifndef PROBING_TESTS_STACKS_FILE_H
#define PROBING_TESTS_STACKS_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define STACKS_MAGIC UINT64_C(0x31736b6361747370) /* "pstacks1" */

/* The current record. After a failure all values are zero and failed is set. */
struct stacks_file {
	gzFile gz;
	bool failed;
};

static inline bool stacks_open(struct stacks_file *file, const char *path, const char *mode)
{
	file->gz = gzopen(path, mode);
	file->failed = !file->gz;
	return !file->failed;
}

/* False where anything went wrong on the way. */
static inline bool stacks_close(struct stacks_file *file)
{
	if (file->gz && gzclose(file->gz) != Z_OK)
		file->failed = true;
	file->gz = NULL;
	return !file->failed;
}

static inline void stacks_put(struct stacks_file *file, uint64_t word)
{
	if (gzwrite(file->gz, &word, sizeof word) != sizeof word)
		file->failed = true;
}

static inline void stacks_put_bytes(struct stacks_file *file, const void *bytes, size_t n)
{
	stacks_put(file, n);
	if (n > 0 && gzwrite(file->gz, bytes, (unsigned)n) != (int)n)
		file->failed = true;
}

static inline uint64_t stacks_get(struct stacks_file *file)
{
	uint64_t word = 0;

	if (file->failed || gzread(file->gz, &word, sizeof word) != sizeof word) {
		file->failed = true;
		return 0;
	}
	return word;
}

/* A NUL is put behind; owned by the caller; NULL after a failure. */
static inline void *stacks_get_bytes(struct stacks_file *file, size_t *ret_n)
{
	enum { MAX_BYTES = 64 << 20 };
	uint64_t n = stacks_get(file);
	char *bytes = !file->failed && n <= MAX_BYTES ? malloc(n + 1) : NULL;

	*ret_n = 0;
	if (!bytes || (n > 0 && gzread(file->gz, bytes, (unsigned)n) != (int)n)) {
		file->failed = true;
		free(bytes);
		return NULL;
	}
	bytes[n] = '\0';
	*ret_n = n;
	return bytes;
}

#endif
