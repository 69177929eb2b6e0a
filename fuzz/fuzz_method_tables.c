/* SPDX-License-Identifier: MIT */
/* fuzz_method_tables.c - scan foreign bytes for Python's method tables.
 *
 * An input that is an ELF file goes the whole way, symbols and internal functions
 * included. Any other input is laid out as one data segment, at an address
 * that its own words can point into, with the same bytes as code behind it: so the fuzzer
 * reaches the recognisers without having to get a file's headers right.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/method_tables.h"
#include "symbolize/internal_functions.h"
#include "symbolize/symbolize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { DATA_START = 0x1000, CODE_START = 0x100000, CODE_BYTES = 0x10000 };

static const struct method_file file_names = { .stem = "stem", .package = "package" };

/* All found names must be printable. */
static void format_all(const struct method_tables *tables)
{
	const struct method *method;

	for (size_t i = 0; (method = method_tables_nth(tables, i)) != NULL; i++) {
		CLEANUP(freep) char *name = NULL;

		if (method_tables_find(tables, method->address) != method)
			abort();
		if (method_format(method, &name) == 0 && name[0] == '\0')
			abort();
	}
}

/* Extensions are also scanned for code that stores into tables, interpreters for further structures. */
static void scan(const struct image *image, bool is_interpreter)
{
	CLEANUP(method_tables_freep) struct method_tables *tables = NULL;
	struct python_module python = { .uses_python = true, .is_interpreter = is_interpreter };

	if (method_tables_new(image, &python, &file_names, &tables) == 0)
		format_all(tables);
}

static void scan_bytes(const uint8_t *data, size_t n_bytes)
{
	struct image image = {
		.segments = {
			{ .start = DATA_START, .end = DATA_START + n_bytes, .memory_end = DATA_START + n_bytes,
			  .bytes = data, .writable = true },
			{ .start = CODE_START, .end = CODE_START + MIN(n_bytes, (size_t)CODE_BYTES),
			  .memory_end = CODE_START + CODE_BYTES, .bytes = data, .executable = true },
		},
		.n_segments = 2,
		.machine = EM_X86_64,
	};

	if (n_bytes >= CODE_START - DATA_START)
		return;
	scan(&image, true);
	scan(&image, false);
}

static void scan_elf(struct elf_file *elf)
{
	CLEANUP(method_tables_freep) struct method_tables *tables = NULL;
	CLEANUP(internal_functions_freep) struct internal_functions *internal = NULL;
	const struct method_file no_names = { 0 };
	struct symtab no_symbols = { 0 };
	struct python_module python;
	struct image image;

	python_module_examine(elf_file_elf(elf), &python);
	python.is_interpreter = true;
	if (image_init(&image, elf) == 0 && method_tables_new(&image, &python, &no_names, &tables) == 0) {
		format_all(tables);
		(void)internal_functions_new(&image, &no_symbols, tables, &internal);
	}
	image_done(&image);
}

static void look_up(const uint8_t *data, size_t n_bytes, struct elf_file *elf)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol symbols[SYMBOL_MAX_INLINED];
	struct elf_segment segment;

	if (symbol_module_open_memory("fuzz", data, n_bytes, &module) < 0)
		return;
	for (size_t i = 0; elf_file_segment(elf, i, &segment) && i < 4; i++)
		for (uint64_t at = 0; at < 64; at += 16)
			if (symbol_lookup(module, segment.address + at, symbols, N_ELEMENTS(symbols)) > 0 &&
			    !symbols[0].name)
				abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;

	if (elf_file_open_memory(data, n_bytes, &elf) < 0) {
		scan_bytes(data, n_bytes);
		return 0;
	}
	scan_elf(elf);
	look_up(data, n_bytes, elf);
	return 0;
}
