/* SPDX-License-Identifier: MIT */
/* elf_reader.h - the interface to another process that parses ELF files.
 *
 * A recorder has privileges, and a file may be crafted to attack its parser. So a process without privilege parses it
 * and answers with numbers. For files opened through one, elf_file.c uses this interface, and trusts the answers as
 * little as the file.
 */
#ifndef PROBING_BASE_ELF_READER_H
#define PROBING_BASE_ELF_READER_H

#include "base/elf_file.h"

enum { ELF_SUMMARY_MAX_SEGMENTS = 64 }; /* linkers emit about five that are loaded */

/* The headers and notes of a file. */
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
	 * open - register a file for later questions.
	 * @name: of the file, for messages. @fd: of a regular file, borrowed until close(); -1: the file is @image,
	 * n_bytes long, borrowed as well.
	 * @ret_number: names the file in questions. Errors: -ENOEXEC no ELF file that elf_file_open() takes, or no
	 * process is left to parse it.
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

/* The reader's number of a file. False: the file was opened without a reader. */
bool elf_file_number(const struct elf_file *file, uint32_t *ret);

/* The answer to open(), for the process that parses. -E2BIG: more segments than there is room for. */
int elf_file_summary(const struct elf_file *file, struct elf_summary *ret);

#endif
