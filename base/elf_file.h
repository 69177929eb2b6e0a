/* SPDX-License-Identifier: MIT */
/* elf_file.h - an ELF file opened for look-ups: segments, sections, build-id,
 * dynamic symbols, and function bounds. Addresses are the file's own (as in its
 * program headers), never run-time ones.
 */
#ifndef PROBING_BASE_ELF_FILE_H
#define PROBING_BASE_ELF_FILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_MAX 32

struct build_id {
	uint8_t bytes[BUILD_ID_MAX];
	unsigned n_bytes; /* 0: none */
};

/* Lower-case hexadecimal; "" if there is none. @to has room for 2 * BUILD_ID_MAX + 1 bytes. */
void build_id_format(const struct build_id *id, char *to);
bool build_id_equal(const struct build_id *a, const struct build_id *b);

struct elf_file;

/*
 * elf_file_open - take a descriptor of an ELF file.
 * @fd:  owned by the result on success, by the caller still on failure.
 * @ret: ended with elf_file_free().
 * Errors: -ENOEXEC not ELF, or of no machine that machine.h knows; -ENOMEM.
 */
int elf_file_open(int fd, struct elf_file **ret);

/* elf_file_open_memory - the same on an image in memory (a vdso); @image is borrowed. */
int elf_file_open_memory(const void *image, size_t n_bytes, struct elf_file **ret);

void elf_file_free(struct elf_file *file);
void elf_file_freep(struct elf_file **file);

/*
 * elf_forget_pages - drop the pages of a mapped file from our memory.
 * The next access takes them from the page cache. Only for files that nobody writes:
 * a private change to a page would be lost. Memory that is not mapped stays as it is.
 */
void elf_forget_pages(Elf *elf);

/* Borrowed; for libdw. NULL: another process parses the file (elf_reader.h). */
Elf *elf_file_elf(struct elf_file *file);
int elf_file_fd(const struct elf_file *file); /* -1: in memory */
const struct build_id *elf_file_build_id(const struct elf_file *file);
/* Whether a reader has found the file truncated since it was opened: the missing part reads as zeros. */
bool elf_file_is_cut(const struct elf_file *file);
unsigned elf_file_machine(const struct elf_file *file); /* e_machine */

/*
 * elf_file_function - the function (FDE) that contains an address.
 * Found through the sorted table of .eh_frame_hdr; works on stripped files.
 * @ret_start, @ret_end: [start, end) of its code.
 * Errors: -ENOENT no FDE there, or no table.
 */
int elf_file_function(struct elf_file *file, uint64_t address, uint64_t *ret_start, uint64_t *ret_end);

/* A function's frames, as .eh_frame describes them. Programs are DW_CFA_* instructions. */
struct elf_cfi {
	uint64_t start, end;    /* [start, end) of its code */
	const uint8_t *initial; /* program that all functions of its CIE begin with; borrowed */
	size_t n_initial;
	const uint8_t *program; /* its own; borrowed */
	size_t n_program;
	const uint8_t *fde, *cie; /* where the two begin, at their length; borrowed */
	uint64_t code_factor, return_register;
	int64_t data_factor;
	bool is_signal; /* a signal trampoline */
	bool has_augmentation;
};

/* elf_file_cfi - the same with the programs of its frames. -ENOENT no FDE there, -ENODATA no table. */
int elf_file_cfi(const struct elf_file *file, uint64_t address, struct elf_cfi *ret);

/* elf_file_symbol - value and size of a symbol in .dynsym, else .symtab. -ENOENT. */
int elf_file_symbol(struct elf_file *file, const char *name, uint64_t *ret_value, uint64_t *ret_size);

/* elf_file_section - where a section is loaded. -ENOENT. */
int elf_file_section(struct elf_file *file, const char *name, uint64_t *ret_address, uint64_t *ret_size);

/*
 * elf_file_packed_bytes - the uncompressed size of all compressed debug sections, as their headers state it.
 * libdw uncompresses all of them when it opens the file.
 */
uint64_t elf_file_packed_bytes(const struct elf_file *file);

/*
 * elf_file_data - bytes of the file as loaded at an address, relocations not applied.
 * @ret: borrowed, n_bytes long. Errors: -ENOENT outside the file's segments.
 */
int elf_file_data(struct elf_file *file, uint64_t address, size_t n_bytes, const void **ret);

/* The n-th loadable segment; false past the last. Sizes as in the program header. */
struct elf_segment {
	uint64_t address, file_offset, n_file_bytes, n_memory_bytes;
	bool writable, executable;
};
bool elf_file_segment(const struct elf_file *file, size_t n, struct elf_segment *ret);

#endif
