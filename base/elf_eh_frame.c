/* SPDX-License-Identifier: MIT */
/* elf_eh_frame.c - function bounds, and the CFI programs of functions, from
 * .eh_frame_hdr and .eh_frame.
 *
 * The header section has a table of (function start, FDE), sorted by start.
 * The FDE has the function's exact start and length, and its program; its CIE
 * has the encoding of those two numbers, and the instructions that all its
 * functions share.
 * all its functions have in common.
 */
#include "base/elf_eh_frame.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cursor.h"
#include "base/util.h"

/* DW_EH_PE_*: the low four bits are the format, the next three the base. */
enum {
	PE_ABSPTR = 0x00,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_BASE = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

/* Bytes of the file, with their load address. */
struct place {
	struct cursor bytes;
	uint64_t shift; /* load address of a byte minus its address in our memory */
};

struct hdr_entry {
	int32_t start, fde; /* relative to .eh_frame_hdr */
};

static int place_open(const struct elf_file *file, uint64_t address, struct place *ret)
{
	const uint8_t *at;
	size_t n_bytes;
	int r;

	r = elf_file_tail(file, address, &at, &n_bytes);
	if (r < 0)
		return r;
	*ret = (struct place){
		.bytes = { .at = at, .end = at + n_bytes },
		.shift = address - (uint64_t)(uintptr_t)at,
	};
	return 0;
}

static uint64_t place_address(const struct place *place)
{
	return (uint64_t)(uintptr_t)place->bytes.at + place->shift;
}

static void place_limit(struct place *place, uint64_t n_bytes)
{
	if (n_bytes < cursor_left(&place->bytes))
		place->bytes.end = place->bytes.at + n_bytes;
}

static uint8_t take_u8(struct place *place)
{
	return (uint8_t)cursor_fixed(&place->bytes, 1);
}

static uint32_t take_u32(struct place *place)
{
	return (uint32_t)cursor_fixed(&place->bytes, 4);
}

static uint64_t take_format(struct cursor *cursor, uint8_t format)
{
	switch (format) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return cursor_fixed(cursor, 8);
	case PE_UDATA4:
		return cursor_fixed(cursor, 4);
	case PE_SDATA4:
		return (uint64_t)cursor_signed(cursor, 4);
	case PE_UDATA2:
		return cursor_fixed(cursor, 2);
	case PE_SDATA2:
		return (uint64_t)cursor_signed(cursor, 2);
	default:
		cursor->failed = true;
		return 0;
	}
}

/* Indirect pointers need run-time memory; no linker uses them for code addresses. */
static uint64_t take_encoded(struct place *place, uint8_t encoding, uint64_t data_base)
{
	uint64_t base = 0;

	if (encoding == PE_OMIT)
		return 0;
	if ((encoding & PE_BASE) == PE_PCREL)
		base = place_address(place);
	else if ((encoding & PE_BASE) == PE_DATAREL)
		base = data_base;
	else if ((encoding & PE_BASE) != 0)
		place->bytes.failed = true;
	return base + take_format(&place->bytes, encoding & PE_FORMAT);
}

/* Positions the cursor at the table, limited to it. */
static int open_table(const struct elf_file *file, uint64_t hdr, uint64_t n_hdr_bytes, struct place *place,
		      size_t *ret_entries)
{
	uint8_t version, pointer_encoding, count_encoding, table_encoding;
	uint64_t n;
	int r;

	r = place_open(file, hdr, place);
	if (r < 0)
		return -ENODATA;
	place_limit(place, n_hdr_bytes);
	version = take_u8(place);
	pointer_encoding = take_u8(place);
	count_encoding = take_u8(place);
	table_encoding = take_u8(place);
	if (version != 1 || count_encoding == PE_OMIT || table_encoding != (PE_DATAREL | PE_SDATA4))
		return -ENODATA;
	take_encoded(place, pointer_encoding, hdr);
	n = take_encoded(place, count_encoding, hdr);
	if (place->bytes.failed)
		return -ENODATA;
	*ret_entries = MIN(n, cursor_left(&place->bytes) / sizeof(struct hdr_entry));
	return 0;
}

static struct hdr_entry entry_at(const struct place *table, size_t i)
{
	struct hdr_entry entry;

	memcpy(&entry, table->bytes.at + i * sizeof entry, sizeof entry);
	return entry;
}

/* The last function that starts at or before the address. */
static int find_fde(const struct elf_file *file, uint64_t hdr, uint64_t n_hdr_bytes, uint64_t address, uint64_t *ret)
{
	struct place table;
	size_t low = 0, high;
	int r;

	r = open_table(file, hdr, n_hdr_bytes, &table, &high);
	if (r < 0)
		return r;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (hdr + (uint64_t)(int64_t)entry_at(&table, middle).start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return -ENOENT;
	*ret = hdr + (uint64_t)(int64_t)entry_at(&table, low - 1).fde;
	return 0;
}

/* Open a CIE or FDE and limit the cursor to it; the caller reads the second word. */
static int open_entry(const struct elf_file *file, uint64_t address, struct place *ret)
{
	uint32_t n_bytes;
	int r;

	r = place_open(file, address, ret);
	if (r < 0)
		return r;
	n_bytes = take_u32(ret);
	/* 0 ends the section. All ones mean a 64-bit length, which no linker writes here. */
	if (ret->bytes.failed || n_bytes == 0 || n_bytes == UINT32_MAX)
		return -ENOENT;
	place_limit(ret, n_bytes);
	return 0;
}

/* Read the augmentation data: 'R' is the encoding of addresses in FDEs, 'S' marks signal frames. */
static int read_augmentation(struct place *place, const char *augmentation, struct elf_cfi *cfi, uint8_t *ret_encoding)
{
	for (const char *c = augmentation; *c != '\0'; c++) {
		switch (*c) {
		case 'R':
			*ret_encoding = take_u8(place);
			break;
		case 'P':
			/* Skip an indirect personality without following it. */
			take_encoded(place, take_u8(place) & ~PE_INDIRECT, 0);
			break;
		case 'L':
			take_u8(place);
			break;
		case 'S':
			cfi->is_signal = true;
			break;
		case 'B': /* return addresses signed with key B */
			break;
		default:
			return -ENOENT;
		}
	}
	return place->bytes.failed ? -ENOENT : 0;
}

static int read_cie(const struct elf_file *file, uint64_t address, struct elf_cfi *cfi, uint8_t *ret_encoding)
{
	struct place place, data;
	const char *augmentation;
	uint64_t n_data;
	uint32_t id;
	uint8_t version;
	int r;

	r = open_entry(file, address, &place);
	if (r < 0)
		return r;
	cfi->cie = place.bytes.at - sizeof(uint32_t);
	id = take_u32(&place);
	version = take_u8(&place);
	if (place.bytes.failed || id != 0 || (version != 1 && version != 3))
		return -ENOENT;
	augmentation = (const char *)place.bytes.at;
	while (take_u8(&place) != 0)
		;
	if (place.bytes.failed)
		return -ENOENT;
	cfi->code_factor = cursor_leb128(&place.bytes);
	cfi->data_factor = cursor_signed_leb128(&place.bytes);
	cfi->return_register = version == 1 ? take_u8(&place) : cursor_leb128(&place.bytes);
	*ret_encoding = PE_ABSPTR;
	if (augmentation[0] == 'z') {
		n_data = cursor_leb128(&place.bytes);
		data = place;
		if (place.bytes.failed || n_data > cursor_left(&place.bytes))
			return -ENOENT;
		place.bytes.at += n_data;
		r = read_augmentation(&data, augmentation + 1, cfi, ret_encoding);
		if (r < 0)
			return r;
		cfi->has_augmentation = true;
	} else if (augmentation[0] != '\0') {
		return -ENOENT;
	}
	if (place.bytes.failed)
		return -ENOENT;
	cfi->initial = place.bytes.at;
	cfi->n_initial = cursor_left(&place.bytes);
	return 0;
}

static int read_fde(const struct elf_file *file, uint64_t address, struct elf_cfi *cfi)
{
	struct place place;
	uint64_t cie_field, n_data;
	uint32_t distance;
	uint8_t encoding;
	int r;

	r = open_entry(file, address, &place);
	if (r < 0)
		return r;
	cfi->fde = place.bytes.at - sizeof(uint32_t);
	cie_field = place_address(&place);
	distance = take_u32(&place);
	if (place.bytes.failed || distance == 0)
		return -ENOENT;
	r = read_cie(file, cie_field - distance, cfi, &encoding);
	if (r < 0)
		return r;
	if (encoding & PE_INDIRECT)
		return -ENOENT;
	cfi->start = take_encoded(&place, encoding, 0);
	cfi->end = cfi->start + take_format(&place.bytes, encoding & PE_FORMAT);
	n_data = cfi->has_augmentation ? cursor_leb128(&place.bytes) : 0;
	if (place.bytes.failed || n_data > cursor_left(&place.bytes) || cfi->end < cfi->start)
		return -ENOENT;
	cfi->program = place.bytes.at + n_data;
	cfi->n_program = cursor_left(&place.bytes) - n_data;
	return 0;
}

int eh_frame_find(const struct elf_file *file, uint64_t hdr, uint64_t n_hdr_bytes, uint64_t address,
		  struct elf_cfi *ret)
{
	struct elf_cfi cfi = { 0 };
	uint64_t fde;
	int r;

	r = find_fde(file, hdr, n_hdr_bytes, address, &fde);
	if (r < 0)
		return r;
	r = read_fde(file, fde, &cfi);
	if (r < 0)
		return r;
	if (address < cfi.start || address >= cfi.end)
		return -ENOENT;
	*ret = cfi;
	return 0;
}
