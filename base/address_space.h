/* SPDX-License-Identifier: MIT */
/* address_space.h - the mappings of a process, and the files behind them.
 *
 * A struct module is one file's contents, shared by every process that maps
 * it. An address space is a sorted array of mappings that never overlap: a
 * newer mapping replaces the parts of older ones that it covers.
 */
#ifndef PROBING_BASE_ADDRESS_SPACE_H
#define PROBING_BASE_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/elf_file.h"
#include "base/elf_reader.h"
#include "base/remote.h"

struct module {
	unsigned id;                 /* dense, from 0, in order of first sight */
	char *path;                  /* as the process names it, without " (deleted)" */
	uint64_t device, inode;      /* inode 0: unknown, the path alone identifies it */
	pid_t opener;                /* a process in whose root the path is looked up */
	uint64_t map_start, map_end; /* one of its mappings in opener, for map_files */
	uint64_t map_offset;         /* where in the file it begins */
	bool is_vdso;
	bool is_deleted; /* listed as "PATH (deleted)": the path no longer names the file */
	/* Opened at the first need; NULL with open_error set where that failed. */
	struct elf_file *elf;
	int open_error;
	void *image; /* a copy, where there is no file to open (a vdso, a deleted file); else NULL */
	size_t n_image_bytes;
	const struct elf_reader *reader; /* parses it; NULL: this process does */
	/* Slots for the layers above; freed by them. */
	void *cfi;
	bool without_python; /* looked through: there is no interpreter in it */
};

struct module_table;
int module_table_new(struct module_table **ret);
void module_table_free(struct module_table *table);
void module_table_freep(struct module_table **table);

/* New modules are parsed by a reader from now on. @reader: borrowed, outlives the table. */
void module_table_set_reader(struct module_table *table, const struct elf_reader *reader);
size_t module_table_size(const struct module_table *table);
struct module *module_table_get(struct module_table *table, size_t id);

/*
 * module_elf - the module's ELF file, opened at the first call.
 * Tries /proc/OPENER/root/PATH, PATH itself, /proc/OPENER/map_files (which needs
 * privilege), and finally the opener's memory. It rejects a file whose inode is not
 * the mapped one; it does not compare the device, because overlay and btrfs report
 * two of them. A vdso is always copied from memory.
 * @ret: borrowed; lives as long as the module.
 * Errors: negative errno of the first attempt, kept, not retried: -ESTALE replaced or
 * deleted since, -ENOENT, -EACCES, -ENOEXEC not an ELF file of this machine's class.
 */
int module_elf(struct module *module, struct elf_file **ret);

/*
 * module_open_file - open the file behind a module, of any format; searches as module_elf() does.
 * @ret: opened for reading; closed by the caller. Errors: as above.
 */
int module_open_file(const struct module *module, int *ret);

/*
 * module_build_id - the build-id of the file; opens the file if necessary. If that fails, the build-id
 * comes from the mapped first pages in the opener's memory.
 * Errors: -ENOENT the file has no build-id, or neither could be read.
 */
int module_build_id(struct module *module, struct build_id *ret);

/* Last component of the path; "[vdso]" for the vdso. */
const char *module_name(const struct module *module);

struct mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t file_offset;
	bool executable, writable;
	bool is_stack;         /* named so by the kernel or by glibc; others' stacks are not known here */
	struct module *module; /* NULL: anonymous */
	/* Run-time minus file's own address. Settled by address_space_resolve(), which opens the
	 * file; not valid before that. */
	int64_t bias;
	bool has_bias;
};

struct address_space;

/*
 * address_space_new - nothing mapped yet.
 * @modules: borrowed; outlives the result.
 */
int address_space_new(pid_t pid, struct module_table *modules, struct address_space **ret);
void address_space_free(struct address_space *space);
void address_space_freep(struct address_space **space);
pid_t address_space_pid(const struct address_space *space);

/* Copy for a forked child. */
int address_space_fork(const struct address_space *parent, pid_t pid, struct address_space **ret);

/* Forget everything (exec). */
void address_space_clear(struct address_space *space);

struct mapping_source {
	uint64_t start, end, file_offset;
	bool executable, writable;
	uint64_t device, inode;
	const char *path; /* as in /proc/PID/maps: "", "[vdso]", "//anon", "/x y (deleted)" */
};

/* Add one mapping; it replaces the parts of older ones that it covers. -ENOMEM, -EINVAL. */
int address_space_add(struct address_space *space, const struct mapping_source *source);

/*
 * address_space_mapped - add a mapping that the process has just created.
 * Known anonymous code at the same place has been writable in between (mprotect), and
 * may be other code now. address_space_add() assumes the opposite. -ENOMEM, -EINVAL.
 */
int address_space_mapped(struct address_space *space, const struct mapping_source *source);

/* Read /proc/PID/maps. Errors: -ESRCH, -EPERM, -ENOMEM. */
int address_space_load(struct address_space *space);

/* Parse one line of /proc/PID/maps; path points into line. -EINVAL. */
int maps_parse_line(char *line, struct mapping_source *ret);

/*
 * address_space_find - the mapping that contains an address; NULL: none.
 * Borrowed, valid until the next change of the space.
 */
struct mapping *address_space_find(struct address_space *space, uint64_t address);

/* n-th mapping in order of address; NULL past the last. */
struct mapping *address_space_nth(struct address_space *space, size_t n);

/* Changes whenever an executable mapping appears or disappears: it invalidates caches keyed by address. */
unsigned address_space_generation(const struct address_space *space);

/*
 * address_space_resolve - module and its own address for a run-time address.
 * *ret_module is NULL and *ret_address the address itself for anonymous memory.
 * For a file that cannot be opened, *ret_address is the offset in the file, which
 * is its address in most shared objects. -ENOENT where nothing is mapped.
 */
int address_space_resolve(struct address_space *space, uint64_t address, struct module **ret_module,
			  uint64_t *ret_address);

#endif
