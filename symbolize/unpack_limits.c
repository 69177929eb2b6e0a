/* SPDX-License-Identifier: MIT */
/* unpack_limits.c - rejects files that would exhaust memory in libdw.
 *
 * libdw and libelf check that they stay inside a file, but uncompress its
 * contents without a limit: 10 KB of .gnu_debugdata can become 10 GB, and
 * the recorded user controls those files. Both formats state the
 * uncompressed size in advance: ELF in the header of a compressed section,
 * LZMA2 in the header of each chunk (a decoder stops where a chunk lies).
 *
 * Sources: ELF gABI, "Section Compression"; "The .xz File Format" 1.1.0,
 * sections 2 to 4; LZMA2 chunk headers as in the Linux kernel's
 * lib/xz/xz_dec_lzma2.c.
 */
#include "symbolize/unpack_limits.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "base/util.h"

enum {
	MAX_UNPACKED_SYMBOLS = 256 << 20, /* .gnu_debugdata; Fedora's largest have about 20 MB */
	SMALL_SECTION = 64 << 20,         /* allow any ratio up to this size */
	MAX_RATIO = 64,                   /* debug information compresses by 2 to 10 */
	MAX_RATIO_OF_ALL = 16,            /* all sections of a file together, by 2 to 5 */
	MAX_DICTIONARY = 64 << 20,        /* "xz -9" uses this much */
	MAX_SECTIONS = 1 << 16,
};

/* ---- .xz: container and chunks ---- */

struct reader {
	const uint8_t *at, *end;
};

static bool has(const struct reader *reader, size_t n_bytes)
{
	return (size_t)(reader->end - reader->at) >= n_bytes;
}

/* Dictionary size for LZMA2's property byte: 2^n or 3 * 2^n. */
static uint64_t dictionary_bytes(uint8_t property)
{
	return (uint64_t)(2 | (property & 1)) << (property / 2 + 11);
}

/* Skip a number of 7 bits per byte, least significant first; at most 9 bytes. */
static bool skip_number(struct reader *reader)
{
	for (int i = 0; i < 9 && has(reader, 1); i++)
		if (!(*reader->at++ & 0x80))
			return true;
	return false;
}

/* Read a block header. Accept one filter, LZMA2, as xz and all packagers write it. */
static int read_block_header(struct reader *reader)
{
	const size_t header_bytes = has(reader, 1) ? ((size_t)reader->at[0] + 1) * 4 : 0;
	struct reader header = { reader->at, reader->at + header_bytes };
	uint8_t flags;

	if (header_bytes < 8 || !has(reader, header_bytes))
		return -EBADMSG;
	reader->at += header_bytes;
	flags = header.at[1];
	header.at += 2;
	if ((flags & 0x3f) != 0) /* several filters, or reserved bits */
		return -EBADMSG;
	if (((flags & 0x40) && !skip_number(&header)) || ((flags & 0x80) && !skip_number(&header)))
		return -EBADMSG;
	if (!has(&header, 3) || header.at[0] != 0x21 || header.at[1] != 1 || header.at[2] > 40)
		return -EBADMSG;
	return dictionary_bytes(header.at[2]) <= MAX_DICTIONARY ? 0 : -EBADMSG;
}

/* Skip a block's chunks and their end mark, and add their uncompressed sizes. */
static int add_chunks(struct reader *reader, uint64_t *total)
{
	while (has(reader, 1)) {
		uint8_t control = reader->at[0];
		size_t packed, n_header;

		if (control == 0) {
			reader->at++;
			return 0;
		}
		if (control >= 3 && control < 0x80)
			return -EBADMSG;
		n_header = control >= 0xc0 ? 6 : control >= 0x80 ? 5 : 3;
		if (!has(reader, n_header))
			return -EBADMSG;
		packed = ((size_t)reader->at[1] << 8 | reader->at[2]) + 1;
		*total += packed;
		if (control >= 0x80) {
			*total += (uint64_t)(control & 0x1f) << 16;
			packed = ((size_t)reader->at[3] << 8 | reader->at[4]) + 1;
		}
		reader->at += n_header;
		if (!has(reader, packed))
			return -EBADMSG;
		reader->at += packed;
	}
	return -EBADMSG;
}

/* Size of a block's check, by its number in the stream's flags. */
static size_t check_bytes(uint8_t number)
{
	static const uint8_t sizes[16] = { 0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64 };

	return sizes[number & 15];
}

int unpack_limits_xz_bytes(const uint8_t *bytes, size_t n_bytes, uint64_t *ret)
{
	static const uint8_t magic[6] = { 0xfd, '7', 'z', 'X', 'Z', 0 };
	struct reader reader = { bytes, bytes + n_bytes };
	uint64_t total = 0;
	size_t n_check;
	int r;

	if (!has(&reader, 12) || memcmp(reader.at, magic, sizeof magic) != 0)
		return -EBADMSG;
	n_check = check_bytes(reader.at[7]);
	reader.at += 12;
	while (has(&reader, 1) && reader.at[0] != 0) { /* 0 starts the index, after the blocks */
		const uint8_t *start = reader.at;
		size_t padding;

		r = read_block_header(&reader);
		if (r >= 0)
			r = add_chunks(&reader, &total);
		if (r < 0)
			return r;
		padding = (size_t)(start - reader.at) % 4;
		if (!has(&reader, padding + n_check))
			return -EBADMSG;
		reader.at += padding + n_check;
	}
	if (!has(&reader, 1))
		return -EBADMSG;
	*ret = total;
	return 0;
}

/* ---- Sections ---- */

/* Total sizes of sections, decompressed and compressed. */
struct sum {
	uint64_t n_unpacked, n_packed;
	uint64_t n_symbols; /* part of n_unpacked */
};

static bool is_sane(uint64_t unpacked, uint64_t packed)
{
	return unpacked <= SMALL_SECTION || unpacked / MAX_RATIO <= packed;
}

bool unpack_limits_is_sane(uint64_t n_unpacked, uint64_t n_packed)
{
	return n_unpacked <= FENCE_SMALL_BYTES ||
	       (n_unpacked <= FENCE_MAX_BYTES && n_unpacked / MAX_RATIO_OF_ALL <= n_packed);
}

/* MAX_SECTIONS numbers up to FENCE_MAX_BYTES do not overflow 64 bits. */
static bool add(struct sum *sum, uint64_t n_unpacked, uint64_t n_packed)
{
	if (n_unpacked > FENCE_MAX_BYTES)
		return false;
	sum->n_unpacked += n_unpacked;
	sum->n_packed += MIN(n_packed, FENCE_MAX_BYTES);
	return true;
}

static bool passes_debugdata(Elf_Scn *section, struct sum *sum)
{
	const Elf_Data *data = elf_rawdata(section, NULL);
	uint64_t n_bytes;

	/* The section may be missing. libdw would try to read other formats than .xz as raw LZMA. */
	if (!data || !data->d_buf || data->d_size == 0)
		return true;
	if (unpack_limits_xz_bytes(data->d_buf, data->d_size, &n_bytes) < 0 || n_bytes > MAX_UNPACKED_SYMBOLS)
		return false;
	sum->n_symbols += n_bytes;
	return add(sum, n_bytes, data->d_size);
}

/* The older format: "ZLIB" and the size, 8 bytes, most significant first. */
static bool passes_zdebug(Elf_Scn *section, const GElf_Shdr *header, struct sum *sum)
{
	const Elf_Data *data = elf_rawdata(section, NULL);
	uint64_t n_bytes = 0;

	if (!data || !data->d_buf || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4) != 0)
		return true;
	for (int i = 4; i < 12; i++)
		n_bytes = n_bytes << 8 | ((const uint8_t *)data->d_buf)[i];
	return is_sane(n_bytes, header->sh_size) && add(sum, n_bytes, header->sh_size);
}

static bool passes_section(Elf *elf, size_t names, Elf_Scn *section, struct sum *sum)
{
	const char *name;
	GElf_Shdr header;
	GElf_Chdr packed;

	if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
		return true;
	if (header.sh_flags & SHF_COMPRESSED)
		return !gelf_getchdr(section, &packed) ||
		       (is_sane(packed.ch_size, header.sh_size) && add(sum, packed.ch_size, header.sh_size));
	name = elf_strptr(elf, names, header.sh_name);
	if (!name)
		return true;
	if (strcmp(name, ".gnu_debugdata") == 0)
		return passes_debugdata(section, sum);
	return strncmp(name, ".zdebug", 7) != 0 || passes_zdebug(section, &header, sum);
}

int unpack_limits_unpacked_bytes(struct elf_file *file, uint64_t *ret_all, uint64_t *ret_symbols)
{
	Elf *elf = elf_file_elf(file);
	struct sum sum = { 0 };
	Elf_Scn *section = NULL;
	size_t names, n = 0, n_file = 0;

	*ret_all = *ret_symbols = 0;
	if (elf_getshdrstrndx(elf, &names) < 0)
		return 0; /* no sections, so nothing to decompress */
	while ((section = elf_nextscn(elf, section)) != NULL)
		if (++n > MAX_SECTIONS || !passes_section(elf, names, section, &sum))
			return -E2BIG;
	/* Sections may share bytes of the file. */
	(void)elf_rawfile(elf, &n_file);
	if (!unpack_limits_is_sane(sum.n_unpacked, MIN(sum.n_packed, (uint64_t)n_file)))
		return -E2BIG;
	*ret_all = sum.n_unpacked;
	*ret_symbols = sum.n_symbols;
	return 0;
}

bool unpack_limits_passes(struct elf_file *file)
{
	uint64_t n_all, n_symbols;

	return unpack_limits_unpacked_bytes(file, &n_all, &n_symbols) == 0;
}

bool unpack_limits_has_code(struct elf_file *file)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	bool has_sections = false;

	while ((section = elf_nextscn(elf_file_elf(file), section)) != NULL) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
			continue;
		has_sections = true;
		if (header.sh_type != SHT_NOBITS)
			return true;
	}
	return !has_sections;
}
