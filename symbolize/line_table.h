/* SPDX-License-Identifier: MIT */
/* line_table.h - one unit's table of lines: which file and line an address comes from. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_LINE_TABLE_H
#define PROBING_SYMBOLIZE_LINE_TABLE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line_bytes {
	const uint8_t *bytes; /* borrowed; NULL: there is no such section */
	size_t n_bytes;
};

/* The sections that tables of lines are in. */
struct line_sections {
	struct line_bytes lines, line_strings, strings; /* .debug_line, .debug_line_str, .debug_str */
};

/*
 * line_sections_of - find the sections in an open file of libdw; they live as long as it.
 * Errors: -ENOTSUP no line table, or in an encoding that only libdw reads.
 */
int line_sections_of(Dwarf *dwarf, struct line_sections *ret);

struct line_table;

/*
 * line_table_new - read a unit's table once, and remember restart points.
 * @sections: borrowed, as long as the table.
 * @offset:   of the table in .debug_line (DW_AT_stmt_list).
 * @folder:   in which the unit was compiled (DW_AT_comp_dir), copied; NULL: unknown.
 * Errors: -ENOTSUP an unsupported encoding, -EBADMSG damaged: libdw may read both; -ENOMEM;
 *         those of effort.h.
 * Source: DWARF 2 to 5, 6.2 "Line Number Information".
 */
int line_table_new(const struct line_sections *sections, uint64_t offset, const char *folder, struct line_table **ret);
void line_table_free(struct line_table *table);
void line_table_freep(struct line_table **table);

/* line_table_find - the row that contains an address of the file's DWARF. False: none does. */
bool line_table_find(const struct line_table *table, uint64_t address, uint64_t *ret_file, int *ret_line);

/*
 * line_table_file - a file by its number in rows and calls.
 * @ret: its name, with its folder if known; owned by the table. NULL: no such file.
 * Errors: -ENOMEM.
 */
int line_table_file(struct line_table *table, uint64_t file, const char **ret);

#endif
