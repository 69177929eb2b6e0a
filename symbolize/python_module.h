/* SPDX-License-Identifier: MIT */
/* python_module.h - the relation of a file to Python. */
#ifndef PROBING_SYMBOLIZE_PYTHON_MODULE_H
#define PROBING_SYMBOLIZE_PYTHON_MODULE_H

#include <libelf.h>
#include <stdbool.h>

struct python_module {
	bool uses_python;    /* defines or imports the C API: may hold method tables */
	bool is_interpreter; /* defines the evaluation loop or the runtime */
	bool is_launcher;    /* imports the interpreter's main function */
	bool is_python2;     /* of Python 2, whose types are laid out otherwise in part */
};

/* Judged by the names in .dynsym, or .symtab where that is all there is. */
void python_module_examine(Elf *elf, struct python_module *ret);

#endif
