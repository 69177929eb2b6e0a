/* module_lines.c - what of a module takes long to read: debug information and method tables.
 *
 * Each is opened at the first look-up that needs it, which many do not: the interpreter's own
 * functions are known by their names.
 */
#include "symbolize/module.h"

#include <errno.h>
#include <unistd.h>

#include "base/util.h"
#include "symbolize/search.h"

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

/*
 * Debug information that is packed, in the file itself or in a separate one. What this cannot do
 * libdwfl can, so -ENOENT is all that it says then.
 */
static int open_unpacked(struct symbol_module *module)
{
	CLEANUP(elf_file_freep) struct elf_file *separate = NULL;
	const char *folder = search_scratch_folder(module->search);
	struct elf_file *file = module->elf;
	int r;

	r = unpacked_new(file, folder, &module->unpacked);
	if (r == -ENOTSUP) {
		r = open_separate(module, &separate);
		if (r >= 0 && first_address(separate) != first_address(file))
			return -ENOENT;
		if (r >= 0)
			r = unpacked_new(separate, folder, &module->unpacked);
	}
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	return debug_lines_new(unpacked_dwarf(module->unpacked), 0,
			       module->debug_path ? module->debug_path : module->path, &module->lines);
}

static int open_libdwfls(struct symbol_module *module)
{
	Dwarf_Addr dwarf_bias;
	GElf_Addr bias;
	Dwarf *dwarf;

	if (!dwfl_module_getelf(module->reported, &bias))
		return 0;
	dwarf = dwfl_module_getdwarf(module->reported, &dwarf_bias);
	if (!dwarf || module->may_block)
		return 0;
	return debug_lines_new(dwarf, bias - dwarf_bias,
			       module->debug_path ? module->debug_path : module->path, &module->lines);
}

int module_open_lines(struct symbol_module *module)
{
	int r;

	if (module->tried_lines || !module->reported)
		return 0;
	r = module->memory ? -ENOENT : open_unpacked(module);
	if (r == -ENOENT)
		r = open_libdwfls(module);
	if (r < 0) {
		unpacked_free(TAKE(module->unpacked)); /* the next look-up begins anew */
		return r;
	}
	symbol_module_trim(module);
	module->tried_lines = true;
	return 0;
}

int module_open_methods(struct symbol_module *module)
{
	struct image image;
	int r;

	if (module->tried_methods || !module->python.uses_python)
		return 0;
	r = image_init(&image, module->elf);
	if (r >= 0)
		r = method_tables_new(&image, &module->python,
				      module->python.is_interpreter ? NULL : module->stem,
				      &module->methods);
	image_done(&image);
	if (r < 0)
		return r;
	symbol_module_trim(module);
	module->tried_methods = true;
	return 0;
}
