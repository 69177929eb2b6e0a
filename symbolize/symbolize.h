/* SPDX-License-Identifier: MIT */
/* symbolize.h - from a place in a module to the name a reader knows it by.
 *
 * Sources, best first: debug information (separate files included), symbol
 * tables (.symtab, .gnu_debugdata, .dynsym), the method tables that a Python
 * interpreter or extension module carries in its data (they name builtins
 * even in a stripped file), and the start of the enclosing FDE. Used beside
 * or after a recording, never in its way: one thread at a time per symbolizer.
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
	bool is_offset; /* nothing names it: the name is made of module and offset */
};

#define SYMBOL_MAX_INLINED 32

struct symbol_module;

/*
 * symbol_module_open - get ready to name places in one ELF file.
 * Cheap: tables are read at the first look-up.
 * @path: as the process names it; for display and for debug files.
 * @fd:   the file itself, duplicated; -1: open path.
 * @ret:  ended with symbol_module_free(). Never fails for want of symbols.
 * Errors: -ENOMEM; -errno of open; -ENOEXEC not ELF.
 */
int symbol_module_open(const char *path, int fd, struct symbol_module **ret);
/* The same for an ELF image in memory (a vdso), borrowed. */
int symbol_module_open_memory(const char *name, const void *image, size_t n_bytes, struct symbol_module **ret);
void symbol_module_free(struct symbol_module *module);
void symbol_module_freep(struct symbol_module **module);

/* ---- What was found out before ---- */

/* A folder with a file for each module, by its build-id: docs/symbols.md. */
struct symbol_cache;

/*
 * symbol_cache_open - the user's, $XDG_CACHE_HOME/probing/names or ~/.cache/probing/names, made where it is not there.
 * @ret: ended with symbol_cache_free().
 * Errors: -ECANCELED PROBING_CACHE=0 in the environment; -ENOENT no home; -EPERM it is somebody else's, or others may write to it; -ENOTSUP this program has no build-id;
 * -ENOMEM; what openat(2) and mkdirat(2) report.
 */
int symbol_cache_open(struct symbol_cache **ret);
void symbol_cache_free(struct symbol_cache *cache);
void symbol_cache_freep(struct symbol_cache **cache);

/*
 * symbol_cache_find - a file of it, for another process that may not look for it.
 * @name: need not be sound. @ret: a descriptor to read it, the caller's.
 * Errors: -EINVAL no name of ours; -EPERM it is not our file; what openat(2) reports.
 */
int symbol_cache_find(struct symbol_cache *cache, const char *name, int *ret);

/* ---- Files that hold a module's names ---- */

/*
 * Where debug files are looked for, and files that are known by build-id only.
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
	const struct symbol_opener *opener; /* borrowed; NULL: the search opens files and asks servers itself */
	const char *const *folders;         /* looked through before /usr/lib/debug; copied */
	size_t n_folders;
	/* What was found out before; borrowed. NULL: nothing. Not asked where folders are given, or servers. */
	struct symbol_cache *cache;
	bool is_brief; /* for a few questions: it is not worth the time to save memory for later ones */
	/* Where unpacked debug information may lie, in files without a name, rather than in memory; borrowed. NULL: nowhere. */
	const char *scratch_folder;
	bool debuginfod;     /* ask the servers that DEBUGINFOD_URLS names; false: nobody */
	unsigned patience_s; /* how long all their answers may take together; 0: no bound */
	/* Called about once a second while a server is waited for, with the bytes that have come and
	 * all that will (0: unknown); false ends it. NULL: no need. */
	bool (*keep_going)(void *data, long done, long all);
	void *data;
};
int symbol_search_new(const struct symbol_search_options *options, struct symbol_search **ret);
void symbol_search_free(struct symbol_search *search);
void symbol_search_freep(struct symbol_search **search);

/* Why a server could not be asked, other than not having a file: -ETIMEDOUT too slow and
 * left alone since, -ENOSYS no libdebuginfod here, -ECONNREFUSED...; 0: nothing of the kind. */
int symbol_search_server_error(const struct symbol_search *search);

/*
 * symbol_search_ask - ask the servers for a file.
 * @executable: the module itself, else its debug file. @ret: the caller's; it is as the server sent it.
 * Errors: -ENOENT no server has it, or none is asked; -ETIMEDOUT; -ENOSYS; -ENOMEM...
 */
int symbol_search_ask(struct symbol_search *search, const struct build_id *id, bool executable, int *ret);

/*
 * symbol_file_open - open a file that may be a module's.
 * Only a regular one, of sane size when unpacked. Never blocks on what is no file.
 * @id:  the build-id it must have; NULL: any.
 * @ret_has_code: false for a debug file.
 * Errors: -ENOENT and what open(2) reports; -ENOEXEC not an ELF file of this
 * machine's class; -ESTALE another build-id; -E2BIG not sane.
 */
int symbol_file_open(const char *path, const struct build_id *id, bool *ret_has_code, int *ret);

/*
 * symbol_search_find - the file with a build-id, wherever it lies: DIR/.build-id/xx/yyyy and
 * DIR/PATH in each folder, the servers; where it is not to be had, its debug file.
 * @path: as the process named it. @ret: a descriptor; @ret_path: where it was; both the caller's.
 * Errors: -ENOENT; -ENOMEM.
 */
int symbol_search_find(struct symbol_search *search, const char *path, const struct build_id *id, int *ret,
		       char **ret_path);

/*
 * symbol_module_set_search - where this module's debug file is looked for, before the
 * first look-up. Without it: in /usr/lib/debug, beside the file, and on no server.
 * @search: borrowed. @root: in front of the module's path, as "/proc/12/root"; NULL: none.
 * Errors: -ENOMEM.
 */
int symbol_module_set_search(struct symbol_module *module, struct symbol_search *search, const char *root);

/*
 * symbol_module_open_mapped - the same as symbol_module_open() and _set_search(), for a module
 * of a process: the file as the process sees it. One that could not be opened is not guessed
 * at; by its build-id, which is in memory, another copy is as good.
 * @id: n_bytes 0: none. @search: borrowed.
 */
int symbol_module_open_mapped(const struct module *module, const struct build_id *id, struct symbol_search *search,
			      struct symbol_module **ret);

/*
 * symbol_module_keep - put into the search's cache what was found out about a module and took long.
 * A module without a build-id, or whose names were given up, is left out. Where the cache cannot be written, the next look
 * takes as long as this one: that is no error here.
 */
void symbol_module_keep(struct symbol_module *module);

/* Why a module's names were given up: from then on its places are named by their offsets. docs/symbols.md. */
enum symbol_limit {
	SYMBOL_LIMIT_NONE,
	SYMBOL_LIMIT_PACKED, /* its file unpacks to too much; it is read without what is packed */
	SYMBOL_LIMIT_TIME,   /* its names took too long */
	SYMBOL_LIMIT_MEMORY, /* its symbols or its debug information take too much memory */
	SYMBOL_LIMIT_CUT,    /* its file, or its debug file, was truncated while it was read */
};
enum { SYMBOL_N_LIMITS = SYMBOL_LIMIT_CUT + 1 };
/* "its debug information takes too long to read"; NULL for SYMBOL_LIMIT_NONE. */
const char *symbol_limit_text(enum symbol_limit limit);

/* What a module's files have turned out to hold, after its first look-up. */
struct symbol_sources {
	bool has_symbols, has_lines;
	bool is_debug_file;     /* the module's own file was not at hand */
	const char *debug_path; /* the separate debug file; NULL: none. The module's. */
	enum symbol_limit limit;
	uint64_t n_limited;   /* look-ups that were answered with an offset because of it */
	bool is_cached;       /* something came from the cache */
	unsigned n_found_out; /* tables that were made: symbols, methods, internal functions, debug information */
	uint64_t n_unpacked_bytes;
};
void symbol_module_sources(const struct symbol_module *module, struct symbol_sources *ret);

/* What all modules that share a search have been left without. */
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

/* Give back the memory that a module's mapped files take; later look-ups fetch it again. */
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
 * kernel_symbols_place - where an instruction lies, without an address of this boot; below 2^63. See kernel_place.c.
 * Errors: -ENOENT it lies in nothing that the symbols describe.
 */
int kernel_symbols_place(const struct kernel_symbols *symbols, uint64_t ip, uint64_t *ret);

/* kernel_symbols_address - the way back, also of an absolute address. -ENOENT: no such code is loaded now. */
int kernel_symbols_address(const struct kernel_symbols *symbols, uint64_t place, uint64_t *ret);

/* Recordings of before have absolute addresses, which mean something until the next boot only. */
bool kernel_place_is_absolute(uint64_t place);

/* ---- Code that was generated at run time ---- */

/* Whose code it is. */
struct generated_owner {
	pid_t pid, ns_pid;   /* as we number it, and as it numbers itself */
	uid_t uid;           /* effective */
	uint64_t started_ns; /* CLOCK_REALTIME; 0: not known */
	bool is_known;       /* false: it had gone before it was asked; only pid and started_ns hold */
};

/*
 * generated_owner_read - ask /proc about a process.
 * Where it is gone, is_known is false and the rest as it was.
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
 * generated_code_feed - tell what the process' files are, for who may not look for them.
 * From the first call on nothing is looked for by the code itself.
 * @map_fd:  its perf map, taken over; -1: none yet, or known already.
 * @is_gone: the process has ended: nothing comes after the next refresh.
 */
void generated_code_feed(struct generated_code *code, int map_fd, bool is_gone);

/* generated_map_open - find the perf map of a process, by the rules of who may name its code. Errors: -ENOENT; of open(2). */
int generated_map_open(const struct generated_owner *owner, int *ret);
bool generated_owner_is_gone(const struct generated_owner *owner);

/*
 * generated_code_refresh - read what the process has written since the last time.
 * Returns 1 when there was something, 0, or -ENOMEM. Files that cannot be read are as good as empty.
 */
int generated_code_refresh(struct generated_code *code);

/* The process is gone and its files have been read: nothing more will come. */
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
 * generated_code_lookup - what lay at an address at a time.
 * @time_ns: CLOCK_MONOTONIC, or GENERATED_NOW: by the newest entry.
 * Returns 1, 0 nothing known, or -ENOMEM.
 */
int generated_code_lookup(struct generated_code *code, uint64_t address, uint64_t time_ns,
			  struct generated_symbol *ret);

/*
 * symbol_is_internal - whether a name belongs to interpreter-internal functions.
 * Only meant for functions of the interpreter's own module.
 */
bool symbol_is_internal(const char *linkage);

/* symbol_is_import_file - whether a Python function of that file is part of the import machinery, which is internal, too. */
bool symbol_is_import_file(const char *file);

/* symbol_is_collector - whether a name is that of the function that collects garbage. Of the interpreter's own module only. */
bool symbol_is_collector(const char *linkage);

#define SYMBOL_COLLECTOR "[GC]" /* what the collector is called, whatever its name is in a version */

#endif
