/* SPDX-License-Identifier: MIT */
/* python_module.c - the relation of a file to Python, by the names it defines and imports. */
#include "symbolize/python_module.h"

#include <ctype.h>
#include <gelf.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/effort.h"

static const char *const interpreter_names[] = { "_PyRuntime", "_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx" };
static const char *const main_names[] = { "Py_BytesMain", "Py_Main" };

static bool is_among(const char *name, const char *const *names, size_t n_names)
{
	for (size_t i = 0; i < n_names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* Matches PyList_New, Py_BytesMain, _PyObject_New, _Py_Dealloc. */
static bool is_api_name(const char *name)
{
	name += name[0] == '_';
	return name[0] == 'P' && name[1] == 'y' && (name[2] == '_' || isupper((unsigned char)name[2]));
}

static void examine_symbol(const char *name, bool defined, struct python_module *ret)
{
	if (!is_api_name(name))
		return;
	ret->uses_python = true;
	if (strncmp(name, "PyString_", 9) == 0 || strncmp(name, "Py_InitModule4", 14) == 0)
		ret->is_python2 = true;
	if (defined && is_among(name, interpreter_names, N_ELEMENTS(interpreter_names)))
		ret->is_interpreter = true;
	if (!defined && is_among(name, main_names, N_ELEMENTS(main_names)))
		ret->is_launcher = true;
}

static void examine_section(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct python_module *ret)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	if (!data || header->sh_entsize == 0)
		return;
	for (size_t i = 1; i < data->d_size / header->sh_entsize; i++) {
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) || !effort_go_on(2))
			break;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name)
			examine_symbol(name, symbol.st_shndx != SHN_UNDEF, ret);
	}
}

void python_module_examine(Elf *elf, struct python_module *ret)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	*ret = (struct python_module){ 0 };
	while ((section = elf_nextscn(elf, section)) != NULL && effort_go_on(1))
		if (gelf_getshdr(section, &header) && (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB))
			examine_section(elf, section, &header, ret);
}
