/* SPDX-License-Identifier: MIT */
/* parts.h - parts of functions that no symbol names. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_PARTS_H
#define PROBING_SYMBOLIZE_PARTS_H

#include <stdbool.h>

#include "base/elf_file.h"

/*
 * part_find_function - where the function begins that a range of unwind information is a part of.
 * Compilers put seldom used code of a function ("f.cold") elsewhere, with a range of its own. It is taken for a part where
 * both signs are there: its frame has been built when it begins, and it jumps into the middle of one function, and of no
 * other one. x86-64 only.
 * @start, @end: of the range, as elf_file_function() has it.
 * Returns false where that is not sure.
 */
bool part_find_function(struct elf_file *elf, uint64_t start, uint64_t end, uint64_t *ret);

#endif
