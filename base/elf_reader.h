/* SPDX-License-Identifier: MIT */
/* elf_reader.h - who parses ELF files for a process that shall not do so itself.
 *
 * A recorder has privileges, and a file may be made to harm whoever parses it. So another process parses, and answers
 * with numbers. elf_file.c asks this interface where a file was opened through one, and takes its answers for
 * foreign: as far as the file itself would be trusted, and no further.
 */
#ifndef PROBING_BASE_ELF_READER_H
#define PROBING_BASE_ELF_READER_H

#include "base/elf_file.h"

enum { ELF_SUMMARY_MAX_SEGMENTS = 64 }; /* linkers emit about five that are loaded */

/* What the headers and notes of a file say. */
struct elf_summary {
	unsigned machine; /* e_machine */
	struct build_id build_id;
	size_t n_segments;
	struct elf_segment segments[ELF_SUMMARY_MAX_SEGMENTS];
};

/*
 * Functions return negative errno, -ENOENT where there is no answer. Only open() may return -ENOMEM. All are called by
 * one thread at a time.
 */
struct elf_reader {
	/*
	 * open - a file to ask about later.
	 * @name: of the file, for people. @fd: of a regular file, borrowed until close(); -1: the file is @image, n_bytes
	 * long, borrowed as well.
	 * @ret_number: by which it is asked about. Errors: -ENOEXEC no ELF file that elf_file_open() takes, or nobody is
	 * there to parse it.
	 */
	int (*open)(void *data, const char *name, int fd, const void *image, size_t n_bytes, struct elf_summary *ret,
		    uint32_t *ret_number);
	void (*close)(void *data, uint32_t number);
	/* As elf_file_symbol(), elf_file_section(), elf_file_function(). */
	int (*symbol)(void *data, uint32_t number, const char *name, uint64_t *ret_value, uint64_t *ret_size);
	int (*section)(void *data, uint32_t number, const char *name, uint64_t *ret_address, uint64_t *ret_size);
	int (*function)(void *data, uint32_t number, uint64_t address, uint64_t *ret_start, uint64_t *ret_end);
	void *data;
};

/*
 * elf_file_open_through - the same as elf_file_open(), or, with @fd -1, as elf_file_open_memory(), by a reader.
 * The result has no Elf, and elf_file_cfi() finds no table in it.
 * @reader: borrowed, outlives the result.
 */
int elf_file_open_through(const struct elf_reader *reader, const char *name, int fd, const void *image, size_t n_bytes,
			  struct elf_file **ret);

/* The number by which the reader knows a file. False: it was opened without one. */
bool elf_file_number(const struct elf_file *file, uint32_t *ret);

/* All that a reader has to tell of a file when it is opened. -E2BIG more segments than there is room for. */
int elf_file_summary(const struct elf_file *file, struct elf_summary *ret);

#endif
