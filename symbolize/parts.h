/* SPDX-License-Identifier: MIT */
/* parts.h - parts of functions that no symbol names. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_PARTS_H
#define PROBING_SYMBOLIZE_PARTS_H

#include <stdbool.h>

#include "base/elf_file.h"

/*
 * part_find_function - start of the function to which a range of unwind information belongs.
 * Compilers put cold code of a function ("f.cold") elsewhere, with a range of its own. A range is a part if both signs
 * are there: its frame exists when it begins, and it jumps into the middle of exactly one function. x86-64 only.
 * @start, @end: of the range, from elf_file_function().
 * Returns false if that is uncertain.
 */
bool part_find_function(struct elf_file *elf, uint64_t start, uint64_t end, uint64_t *ret);

#endif
