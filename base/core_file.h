/* SPDX-License-Identifier: MIT */
/* core_file.h - contents of a core file other than memory: the process, its threads, its mappings.
 *
 * Memory is remote_open_core()'s. Nothing in the file is trusted.
 */
#ifndef PROBING_BASE_CORE_FILE_H
#define PROBING_BASE_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/machine.h"

/* Ids are the process' own, which in a PID namespace are not the machine's. */
struct core_thread {
	pid_t tid;
	struct regs regs;
};

/* A mapped part of a file; its dumped pages are in memory. */
struct core_mapping {
	uint64_t start, end, file_offset;
	const char *path; /* as in /proc/PID/maps */
};

/* A range of memory with its permissions, dumped or not. */
struct core_range {
	uint64_t start, end;
	bool writable, executable;
};

struct core_file {
	pid_t pid;
	int signal;                  /* that ended it; 0: none, it was copied alive */
	char name[17];               /* of the program, as the kernel shortens it */
	char command[81];            /* the first 80 bytes of its command line */
	uint64_t vdso;               /* where its image begins; 0: unknown */
	uint64_t program;            /* an address in the program that was started; 0: unknown */
	struct core_thread *threads; /* the one that received the signal, then the others by id */
	size_t n_threads;
	struct core_mapping *mappings; /* in order of address, as the kernel wrote them; not checked for overlaps */
	size_t n_mappings;
	struct core_range *ranges;
	size_t n_ranges;
	char *paths; /* the mappings' paths point into it */
};

/*
 * core_file_read - the headers and notes of a core file.
 * @path: of an ELF file of this machine.
 * @ret:  ended with core_file_free().
 * Errors: -EBADMSG no core file; -EOPNOTSUPP of another machine; -ENODATA it lists no thread;
 *         -ENOMEM; what open(2) reports.
 * Source: core(5), elf(5); fs/binfmt_elf.c and include/linux/elfcore.h, Linux 6.12.
 */
int core_file_read(const char *path, struct core_file **ret);
void core_file_free(struct core_file *core);
void core_file_freep(struct core_file **core);

#endif
