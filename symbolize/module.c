/* SPDX-License-Identifier: MIT */
/* module.c - one module's sources of names: opened at the first look-up, closed at the end.
 *
 * Each source has an index of its own here, since libdwfl's look-ups
 * are linear. A missing source is no error: the next one answers.
 *
 * Only files within the limits of unpack_limits.c are passed to libdw, and it opens none by itself.
 *
 * Invariants: addresses are the module's own, as in its program headers;
 * libdwfl's offset to them never leaves symtab.c and lines.c. Strings in results
 * live in the module: in mapped files, or in kept and readable.
 */
#include "symbolize/module.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "symbolize/unpack_limits.h"
#include "symbolize/module_cache.h"
#include "symbolize/search.h"

/* The build-id of the common file to which a debug file refers. */
static bool wanted_id(Dwfl_Module *reported, struct build_id *ret)
{
	const void *bits = NULL;
	const char *name;
	Dwarf_Addr bias;
	Dwarf *dwarf;
	ssize_t n;

	dwarf = dwfl_module_getdwarf(reported, &bias);
	n = dwarf ? dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &bits) : -1;
	if (n <= 0 || n > BUILD_ID_MAX)
		return false;
	memcpy(ret->bytes, bits, (size_t)n);
	ret->n_bytes = (unsigned)n;
	return true;
}

/* Debug files may share a common file (dwz). libdwfl requests it through the same callback as a debug file. */
static bool is_common_link(struct symbol_module *module, const char *link)
{
	GElf_Word crc;
	const char *own = dwelf_elf_gnu_debuglink(elf_file_elf(module->elf), &crc);

	return link && (!own || strcmp(own, link) != 0);
}

static uint64_t file_bytes(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

int module_find_separate(struct symbol_module *module)
{
	GElf_Word crc = 0;
	const char *link = dwelf_elf_gnu_debuglink(elf_file_elf(module->elf), &crc);
	const struct search_wanted wanted = { module->path, module->root, elf_file_build_id(module->elf), link, crc };
	CLEANUP(freep) char *path = NULL;
	int fd;

	if (!module->tried_debug && (wanted.id->n_bytes > 0 || link) &&
	    search_debug_file(module->search, &wanted, &fd, &path) >= 0) {
		module->debug_fd = fd;
		module->debug_path = TAKE(path);
		effort_allow(&module->effort, file_bytes(fd));
	}
	module->tried_debug = true;
	fd = module->debug_fd >= 0 ? fcntl(module->debug_fd, F_DUPFD_CLOEXEC, 3) : -1;
	return fd >= 0 ? fd : -ENOENT;
}

/* Callback: libdwfl requests a separate debug file. */
static int find_debuginfo(Dwfl_Module *reported, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc, char **ret_name)
{
	struct symbol_module *module = *userdata;
	CLEANUP(freep) char *path = NULL;
	struct build_id id = { .n_bytes = 0 };
	struct search_wanted wanted = { .root = module->root, .id = &id, .link = link, .crc = crc };
	int fd;

	(void)name;
	(void)base;
	(void)file_name;
	*ret_name = NULL;
	if (!is_common_link(module, link)) {
		fd = module_find_separate(module);
		return fd < 0 ? -1 : fd;
	}
	if (!wanted_id(reported, &id))
		return -1;
	wanted.path = module->debug_path ? module->debug_path : module->path;
	if (search_debug_file(module->search, &wanted, &fd, &path) < 0) {
		/* libdw would open this link itself. */
		module->may_harm |= link && search_may_harm_link(module->search, wanted.path, link);
		return -1;
	}
	return fd;
}

static int find_no_elf(Dwfl_Module *reported, void **userdata, const char *name, Dwarf_Addr base, char **ret_name,
		       Elf **ret_elf)
{
	(void)reported;
	(void)userdata;
	(void)name;
	(void)base;
	*ret_name = NULL;
	*ret_elf = NULL;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_no_elf, /* the file is handed over already */
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static void forget_sources(struct symbol_module *module)
{
	internal_functions_free(TAKE(module->internal));
	method_tables_free(TAKE(module->methods));
	go_table_free(TAKE(module->go));
	cython_names_free(TAKE(module->cython));
	debug_lines_free(TAKE(module->lines));
	unpacked_free(TAKE(module->unpacked));
	module_drop_unpacking(module);
	symtab_free(TAKE(module->symtab));
	while (module->n_adopted > 0)
		file_mapping_free(module->adopted[--module->n_adopted]);
	if (module->dwfl)
		dwfl_end(TAKE(module->dwfl));
	module->reported = NULL;
	file_mapping_free(TAKE(module->cache_file));
	module->cached = (struct cache_entry){ 0 };
	module->is_ready = module->tried_lines = module->tried_methods = module->tried_go = module->tried_cython =
		module->tried_cache = module->has_cache_key = false;
	module->n_found_out = 0;
	effort_return(&module->effort, UINT64_MAX);
}

/* Free memory for other modules: the next lookup opens everything again. */
static void give_back(void *owner)
{
	forget_sources(owner);
}

void symbol_module_free(struct symbol_module *module)
{
	if (!module)
		return;
	forget_sources(module);
	names_free(module->readable);
	names_free(module->kept);
	elf_file_free(module->elf);
	closep(&module->debug_fd);
	free(module->debug_path);
	free(module->root);
	free(module->package);
	free(module->stem);
	free(module->path);
	free(module);
}

void symbol_module_freep(struct symbol_module **module)
{
	symbol_module_free(*module);
}

/* "_json" for "_json.cpython-311-x86_64-linux-gnu.so", "torch_python" for "libtorch_python.so.1" */
static char *stem_of(const char *base_name)
{
	if (strncmp(base_name, "lib", 3) == 0)
		base_name += 3;
	return strndup(base_name, strcspn(base_name, "."));
}

/* "torch" for "torch_python", otherwise the stem */
static char *package_of(const char *stem)
{
	static const char suffix[] = "_python";
	const size_t n = strlen(stem), n_suffix = sizeof suffix - 1;
	const bool has_suffix = n > n_suffix && strcmp(stem + n - n_suffix, suffix) == 0;

	return strndup(stem, has_suffix ? n - n_suffix : n);
}

static int module_new(const char *path, struct symbol_module **ret)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	const char *slash;
	int r;

	module = calloc(1, sizeof *module);
	if (!module)
		return -ENOMEM;
	module->debug_fd = -1;
	module->effort = (struct effort){ .give_back = give_back, .owner = module };
	module->path = strdup(path);
	if (!module->path)
		return -ENOMEM;
	slash = strrchr(module->path, '/');
	module->base_name = slash ? slash + 1 : module->path;
	module->stem = stem_of(module->base_name);
	if (!module->stem)
		return -ENOMEM;
	module->package = package_of(module->stem);
	if (!module->package)
		return -ENOMEM;
	r = names_new(&module->kept);
	if (r < 0)
		return r;
	r = names_new(&module->readable);
	if (r < 0)
		return r;

	*ret = TAKE(module);
	return 0;
}

int symbol_module_open(const char *path, int fd, struct symbol_module **ret)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	CLEANUP(closep) int own_fd = -1;
	int r;

	r = module_new(path, &module);
	if (r < 0)
		return r;
	own_fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
	if (own_fd < 0)
		return -errno;
	r = elf_file_open(own_fd, &module->elf);
	if (r < 0)
		return r;
	effort_allow(&module->effort, file_bytes(own_fd));
	TAKE_FD(own_fd);
	module->is_debug_file = !unpack_limits_has_code(module->elf);

	*ret = TAKE(module);
	return 0;
}

int symbol_module_open_memory(const char *name, const void *image, size_t n_bytes, struct symbol_module **ret)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	int r;

	r = module_new(name, &module);
	if (r < 0)
		return r;
	r = elf_file_open_memory(image, n_bytes, &module->elf);
	if (r < 0)
		return r;
	module->memory = image;
	module->memory_bytes = n_bytes;

	*ret = TAKE(module);
	return 0;
}

int symbol_module_set_search(struct symbol_module *module, struct symbol_search *search, const char *root)
{
	CLEANUP(freep) char *copy = NULL;

	if (root) {
		copy = strdup(root);
		if (!copy)
			return -ENOMEM;
	}
	free(module->root);
	module->root = TAKE(copy);
	module->search = search;
	module->effort.budget = search_budget(search);
	return 0;
}

void symbol_module_sources(const struct symbol_module *module, struct symbol_sources *ret)
{
	*ret = (struct symbol_sources){
		.has_symbols = (module->symtab && module->symtab->n_entries > 0) || module->go,
		.has_lines = module->lines != NULL,
		.is_debug_file = module->is_debug_file,
		.debug_path = module->debug_path,
		.limit = module->limit,
		.n_limited = module->n_limited,
		.is_cached = module->cache_file != NULL,
		.n_found_out = module->n_found_out,
		.n_unpacked_bytes = module->n_unpacked_bytes,
	};
}

/* Hand the file to libdwfl. NULL: libdwfl rejects it; use other sources. */
static Dwfl_Module *report(struct symbol_module *module)
{
	CLEANUP(closep) int fd = -1;
	Dwfl_Module *reported;

	if (module->memory)
		return dwfl_report_offline_memory(module->dwfl, module->path, module->path, (char *)module->memory,
						  module->memory_bytes);
	fd = fcntl(elf_file_fd(module->elf), F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return NULL;
	reported = dwfl_report_elf(module->dwfl, module->path, module->path, fd, 0, true);
	if (reported)
		TAKE_FD(fd); /* now owned by libdwfl */
	return reported;
}

/* Pass the module to the callbacks. */
static void set_module(Dwfl_Module *reported, struct symbol_module *module)
{
	void **userdata = NULL;

	dwfl_module_info(reported, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = module;
}

int module_adopt(struct symbol_module *module, Elf *elf)
{
	size_t n_bytes, n_known;
	void *bytes = elf ? elf_rawfile(elf, &n_bytes) : NULL;
	int r;

	for (size_t i = 0; i < module->n_adopted; i++)
		if (file_mapping_bytes(module->adopted[i], &n_known) == bytes)
			return 0;
	if (!bytes || module->memory || module->n_adopted == N_ELEMENTS(module->adopted))
		return 0;
	r = file_mapping_adopt(bytes, n_bytes, &module->adopted[module->n_adopted]);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* the file was read, not mapped */
	module->n_adopted++;
	return 0;
}

/* The file with the symbols, possibly a separate one. */
static Elf *symbols_elf(const struct symbol_module *module)
{
	GElf_Addr address;
	GElf_Word section;
	Dwarf_Addr bias;
	GElf_Sym symbol;
	Elf *elf = NULL;

	if (!dwfl_module_getsym_info(module->reported, 1, &symbol, &address, &section, &elf, &bias))
		return NULL;
	return elf;
}

static int report_what_passes(struct symbol_module *module, Dwfl_Module **ret)
{
	uint64_t n_all, n_symbols;
	int r;

	*ret = NULL;
	if (unpack_limits_unpacked_bytes(module->elf, &n_all, &n_symbols) < 0) {
		module->limit = SYMBOL_LIMIT_PACKED;
		return 0;
	}
	r = effort_take(n_symbols, false);
	if (r >= 0)
		*ret = report(module);
	return r;
}

static int open_reported(struct symbol_module *module)
{
	Dwfl_Module *reported;
	GElf_Addr bias;
	Elf *elf = NULL;
	int r;

	module->dwfl = dwfl_begin(&callbacks);
	if (!module->dwfl)
		return -ENOMEM;
	dwfl_report_begin(module->dwfl);
	r = report_what_passes(module, &reported);
	dwfl_report_end(module->dwfl, NULL, NULL);
	if (r < 0)
		return r;
	if (reported)
		set_module(reported, module);
	if (reported && !(elf = dwfl_module_getelf(reported, &bias)))
		reported = NULL;
	module->reported = reported;
	return module_adopt(module, elf);
}

int module_report(struct symbol_module *module)
{
	int r = module->dwfl ? 0 : open_reported(module);

	if (r >= 0)
		return 0;
	module->reported = NULL; /* the next call starts again */
	if (module->dwfl)
		dwfl_end(TAKE(module->dwfl));
	return r;
}

static int open_symbols(struct symbol_module *module)
{
	GElf_Addr bias = 0;
	int r;

	r = module_open_cached(module);
	if (r >= 0)
		r = module_cached_symbols(module);
	if (r != 0)
		return r;
	r = module_report(module);
	if (r < 0)
		return r;
	if (module->reported)
		(void)dwfl_module_getelf(module->reported, &bias);
	r = symtab_new(module->reported, bias, &module->symtab);
	module->n_found_out++;
	return r < 0 || !module->reported ? r : module_adopt(module, symbols_elf(module));
}

void module_give_up(struct symbol_module *module, enum symbol_limit limit)
{
	module->limit = limit;
	forget_sources(module);
}

int module_make_ready(struct symbol_module *module)
{
	int r;

	if (module->is_ready)
		return 0;
	r = open_symbols(module);
	if (r < 0) {
		forget_sources(module); /* the next lookup starts again */
		return r;
	}
	if (!module->is_debug_file) /* a debug file does not contain the tables */
		python_module_examine(elf_file_elf(module->elf), &module->python);
	if (!effort_go_on(0)) {
		forget_sources(module);
		return -ETIME;
	}
	symbol_module_trim(module); /* this has just read all names of a large file */
	module->is_ready = true;
	return 0;
}

static void trim(struct symbol_module *module)
{
	Dwarf_Addr bias;

	if (module->unpacked)
		unpacked_trim(module->unpacked);
	elf_forget_pages(elf_file_elf(module->elf));
	if (!module->reported)
		return;
	elf_forget_pages(dwfl_module_getelf(module->reported, &bias));
	if (!module->cached.parts[CACHE_SYMBOLS].bytes) /* otherwise libdwfl has not opened them yet */
		elf_forget_pages(symbols_elf(module));
	if (module->lines && !module->unpacked)
		elf_forget_pages(dwarf_getelf(dwfl_module_getdwarf(module->reported, &bias)));
}

void symbol_module_trim(struct symbol_module *module)
{
	struct file_guard guard;

	if (module->memory)
		return;
	file_guard_enter(&guard);
	trim(module);
	(void)file_guard_leave(&guard); /* later readers find zeros */
}

int module_is_nameless_internal(struct symbol_module *module, uint64_t start)
{
	struct image image;
	int r = 0;

	/*
	 * If static functions have names, internal functions are known by name. PLT entries and start-up code remain.
	 */
	if (!module->python.is_interpreter || start == 0 || module->symtab->has_static)
		return 0;
	if (!module->internal) {
		r = module_cached_internal(module);
		if (r != 0)
			return r < 0 ? r : internal_functions_holds(module->internal, start);
		r = module_open_methods(module);
		if (r < 0)
			return r;
		module->n_found_out++;
		r = image_init(&image, module->elf);
		if (r >= 0)
			r = internal_functions_new(&image, module->symtab, module->methods, &module->internal);
		image_done(&image);
		symbol_module_trim(module); /* this has just read all of its code */
	}
	return r < 0 ? r : internal_functions_holds(module->internal, start);
}
