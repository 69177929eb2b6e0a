/* SPDX-License-Identifier: MIT */
/* util.h - the few macros and helpers that every layer uses.
 *
 * Errors in this project are negative errno values returned as int; a
 * function's output comes last, is named ret and stays untouched on failure.
 */
#ifndef PROBING_BASE_UTIL_H
#define PROBING_BASE_UTIL_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Run f(&variable) when the variable goes out of scope. */
#define CLEANUP(f) __attribute__((cleanup(f)))

/* Hand a pointer over: yields it and leaves NULL behind. */
#define TAKE(ptr)                                                                                                      \
	({                                                                                                             \
		__typeof__(ptr) *taken_from_ = &(ptr);                                                                 \
		__typeof__(ptr) taken_ = *taken_from_;                                                                 \
		*taken_from_ = NULL;                                                                                   \
		taken_;                                                                                                \
	})

/* Hand a file descriptor over: yields it and leaves -1 behind. */
#define TAKE_FD(fd)                                                                                                    \
	({                                                                                                             \
		int *taken_from_ = &(fd);                                                                              \
		int taken_ = *taken_from_;                                                                             \
		*taken_from_ = -1;                                                                                     \
		taken_;                                                                                                \
	})

/* Define name##p(T **), fit for CLEANUP, out of name(T *). */
#define DEFINE_CLEANUP(type, name)                                                                                     \
	static inline void name##p(type *p)                                                                            \
	{                                                                                                              \
		if (*p)                                                                                                \
			name(*p);                                                                                      \
	}

#define N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* For CLEANUP: free(3), close(2) and closedir(3) of the variable's value. */
void freep(void *pointer_to_pointer);
void closep(const int *fd);
DEFINE_CLEANUP(DIR *, closedir)

/*
 * grow - make room for one more element in a growable array.
 * @array:     the array, replaced when it moves; NULL for an empty one.
 * @n:         elements in use.
 * @allocated: elements there is room for; updated.
 * @size:      bytes of an element.
 * Returns 0 or -ENOMEM (the array is then as it was).
 */
int grow(void *array, size_t n, size_t *allocated, size_t size);

/* clock_gettime in nanoseconds. */
uint64_t monotonic_ns(void);
uint64_t realtime_ns(void);
uint64_t thread_cpu_ns(void); /* CPU time of the calling thread */

/*
 * pread_all - read at an offset, all bytes that are asked for and that the file has (pread(2)).
 * @ret: bytes read; after an error those before it.
 * Errors: of pread(2), except EINTR.
 */
int pread_all(int fd, void *to, size_t n_bytes, uint64_t offset, size_t *ret);

/*
 * read_file - read a whole small file (procfs included) into a string.
 * @max_bytes: longer contents are truncated.
 * @ret:       NUL-terminated, owned by the caller.
 * @ret_bytes: length without the NUL; may be NULL.
 */
int read_file(const char *path, size_t max_bytes, char **ret, size_t *ret_bytes);

/*
 * reopen_to_read - open the file behind an O_PATH descriptor. Examining a file through such a descriptor first
 * neither blocks, as opening a FIFO does, nor has side effects, as opening some devices does.
 * Returns a descriptor, or what open(2) reports, negated. Source: open(2), O_PATH; proc(5), /proc/pid/fd.
 */
int reopen_to_read(int looked_at);

/*
 * hash_bytes - FNV-1a, 64 bits: continues hash with n bytes; HASH_START begins one.
 * Source: Fowler, Noll, Vo, draft-eastlake-fnv.
 */
#define HASH_START UINT64_C(0xcbf29ce484222325)
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ from[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/*
 * hash_words - a hash for tables in memory, eight bytes at a time: continues hash with n bytes, and zeros up to a multiple of
 * eight. In a file or between hosts use another one: its value depends on the byte order.
 */
static inline uint64_t hash_words(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;
	uint64_t word;

	for (; n >= sizeof word; n -= sizeof word, from += sizeof word) {
		memcpy(&word, from, sizeof word);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	if (n == 0)
		return hash;
	word = 0;
	memcpy(&word, from, n);
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/* 64-bit mixer (the finaliser of MurmurHash3) for hash tables of integers. */
static inline uint64_t mix64(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ (x >> 33);
}

#endif
