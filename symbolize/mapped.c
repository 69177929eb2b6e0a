/* SPDX-License-Identifier: MIT */
/* mapped.c - names for a module of a process: from the file that it has mapped. */
#include "base/proc.h"
#include "base/util.h"
#include "symbolize/symbolize.h"

static int open_copy(const struct module *module, const struct build_id *id, struct symbol_search *search,
		     struct symbol_module **ret)
{
	CLEANUP(freep) char *found = NULL;
	CLEANUP(closep) int fd = -1;
	int r;

	r = symbol_search_find(search, module->path, id, &fd, &found);
	return r < 0 ? r : symbol_module_open(module->path, fd, ret);
}

int symbol_module_open_mapped(const struct module *module, const struct build_id *id, struct symbol_search *search,
			      struct symbol_module **ret)
{
	CLEANUP(symbol_module_freep) struct symbol_module *symbols = NULL;
	char root[PROC_PATH_BYTES] = "";
	int r;

	if (module->image) {
		r = symbol_module_open_memory(module->path, module->image, module->n_image_bytes, &symbols);
	} else if (module->elf) { /* once the file is open, the opener never changes */
		proc_path(module->opener, "root", root);
		r = symbol_module_open(module->path, elf_file_fd(module->elf), &symbols);
	} else {
		r = open_copy(module, id, search, &symbols);
	}
	if (r >= 0)
		r = symbol_module_set_search(symbols, search, root[0] ? root : NULL);
	if (r < 0)
		return r;

	*ret = TAKE(symbols);
	return 0;
}
