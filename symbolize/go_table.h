/* SPDX-License-Identifier: MIT */
/* go_table.h - functions, files and lines that a Go program has for its own tracebacks, also when it is stripped. Private. */
#ifndef PROBING_SYMBOLIZE_GO_TABLE_H
#define PROBING_SYMBOLIZE_GO_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "symbolize/lines.h"

struct go_table;

/*
 * go_table_new - find the function table of a program or library that Go's linker made, 1.16 or newer.
 * @elf: borrowed. @ret: ended with go_table_free().
 * Errors: -ENOENT there is none, or of an unknown layout; -ENOMEM; those of effort.h.
 */
int go_table_new(struct elf_file *elf, struct go_table **ret);
void go_table_free(struct go_table *table);
void go_table_freep(struct go_table **table);

/*
 * go_table_find - the functions at an address (the module's own), innermost first.
 * The same contract as debug_lines_find(). Where the inlined functions at the address are unknown, there is one frame without a line.
 * Strings are borrowed until go_table_free().
 * Returns how many; 0 where nothing is known; those of effort.h.
 */
int go_table_find(const struct go_table *table, uint64_t address, struct debug_frame *frames, size_t max);

#endif
