/* SPDX-License-Identifier: MIT */
/* symbolize.h - from a place in a module to the name a reader knows it by.
 *
 * Sources, best first: debug information (separate files included); symbol tables (.symtab,
 * .gnu_debugdata, .dynsym); the method tables that a Python interpreter or extension module carries
 * in its data, which name builtins even in a stripped file; and the start of the enclosing FDE.
 * Used beside or after a recording, never in its way: one thread at a time per symbolizer.
 */
#ifndef PROBING_SYMBOLIZE_H
#define PROBING_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/address_space.h"
#include "base/elf_file.h"

enum symbol_role {
	SYMBOL_PLAIN,
	SYMBOL_BUILTIN,  /* a C function that Python code can call: named "sorted", "str.join", "zlib.compress" */
	SYMBOL_INTERNAL, /* interpreter-internal functions between two frames that matter */
};

/* One function at a place; strings are owned by the symbolizer's module. */
struct symbol {
	const char *name;    /* never NULL: at worst "libx.so+0x12a0", the function's start */
	const char *linkage; /* symbol as linked; NULL where it is the same or unknown */
	uint64_t start;      /* address of the function, in the module's own addresses; 0 unknown */
	const char *file;    /* source file of the executing line; NULL unknown */
	int line;            /* executing line, 0 unknown */
	enum symbol_role role;
	bool is_offset; /* without a symbol: the name consists of module and offset */
};

#define SYMBOL_MAX_INLINED 32

struct symbol_module;

/*
 * symbol_module_open - prepare resolving addresses of one ELF file.
 * Cheap: tables are read at the first look-up.
 * @path: the process' name for it; for display and for debug files.
 * @fd:   the file itself, duplicated; -1: open path.
 * @ret:  ended with symbol_module_free(). Missing symbols are no error.
 * Errors: -ENOMEM; -errno of open; -ENOEXEC not ELF.
 */
int symbol_module_open(const char *path, int fd, struct symbol_module **ret);
/* The same for an ELF image in memory (a vdso), borrowed. */
int symbol_module_open_memory(const char *name, const void *image, size_t n_bytes, struct symbol_module **ret);
void symbol_module_free(struct symbol_module *module);
void symbol_module_freep(struct symbol_module **module);

/* ---- The symbol cache ---- */

/* A folder with a file for each module, by its build-id: docs/symbols.md. */
struct symbol_cache;

/*
 * symbol_cache_open - the user's, $XDG_CACHE_HOME/probing/names or ~/.cache/probing/names; creates it if missing.
 * @ret: ended with symbol_cache_free().
 * Errors: -ECANCELED PROBING_CACHE=0 in the environment; -ENOENT no home; -EPERM another user owns it, or may write to
 * it; -ENOTSUP this program has no build-id; -ENOMEM; what openat(2) and mkdirat(2) report.
 */
int symbol_cache_open(struct symbol_cache **ret);
void symbol_cache_free(struct symbol_cache *cache);
void symbol_cache_freep(struct symbol_cache **cache);

/*
 * symbol_cache_find - open a file of the cache, for another process that may not.
 * @name: need not be valid. @ret: a descriptor for reading, owned by the caller.
 * Errors: -EINVAL no valid name; -EPERM it is not our file; what openat(2) reports.
 */
int symbol_cache_find(struct symbol_cache *cache, const char *name, int *ret);

/* ---- Files that hold a module's names ---- */

/*
 * Where to search for debug files, and for files with a known build-id.
 * Shared by many modules, which it outlives; one thread at a time.
 */
struct symbol_search;

/* Whoever opens files for a search that may not: it runs in a process without privilege. */
struct symbol_opener {
	/* A regular file to be read. *ret: the caller's. Negative errno. */
	int (*open)(void *data, const char *path, int *ret);
	/* As symbol_search_ask(). */
	int (*ask)(void *data, const struct build_id *id, bool executable, int *ret);
	/* As symbol_cache_find(); NULL: there is no cache. */
	int (*find_cached)(void *data, const char *name, int *ret);
	void *data;
};

struct symbol_search_options {
	const struct symbol_opener *opener; /* borrowed; NULL: the search opens files and uses servers itself */
	const char *const *folders;         /* looked through before /usr/lib/debug; copied */
	size_t n_folders;
	/* The cache; borrowed. NULL: none. Not used if folders or servers are given. */
	struct symbol_cache *cache;
	bool is_brief; /* for a few look-ups: do not spend time to save memory for later ones */
	/* Folder for uncompressed debug information, in files without a name, instead of memory; borrowed. NULL: none.
	 * */
	const char *scratch_folder;
	bool debuginfod;     /* use the servers of DEBUGINFOD_URLS; false: none */
	unsigned patience_s; /* how long all their answers may take together; 0: no bound */
	/* Called about once a second while a server is waited for, with the bytes that have come and
	 * all that will (0: unknown); false ends it. NULL: no need. */
	bool (*keep_going)(void *data, long done, long all);
	void *data;
};
int symbol_search_new(const struct symbol_search_options *options, struct symbol_search **ret);
void symbol_search_free(struct symbol_search *search);
void symbol_search_freep(struct symbol_search **search);

/* Why a server failed, other than not having a file: -ETIMEDOUT too slow and
 * not used since, -ENOSYS no libdebuginfod here, -ECONNREFUSED...; 0: no failure. */
int symbol_search_server_error(const struct symbol_search *search);

/*
 * symbol_search_ask - fetch a file from the servers.
 * @executable: the module itself, else its debug file. @ret: owned by the caller; its contents are not checked.
 * Errors: -ENOENT no server has it, or servers are off; -ETIMEDOUT; -ENOSYS; -ENOMEM...
 */
int symbol_search_ask(struct symbol_search *search, const struct build_id *id, bool executable, int *ret);

/*
 * symbol_file_open - open a file that may be a module's.
 * Only a regular one, of acceptable size when uncompressed. Never blocks on a FIFO or device.
 * @id:  the build-id it must have; NULL: any.
 * @ret_has_code: false for a debug file.
 * Errors: -ENOENT and what open(2) reports; -ENOEXEC not an ELF file of this
 * machine's class; -ESTALE another build-id; -E2BIG too large.
 */
int symbol_file_open(const char *path, const struct build_id *id, bool *ret_has_code, int *ret);

/*
 * symbol_search_find - the file with a build-id: tries DIR/.build-id/xx/yyyy and
 * DIR/PATH in each folder, then the servers; if it is not found, its debug file.
 * @path: the process' name for it. @ret: a descriptor; @ret_path: its path; both owned by the caller.
 * Errors: -ENOENT; -ENOMEM.
 */
int symbol_search_find(struct symbol_search *search, const char *path, const struct build_id *id, int *ret,
		       char **ret_path);

/*
 * symbol_module_set_search - where to search for this module's debug file; before the
 * first look-up. Without it: in /usr/lib/debug, beside the file, and on no server.
 * @search: borrowed. @root: prefix of the module's path, as "/proc/12/root"; NULL: none.
 * Errors: -ENOMEM.
 */
int symbol_module_set_search(struct symbol_module *module, struct symbol_search *search, const char *root);

/*
 * symbol_module_open_mapped - as symbol_module_open() and _set_search(), for a module
 * of a process: the file as the process sees it. If that cannot be opened, a path alone
 * does not identify a replacement; another copy with the build-id from memory does.
 * @id: n_bytes 0: none. @search: borrowed.
 */
int symbol_module_open_mapped(const struct module *module, const struct build_id *id, struct symbol_search *search,
			      struct symbol_module **ret);

/*
 * symbol_module_keep - write a module's symbols into the search's cache if they took long.
 * Skips a module without a build-id, and one whose names were given up. If writing the cache fails, the next look-up
 * takes as long as this one: that is no error here.
 */
void symbol_module_keep(struct symbol_module *module);

/* Why a module's names were given up: from then on its places are named by their offsets. docs/symbols.md. */
enum symbol_limit {
	SYMBOL_LIMIT_NONE,
	SYMBOL_LIMIT_PACKED, /* its file uncompresses to too much; its compressed sections are not read */
	SYMBOL_LIMIT_TIME,   /* its names took too long */
	SYMBOL_LIMIT_MEMORY, /* its symbols or its debug information take too much memory */
	SYMBOL_LIMIT_CUT,    /* its file, or its debug file, was truncated while it was read */
};
enum { SYMBOL_N_LIMITS = SYMBOL_LIMIT_CUT + 1 };
/* "its debug information takes too long to read"; NULL for SYMBOL_LIMIT_NONE. */
const char *symbol_limit_text(enum symbol_limit limit);

/* Contents of a module's files, known after its first look-up. */
struct symbol_sources {
	bool has_symbols, has_lines;
	bool is_debug_file;     /* the module's own file is missing */
	const char *debug_path; /* the separate debug file; NULL: none. The module's. */
	enum symbol_limit limit;
	uint64_t n_limited;   /* look-ups that got an offset because of it */
	bool is_cached;       /* something came from the cache */
	unsigned n_found_out; /* tables that were made: symbols, methods, internal functions, debug information */
	uint64_t n_unpacked_bytes;
};
void symbol_module_sources(const struct symbol_module *module, struct symbol_sources *ret);

/* Names missing because of limits, in all modules that share a search. */
struct symbol_limited {
	uint64_t n_places, n_modules;
	enum symbol_limit limit; /* of the first one */
	char path[256];          /* and its path, cut */
};
void symbol_search_limited(const struct symbol_search *search, struct symbol_limited *ret);

/*
 * symbol_lookup - the functions at an address, innermost inlined one first.
 * @address: in the module's own address space; already moved back into the
 *           call instruction where it is a return address.
 * @symbols: room for max (1 .. SYMBOL_MAX_INLINED); the last is never inlined.
 * Returns how many (at least 1), or -ENOMEM.
 */
int symbol_lookup(struct symbol_module *module, uint64_t address, struct symbol *symbols, size_t max);

/*
 * symbol_lookup_internal - whether an address is in an interpreter-internal function. Reads no debug information.
 * For callers that hide internal functions. @ret: filled where it is, without file and line.
 * Returns 1, 0 where it is not, or that is not known; -ENOMEM.
 */
int symbol_lookup_internal(struct symbol_module *module, uint64_t address, struct symbol *ret);

/*
 * symbol_start - begin what the module's first symbol_lookup() needs in another thread, so that several modules, or other
 * work, take their time together. Only for a search with is_brief: otherwise, and if nothing is compressed, it begins nothing.
 * Returns 1 if this call has begun it, else 0; -ENOMEM.
 */
int symbol_start(struct symbol_module *module);

/* Free the memory of a module's mapped files; later look-ups read it again. */
void symbol_module_trim(struct symbol_module *module);

/* Kernel functions, from /proc/kallsyms. */
struct kernel_symbols;
/* @path: NULL: /proc/kallsyms. Errors: -EPERM addresses are hidden (kptr_restrict), and what open reports. */
int kernel_symbols_open(const char *path, struct kernel_symbols **ret);
void kernel_symbols_free(struct kernel_symbols *symbols);
void kernel_symbols_freep(struct kernel_symbols **symbols);
/* NULL: unknown. *ret_module (may be NULL): "[kvm]"-like owner or NULL. Borrowed. */
const char *kernel_symbol_lookup(const struct kernel_symbols *symbols, uint64_t ip, const char **ret_module);

/*
 * kernel_symbols_place - a position in the kernel that does not depend on this boot; below 2^63. See kernel_place.c.
 * Errors: -ENOENT no symbol contains it.
 */
int kernel_symbols_place(const struct kernel_symbols *symbols, uint64_t ip, uint64_t *ret);

/* kernel_symbols_address - the way back, also of an absolute address. -ENOENT: no such code is loaded now. */
int kernel_symbols_address(const struct kernel_symbols *symbols, uint64_t place, uint64_t *ret);

/* Recordings of before have absolute addresses, which mean something until the next boot only. */
bool kernel_place_is_absolute(uint64_t place);

/* ---- Code that was generated at run time ---- */

/* Whose code it is. */
struct generated_owner {
	pid_t pid, ns_pid;   /* in our PID namespace, and in its own */
	uid_t uid;           /* effective */
	uint64_t started_ns; /* CLOCK_REALTIME; 0: not known */
	bool is_known;       /* false: it ended before it was read; only pid and started_ns are valid */
};

/*
 * generated_owner_read - read a process' fields from /proc.
 * If it has ended, is_known is false and the rest unchanged.
 */
void generated_owner_read(pid_t pid, struct generated_owner *owner);

/* The names of one process' generated code: its perf map and its jitdump files. */
struct generated_code;
int generated_code_new(const struct generated_owner *owner, struct generated_code **ret);
void generated_code_free(struct generated_code *code);
void generated_code_freep(struct generated_code **code);

/* Whether a path is one of a jitdump file: a JIT maps its own for no other reason than to be noticed. */
bool generated_is_dump_name(const char *path);

/*
 * generated_code_add_dump - a jitdump file that the process has mapped.
 * @fd: taken over, also on failure. One that is there already is left out.
 * Errors: -ENOMEM; -EBADMSG not a jitdump; -EOPNOTSUPP of the other byte order;
 * -EPROTONOSUPPORT of another version.
 */
int generated_code_add_dump(struct generated_code *code, int fd);

/*
 * generated_code_feed - pass in the process' files, if the caller's process may not search for them.
 * From the first call on the code itself does not search.
 * @map_fd:  its perf map, ownership passes; -1: none yet, or known already.
 * @is_gone: the process has ended: nothing comes after the next refresh.
 */
void generated_code_feed(struct generated_code *code, int map_fd, bool is_gone);

/*
 * generated_map_open - find the perf map of a process; checks that its owner may name the process' code.
 * Errors: -ENOENT; of open(2).
 */
int generated_map_open(const struct generated_owner *owner, int *ret);
bool generated_owner_is_gone(const struct generated_owner *owner);

/*
 * generated_code_refresh - read the process' new output.
 * Returns 1 if there was something, 0, or -ENOMEM. Unreadable files count as empty.
 */
int generated_code_refresh(struct generated_code *code);

/* The process has ended and its files have been read: nothing more will come. */
bool generated_code_is_final(const struct generated_code *code);

struct generated_symbol {
	const char *entry; /* as written down */
	const char *name;  /* the function's; borrowed, as file, until the code is freed */
	const char *file;  /* NULL: unknown */
	int first_line;    /* of the function; 0: unknown */
	int line;          /* executing; 0: unknown */
	bool is_python;    /* a trampoline of CPython's (-X perf), standing for a Python function */
};

#define GENERATED_NOW UINT64_MAX

/*
 * generated_code_lookup - the code at an address at a time.
 * @time_ns: CLOCK_MONOTONIC, or GENERATED_NOW: by the newest entry.
 * Returns 1, 0 nothing known, or -ENOMEM.
 */
int generated_code_lookup(struct generated_code *code, uint64_t address, uint64_t time_ns,
			  struct generated_symbol *ret);

/*
 * symbol_is_internal - whether a name is one of an interpreter-internal function.
 * Only for functions of the interpreter's own module.
 */
bool symbol_is_internal(const char *linkage);

/* symbol_is_import_file - whether a Python function of that file is part of the import machinery, which is internal,
 * too. */
bool symbol_is_import_file(const char *file);

/*
 * symbol_is_pybind11 - whether a function of pybind11 only passes a call on from Python to the function that it binds.
 * @name: demangled.
 * @is_inlined: then the bound function has a frame of its own, even if it was inlined into this one.
 * Source: pybind11 2.2 to 3.0, pybind11.h (cpp_function) and cast.h (argument_loader).
 */
bool symbol_is_pybind11(const char *name, bool is_inlined);

/* symbol_is_collector - whether a name is that of the garbage collector. Only for the interpreter's own module. */
bool symbol_is_collector(const char *linkage);

#define SYMBOL_COLLECTOR "[GC]" /* displayed name of the collector, in all versions */

#endif
