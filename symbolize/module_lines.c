/* SPDX-License-Identifier: MIT */
/* module_lines.c - the slow sources of a module: debug information and method tables.
 *
 * Each is opened at the first look-up that needs it, which many do not: the interpreter's own
 * functions have symbols.
 */
#include "symbolize/module.h"

#include <errno.h>
#include <unistd.h>

#include "base/util.h"
#include "symbolize/unpack_limits.h"
#include "symbolize/module_cache.h"
#include "symbolize/search.h"

enum { MAX_GIVEN_BACK = 3 };

static uint64_t first_address(const struct elf_file *file)
{
	struct elf_segment segment = { 0 };

	(void)elf_file_segment(file, 0, &segment);
	return segment.address;
}

static int open_separate(struct symbol_module *module, struct elf_file **ret)
{
	CLEANUP(closep) int fd = module_find_separate(module);
	int r;

	if (fd < 0)
		return fd;
	r = elf_file_open(fd, ret);
	if (r >= 0)
		TAKE_FD(fd);
	return r;
}

/* Count bytes on disk as a quarter of bytes in memory. */
static void leave_disk_out(struct symbol_module *module)
{
	uint64_t n_memory, n_disk;

	unpacked_bytes(module->unpacked, &n_memory, &n_disk);
	module->n_unpacked_bytes += n_memory + n_disk;
	effort_return(&module->effort, n_disk / 4 * 3);
}

void module_drop_unpacking(struct symbol_module *module)
{
	unpacked_free(TAKE(module->unpacking));
	elf_file_free(TAKE(module->unpacking_file));
}

/* Find compressed debug information, in the file or a separate one. Returns -ENOENT if libdwfl has to do it. */
static int start_unpacking(struct symbol_module *module)
{
	CLEANUP(elf_file_freep) struct elf_file *separate = NULL;
	const char *folder = search_scratch_folder(module->search);
	bool is_brief = search_is_brief(module->search);
	struct elf_file *file = module->elf;
	int r;

	r = unpacked_start(file, folder, is_brief, &module->unpacking);
	if (r == -ENOTSUP) {
		r = open_separate(module, &separate);
		if (r >= 0 && first_address(separate) != first_address(file))
			return -ENOENT;
		if (r >= 0)
			r = unpacked_start(separate, folder, is_brief, &module->unpacking);
		if (r >= 0)
			module->unpacking_file = TAKE(separate);
	}
	return r >= 0 || r == -ENOMEM || r == -ETIME || r == -E2BIG ? r : -ENOENT;
}

/* The same, and open it. */
static int open_unpacked(struct symbol_module *module)
{
	int r;

	r = module->unpacking ? 0 : start_unpacking(module);
	if (r >= 0)
		r = unpacked_finish(module->unpacking);
	if (r >= 0)
		module->unpacked = TAKE(module->unpacking);
	module_drop_unpacking(module);
	if (r == -ENOMEM || r == -ETIME || r == -E2BIG)
		return r;
	if (r < 0)
		return -ENOENT;
	leave_disk_out(module);
	return debug_lines_new(unpacked_dwarf(module->unpacked), 0,
			       module->debug_path ? module->debug_path : module->path, NULL, &module->lines);
}

/* Account for what libdw will decompress of the file and the separate one. */
static int take_unpacked(struct symbol_module *module)
{
	CLEANUP(elf_file_freep) struct elf_file *separate = NULL;
	uint64_t n_all = 0, n_symbols = 0;
	int r;

	(void)unpack_limits_unpacked_bytes(module->elf, &n_all, &n_symbols);
	r = effort_take(n_all - n_symbols, false);
	if (r < 0 || module->memory || open_separate(module, &separate) < 0)
		return r;
	(void)unpack_limits_unpacked_bytes(separate, &n_all, &n_symbols);
	return effort_take(n_all, false);
}

static int open_libdwfls(struct symbol_module *module)
{
	Dwarf_Addr dwarf_bias;
	struct debug_index index;
	GElf_Addr bias;
	Dwarf *dwarf;
	const char *path;
	int r;

	if (!dwfl_module_getelf(module->reported, &bias))
		return 0;
	r = take_unpacked(module);
	if (r < 0)
		return r;
	dwarf = dwfl_module_getdwarf(module->reported, &dwarf_bias);
	if (!dwarf || module->may_harm)
		return 0;
	r = module_adopt(module, dwarf_getelf(dwarf));
	if (r < 0)
		return r;
	path = module->debug_path ? module->debug_path : module->path;
	r = module_cached_index(module, &index)
		    ? debug_lines_new(dwarf, bias - dwarf_bias, path, &index, &module->lines)
		    : -EBADMSG;
	return r != -EBADMSG ? r : debug_lines_new(dwarf, bias - dwarf_bias, path, NULL, &module->lines);
}

static int open_lines(struct symbol_module *module)
{
	struct debug_index index;
	int r;

	r = module_report(module);
	if (r < 0 || !module->reported)
		return r;
	r = module->memory ? -ENOENT : open_unpacked(module);
	if (r == -ENOENT)
		r = open_libdwfls(module);
	module->n_found_out += module->unpacked || !module_cached_index(module, &index);
	return r;
}

/* If memory does not suffice for all debug information, do without for some modules. */
static bool is_opened(const struct symbol_module *module)
{
	return module->tried_lines || module->effort.n_given_back >= MAX_GIVEN_BACK;
}

int module_start_lines(struct symbol_module *module)
{
	int r;

	if (is_opened(module) || module->unpacking || module->memory || !search_is_brief(module->search))
		return 0;
	r = module_cached_lines(module);
	if (r != 0) {
		module->tried_lines = r > 0;
		return MIN(r, 0);
	}
	r = module_report(module);
	if (r >= 0 && module->reported)
		r = start_unpacking(module);
	return r == -ENOENT ? 0 : r;
}

int module_open_lines(struct symbol_module *module)
{
	int r;

	if (is_opened(module))
		return 0;
	r = module->unpacking ? 0 : module_cached_lines(module);
	if (r == 0)
		r = open_lines(module);
	if (r < 0) {
		unpacked_free(TAKE(module->unpacked)); /* the next lookup starts again */
		return r;
	}
	symbol_module_trim(module);
	module->tried_lines = true;
	return 0;
}

int module_open_methods(struct symbol_module *module)
{
	const bool is_interpreter = module->python.is_interpreter;
	const struct method_file file = {
		.stem = is_interpreter ? NULL : module->stem,
		.package = is_interpreter ? NULL : module->package,
	};
	struct image image;
	int r;

	if (module->tried_methods || !module->python.uses_python)
		return 0;
	r = module_cached_methods(module);
	if (r != 0) {
		module->tried_methods = r > 0;
		return MIN(r, 0);
	}
	module->n_found_out++;
	r = image_init(&image, module->elf);
	if (r >= 0)
		r = method_tables_new(&image, &module->python, &file, &module->methods);
	image_done(&image);
	if (r < 0)
		return r;
	symbol_module_trim(module);
	module->tried_methods = true;
	return 0;
}

int module_open_go(struct symbol_module *module)
{
	int r;

	if (module->tried_go || module->is_debug_file)
		return 0;
	r = go_table_new(module->elf, &module->go);
	if (r < 0 && r != -ENOENT)
		return r;
	module->tried_go = true;
	return 0;
}

int module_open_cython(struct symbol_module *module)
{
	struct image image;
	int r;

	if (module->tried_cython || module->is_debug_file || !module->python.uses_python ||
	    module->python.is_interpreter)
		return 0;
	if (!cython_is_maker(module->elf)) {
		module->tried_cython = true;
		return 0;
	}
	r = image_init(&image, module->elf);
	if (r >= 0)
		r = cython_names_new(&image, &module->cython);
	image_done(&image);
	if (r < 0)
		return r;
	symbol_module_trim(module); /* this has just read all of its code */
	module->tried_cython = true;
	return 0;
}
