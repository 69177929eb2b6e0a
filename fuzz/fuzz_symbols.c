/* SPDX-License-Identifier: MIT */
/* fuzz_symbols.c - names out of a file that somebody else wrote: symbol tables, the packed
 * .gnu_debugdata, debug links, DWARF (also packed), and the names in them.
 *
 * An input is an ELF file, looked up at its functions and along its segments.
 * What is none is taken for a packed .xz file, then for a mangled name.
 *
 * Corpus: shared objects of three small functions (-O2 -nostdlib, -ffile-prefix-map):
 * dwarf4, dwarf5, compressed (-gz), skeleton (-gsplit-dwarf), cxx, plain (.symtab only); link
 * and only_debug are dwarf5 split by objcopy, mini has its symbols in .gnu_debugdata (packed),
 * bomb a .gnu_debugdata whose chunks claim 400 MB (packed_bomb); names of C++ and Rust.
 * make_symbols_corpus.py makes bomb_*: files whose sections are sane one by one, and which would take gigabytes or hours.
 */
#include <gelf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/unpack_limits.h"
#include "symbolize/names.h"
#include "symbolize/symbolize.h"
#include "symbolize/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAX_LOOKUPS = 256 };

static void look_up(struct symbol_module *module, uint64_t address)
{
	struct symbol symbols[SYMBOL_MAX_INLINED];
	int n = symbol_lookup(module, address, symbols, N_ELEMENTS(symbols));

	for (int i = 0; i < n; i++)
		if (!symbols[i].name || (symbols[i].file && strlen(symbols[i].file) == SIZE_MAX))
			abort();
}

static void look_up_functions(struct symbol_module *module, struct elf_file *elf)
{
	unsigned n_left = MAX_LOOKUPS;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Sym symbol;

	while ((section = elf_nextscn(elf_file_elf(elf), section)) != NULL) {
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &symbol) && n_left > 0; i++, n_left--)
			look_up(module, symbol.st_value + symbol.st_size / 2);
	}
}

static void look_up_segments(struct symbol_module *module, struct elf_file *elf)
{
	struct elf_segment segment;

	for (size_t i = 0; elf_file_segment(elf, i, &segment) && i < 8; i++)
		for (unsigned n = 0; n < 32; n++)
			look_up(module, segment.address + segment.n_memory_bytes / 32 * n + n);
}

/* Files on disk are decompressed like this, files in memory are not. The file has passed unpack_limits. */
static void unpack(struct elf_file *elf)
{
	CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;
	struct effort effort = { 0 };
	Dwarf_Off offset = 0, next;
	size_t header_bytes;
	int r;

	effort_begin(&effort);
	r = unpacked_new(elf, NULL, false, &unpacked);
	effort_end(&effort);
	if (r < 0)
		return;
	for (unsigned n = 0; n < MAX_LOOKUPS && dwarf_nextcu(unpacked_dwarf(unpacked), offset, &next, &header_bytes,
							     NULL, NULL, NULL) == 0;
	     n++)
		offset = next;
}

static void read_name(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) char *linkage = strndup((const char *)data, n_bytes);
	CLEANUP(freep) char *name = NULL;

	if (linkage && name_readable(linkage, &name) == 0 && name_base_length(linkage) > strlen(linkage))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	CLEANUP(freep) uint8_t *image = malloc(MAX(n_bytes, (size_t)1));
	uint64_t n_unpacked;

	/* An exact copy, so that the sanitizer detects a read past its end. */
	if (!image)
		return 0;
	memcpy(image, data, n_bytes);
	if (elf_file_open_memory(image, n_bytes, &elf) < 0) {
		(void)unpack_limits_xz_bytes(image, n_bytes, &n_unpacked);
		read_name(image, n_bytes);
		return 0;
	}
	if (symbol_module_open_memory("/nonexistent/fuzz.so", image, n_bytes, &module) < 0)
		return 0;
	unpack(elf);
	look_up_functions(module, elf);
	look_up_segments(module, elf);
	return 0;
}
