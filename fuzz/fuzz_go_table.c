/* SPDX-License-Identifier: MIT */
/* fuzz_go_table.c - the function table of a Go program that somebody else wrote.
 *
 * An input that is an ELF file is read as it is. Any other becomes the only segment of one, writable, at DATA_START, and its
 * section .gopclntab: module data anywhere in it is found, too. Looked up are the starts of functions that its numbers give.
 *
 * Corpus: made by make_go_table_corpus.py.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/go_table.h"
#include "symbolize/symbolize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { DATA_START = 0x10000, CODE_START = 0x401000, N_LOOKUPS = 64, STEP = 5 };

static const char section_names[] = "\0.gopclntab\0.shstrtab";

struct wrapped {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[3];
	char names[sizeof section_names];
};

static uint8_t *wrap(const uint8_t *data, size_t n_bytes)
{
	struct wrapped head = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_phoff = offsetof(struct wrapped, segment),
			.e_shoff = offsetof(struct wrapped, sections),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1,
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 3,
			.e_shstrndx = 2,
		},
		.segment = { PT_LOAD, PF_R | PF_W, sizeof head, DATA_START, DATA_START, n_bytes, n_bytes, 8 },
		.sections = {
			{ 0 },
			{ 1, SHT_PROGBITS, SHF_ALLOC, DATA_START, sizeof head, n_bytes, 0, 0, 8, 0 },
			{ 12, SHT_STRTAB, 0, 0, offsetof(struct wrapped, names), sizeof head.names, 0, 0, 1, 0 },
		},
	};
	uint8_t *image = malloc(sizeof head + n_bytes);

	if (!image)
		return NULL;
	memcpy(head.names, section_names, sizeof head.names);
	memcpy(image, &head, sizeof head);
	memcpy(image + sizeof head, data, n_bytes);
	return image;
}

static void look_up(const struct go_table *table, uint64_t address)
{
	struct debug_frame frames[SYMBOL_MAX_INLINED];
	int n = go_table_find(table, address, frames, N_ELEMENTS(frames));

	for (int i = 0; i < n; i++)
		if (!frames[i].name || strlen(frames[i].name) == 0 || (frames[i].file && frames[i].line <= 0))
			abort();
	if (n > 0 && frames[n - 1].start > address)
		abort();
}

static void read_table(const uint8_t *image, size_t n_bytes)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(go_table_freep) struct go_table *table = NULL;
	struct effort effort = { 0 };

	if (elf_file_open_memory(image, n_bytes, &elf) < 0)
		return;
	effort_begin(&effort);
	if (go_table_new(elf, &table) >= 0)
		for (uint64_t i = 0; i < N_LOOKUPS; i++)
			look_up(table, CODE_START + i * STEP);
	effort_end(&effort);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) uint8_t *image = NULL;

	if (n_bytes > SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0) {
		read_table(data, n_bytes);
		return 0;
	}
	image = wrap(data, n_bytes);
	if (image)
		read_table(image, sizeof(struct wrapped) + n_bytes);
	return 0;
}
