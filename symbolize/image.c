/* SPDX-License-Identifier: MIT */
/* image.c - a module's memory after loading, for tables of pointers.
 *
 * In a file linked at a fixed address the pointers between its tables are in
 * place. In a shared object or PIE they are in relocations: their addends or
 * symbols are written into a copy of the writable segments. A symbol of another
 * module reads as IMAGE_EXTERNAL.
 * Packed relocations (SHT_RELR) need nothing: they keep the addend in place.
 *
 * The file may be damaged: all reads and writes are checked against segments.
 * Source: System V ABI, AMD64 supplement, "Relocation"; "ELF for the Arm 64-bit
 * Architecture", 5.7.
 */
#include "symbolize/image.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/effort.h"

enum {
	MAX_COPY = 256 << 20, /* of all segments: larger ones are not the tables of an interpreter */
	STEPS_OF_RELOCATION = 4,
};

/* Relocations that write a word: the addend, or symbol plus addend. */
static const struct relocations {
	unsigned machine;
	uint32_t addend, symbols[3];
} relocations[] = {
	{ EM_X86_64, R_X86_64_RELATIVE, { R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT } },
	{ EM_AARCH64, R_AARCH64_RELATIVE, { R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT } },
};

static const struct relocations *relocations_of(unsigned machine)
{
	for (size_t i = 0; i < N_ELEMENTS(relocations); i++)
		if (relocations[i].machine == machine)
			return &relocations[i];
	return NULL;
}

static uint64_t bytes_copied(const struct image *image)
{
	uint64_t n = 0;

	for (size_t i = 0; i < image->n_segments; i++)
		n += image->segments[i].relocated ? image->segments[i].end - image->segments[i].start : 0;
	return n;
}

static int add_segment(struct image *image, const struct elf_segment *from)
{
	struct image_segment *segment = &image->segments[image->n_segments];
	const void *bytes;
	uint64_t end, memory_end;

	if (from->n_file_bytes == 0 || __builtin_add_overflow(from->address, from->n_file_bytes, &end) ||
	    __builtin_add_overflow(from->address, from->n_memory_bytes, &memory_end) || end > INT64_MAX ||
	    memory_end > INT64_MAX || elf_file_data(image->elf, from->address, from->n_file_bytes, &bytes) < 0)
		return 0; /* the file has no usable bytes */
	*segment = (struct image_segment){
		.start = from->address,
		.end = end,
		.memory_end = MAX(end, memory_end),
		.bytes = bytes,
		.writable = from->writable,
		.executable = from->executable,
	};
	image->n_segments++;
	if (!from->writable || from->n_file_bytes > MAX_COPY - bytes_copied(image))
		return 0;
	segment->relocated = malloc(from->n_file_bytes);
	if (!segment->relocated)
		return -ENOMEM;
	memcpy(segment->relocated, bytes, from->n_file_bytes);
	return 0;
}

static void write_word(struct image *image, uint64_t address, uint64_t value)
{
	const struct image_segment *segment = image_segment_at(image, address);

	if (segment && segment->relocated && address < segment->end && segment->end - address >= sizeof value)
		memcpy(segment->relocated + (address - segment->start), &value, sizeof value);
}

static uint64_t symbol_value(Elf_Data *symbols, const GElf_Rela *relocation)
{
	GElf_Sym symbol;

	if (!symbols || !gelf_getsym(symbols, (int)GELF_R_SYM(relocation->r_info), &symbol) ||
	    symbol.st_shndx == SHN_UNDEF)
		return IMAGE_EXTERNAL;
	return symbol.st_value + (uint64_t)relocation->r_addend;
}

static void apply(struct image *image, Elf_Data *symbols, const GElf_Rela *relocation)
{
	const struct relocations *kinds = relocations_of(image->machine);
	uint32_t kind = (uint32_t)GELF_R_TYPE(relocation->r_info);

	if (kind == kinds->addend)
		write_word(image, relocation->r_offset, (uint64_t)relocation->r_addend);
	for (size_t i = 0; i < N_ELEMENTS(kinds->symbols); i++)
		if (kind == kinds->symbols[i])
			write_word(image, relocation->r_offset, symbol_value(symbols, relocation));
}

static void apply_section(struct image *image, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	Elf_Data *symbols = elf_getdata(elf_getscn(elf, header->sh_link), NULL);
	GElf_Rela relocation;

	if (!data || header->sh_entsize == 0)
		return;
	if (symbols && symbols->d_type != ELF_T_SYM)
		symbols = NULL;
	for (size_t i = 0; i < data->d_size / header->sh_entsize; i++) {
		if (!gelf_getrela(data, (int)i, &relocation) || !effort_go_on(STEPS_OF_RELOCATION))
			break;
		apply(image, symbols, &relocation);
	}
}

static void apply_relocations(struct image *image)
{
	Elf *elf = elf_file_elf(image->elf);
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA && (header.sh_flags & SHF_ALLOC))
			apply_section(image, elf, section, &header);
}

int image_init(struct image *image, struct elf_file *elf)
{
	struct elf_segment segment;
	GElf_Ehdr header;

	*image = (struct image){ .elf = elf };
	if (!gelf_getehdr(elf_file_elf(elf), &header) || !relocations_of(header.e_machine))
		return 0; /* without segments, nothing is found in the image */
	image->machine = header.e_machine;
	image->position_independent = header.e_type == ET_DYN;
	for (size_t i = 0; elf_file_segment(elf, i, &segment) && image->n_segments < IMAGE_MAX_SEGMENTS; i++) {
		int r = add_segment(image, &segment);

		if (r < 0)
			return r;
	}
	apply_relocations(image);
	return 0;
}

void image_done(struct image *image)
{
	for (size_t i = 0; i < image->n_segments; i++)
		free(image->segments[i].relocated);
	image->n_segments = 0;
}

const char *image_string(const struct image *image, uint64_t address, size_t max_bytes)
{
	const struct image_segment *segment = image_segment_at(image, address);
	const char *string;

	if (!segment || address >= segment->end)
		return NULL;
	string = (const char *)segment->bytes + (address - segment->start);
	return memchr(string, '\0', MIN(max_bytes, segment->end - address)) ? string : NULL;
}

bool image_maps(const struct image *image, uint64_t address)
{
	return image_segment_at(image, address) != NULL;
}

bool image_is_data(const struct image *image, uint64_t address)
{
	const struct image_segment *segment = image_segment_at(image, address);

	return segment && !segment->executable;
}

bool image_is_function(const struct image *image, uint64_t address)
{
	const struct image_segment *segment = image_segment_at(image, address);
	uint64_t start, end;

	if (!segment || !segment->executable)
		return false;
	/* If there is unwind information, a function is the start of an entry. */
	if (image->elf && elf_file_function(image->elf, address, &start, &end) == 0)
		return start == address;
	return true;
}

bool image_is_scanned(const struct image *image, const struct image_segment *segment)
{
	return segment->writable || (!segment->executable && !image->position_independent);
}

/* Instructions of an x86-64 jump stub (Intel SDM, volume 2). */
static const uint8_t landing_pad[] = { 0xf3, 0x0f, 0x1e, 0xfa }; /* ENDBR64 */
enum { JUMP_RELATIVE = 0xe9, JUMP_BYTES = 5, BND_PREFIX = 0xf2, STUB_BYTES = 11 };

/* The code at an address, after a landing pad; NULL: fewer than STUB_BYTES. */
static const uint8_t *code_at(const struct image *image, uint64_t *address)
{
	const void *code;

	if (!image->elf || elf_file_data(image->elf, *address, sizeof landing_pad + STUB_BYTES, &code) < 0)
		return NULL;
	if (memcmp(code, landing_pad, sizeof landing_pad) != 0)
		return code;
	*address += sizeof landing_pad;
	return (const uint8_t *)code + sizeof landing_pad;
}

static uint64_t relative(uint64_t next, const uint8_t *operand)
{
	int32_t offset;

	memcpy(&offset, operand, sizeof offset);
	return next + (uint64_t)(int64_t)offset;
}

/* JMP *slot(%rip), as in a PLT: return the slot's value. */
static uint64_t through_slot(const struct image *image, uint64_t address)
{
	const uint8_t *code = code_at(image, &address);
	uint64_t target;
	size_t prefix;

	if (!code)
		return 0;
	prefix = code[0] == BND_PREFIX;
	if (code[prefix] != 0xff || code[prefix + 1] != 0x25)
		return 0;
	if (!image_word(image, relative(address + prefix + 6, code + prefix + 2), &target))
		return 0;
	return target;
}

uint64_t image_jump_target(const struct image *image, uint64_t function)
{
	const uint8_t *code = code_at(image, &function);
	uint64_t target, slot;

	if (image->machine != EM_X86_64 || !code || code[0] != JUMP_RELATIVE)
		return 0;
	target = relative(function + JUMP_BYTES, code + 1);
	slot = through_slot(image, target);
	if (slot)
		target = slot;
	return image_is_function(image, target) ? target : 0;
}
