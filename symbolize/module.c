/* module.c - one module's sources of names: opened at the first look-up, closed at the end.
 *
 * Each source is asked through an index of its own, since libdwfl's look-ups
 * are linear. A source that is not there is no error: the next one answers.
 *
 * Invariants: addresses are the module's own, as in its program headers; what
 * libdwfl adds to them never leaves symtab.c and lines.c. Strings in results
 * live in the module: in mapped files, or in kept and readable.
 */
#include "symbolize/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

void symbol_module_free(struct symbol_module *module)
{
	if (!module)
		return;
	plumbing_free(module->plumbing);
	method_tables_free(module->methods);
	debug_lines_free(module->lines);
	symtab_free(module->symtab);
	if (module->dwfl)
		dwfl_end(module->dwfl);
	names_free(module->readable);
	names_free(module->kept);
	elf_file_free(module->elf);
	free(module->stem);
	free(module->path);
	free(module);
}

void symbol_module_freep(struct symbol_module **module)
{
	symbol_module_free(*module);
}

/* "_json" of "_json.cpython-311-x86_64-linux-gnu.so", "torch_python" of "libtorch_python.so.1" */
static char *stem_of(const char *base_name)
{
	if (strncmp(base_name, "lib", 3) == 0)
		base_name += 3;
	return strndup(base_name, strcspn(base_name, "."));
}

static int module_new(const char *path, struct symbol_module **ret)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	const char *slash;
	int r;

	module = calloc(1, sizeof *module);
	if (!module)
		return -ENOMEM;
	module->path = strdup(path);
	if (!module->path)
		return -ENOMEM;
	slash = strrchr(module->path, '/');
	module->base_name = slash ? slash + 1 : module->path;
	module->stem = stem_of(module->base_name);
	if (!module->stem)
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
	TAKE_FD(own_fd);

	*ret = TAKE(module);
	return 0;
}

int symbol_module_open_memory(const char *name, const void *image, size_t n_bytes,
			      struct symbol_module **ret)
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

/* Hand the file to libdwfl. NULL: it does not want it; there are other sources. */
static Dwfl_Module *report(struct symbol_module *module)
{
	CLEANUP(closep) int fd = -1;
	Dwfl_Module *reported;

	if (module->memory)
		return dwfl_report_offline_memory(module->dwfl, module->path, module->path,
						  (char *)module->memory, module->memory_bytes);
	fd = fcntl(elf_file_fd(module->elf), F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return NULL;
	reported = dwfl_report_elf(module->dwfl, module->path, module->path, fd, 0, true);
	if (reported)
		TAKE_FD(fd); /* libdwfl's from here on */
	return reported;
}

static int open_symbols(struct symbol_module *module)
{
	Dwfl_Module *reported;
	GElf_Addr bias = 0;
	int r;

	module->dwfl = dwfl_begin(&callbacks);
	if (!module->dwfl)
		return -ENOMEM;
	dwfl_report_begin(module->dwfl);
	reported = report(module);
	dwfl_report_end(module->dwfl, NULL, NULL);
	if (reported && !dwfl_module_getelf(reported, &bias))
		reported = NULL;
	module->reported = reported;
	r = symtab_new(reported, bias, &module->symtab);
	if (r < 0 || !reported)
		return r;
	r = debug_lines_new(reported, bias, &module->lines);
	return r == -ENOENT ? 0 : r;
}

static int open_python(struct symbol_module *module)
{
	struct image image;
	int r;

	python_module_examine(elf_file_elf(module->elf), &module->python);
	if (!module->python.uses_python)
		return 0;
	r = image_init(&image, module->elf);
	if (r >= 0)
		r = method_tables_new(&image, &module->python,
				      module->python.is_interpreter ? NULL : module->stem,
				      &module->methods);
	image_done(&image);
	return r;
}

static void forget_sources(struct symbol_module *module)
{
	method_tables_free(TAKE(module->methods));
	debug_lines_free(TAKE(module->lines));
	symtab_free(TAKE(module->symtab));
	if (module->dwfl)
		dwfl_end(TAKE(module->dwfl));
	module->reported = NULL;
}

int module_make_ready(struct symbol_module *module)
{
	int r;

	if (module->is_ready)
		return 0;
	r = open_symbols(module);
	symbol_module_trim(module); /* all of a large file's names have just been looked at */
	if (r >= 0)
		r = open_python(module);
	if (r < 0) {
		forget_sources(module); /* the next look-up begins anew */
		return r;
	}
	symbol_module_trim(module);
	module->is_ready = true;
	return 0;
}

void symbol_module_trim(struct symbol_module *module)
{
	Dwarf_Addr bias;

	if (module->memory)
		return;
	elf_forget_pages(elf_file_elf(module->elf));
	if (!module->reported)
		return;
	elf_forget_pages(dwfl_module_getelf(module->reported, &bias));
	if (module->lines)
		elf_forget_pages(dwarf_getelf(dwfl_module_getdwarf(module->reported, &bias)));
}

int module_is_nameless_plumbing(struct symbol_module *module, uint64_t start)
{
	struct image image;
	int r = 0;

	if (!module->python.is_interpreter || start == 0)
		return 0;
	if (!module->plumbing) {
		r = image_init(&image, module->elf);
		if (r >= 0)
			r = plumbing_new(&image, module->symtab, module->methods,
					 &module->plumbing);
		image_done(&image);
	}
	return r < 0 ? r : plumbing_holds(module->plumbing, start);
}
