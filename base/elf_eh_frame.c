/* elf_eh_frame.c - where functions begin and end, and the programs that describe
 * their frames, by .eh_frame_hdr and .eh_frame.
 *
 * The header section holds a table of (function start, FDE), sorted by start.
 * The FDE found there tells the function's true start and length, and holds its
 * program; the CIE before it tells how those two numbers are written, and what
 * all its functions have in common.
 *
 * Invariants: a cursor never moves past its end; once it would have, it has
 * failed and yields zeros; whoever uses what was read asks failed first.
 */
#include "base/elf_eh_frame.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

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

struct cursor {
	const uint8_t *at, *end;
	uint64_t address; /* of *at */
	bool failed;
};

struct hdr_entry {
	int32_t start, fde; /* relative to .eh_frame_hdr */
};

static int cursor_open(const struct elf_file *file, uint64_t address, struct cursor *ret)
{
	size_t n_bytes;
	int r;

	r = elf_file_tail(file, address, &ret->at, &n_bytes);
	if (r < 0)
		return r;
	ret->end = ret->at + n_bytes;
	ret->address = address;
	ret->failed = false;
	return 0;
}

static void cursor_limit(struct cursor *cursor, uint64_t n_bytes)
{
	if (n_bytes < (uint64_t)(cursor->end - cursor->at))
		cursor->end = cursor->at + n_bytes;
}

static void take(struct cursor *cursor, void *to, size_t n_bytes)
{
	memset(to, 0, n_bytes);
	if (cursor->failed || (size_t)(cursor->end - cursor->at) < n_bytes) {
		cursor->failed = true;
		return;
	}
	memcpy(to, cursor->at, n_bytes);
	cursor->at += n_bytes;
	cursor->address += n_bytes;
}

static uint8_t take_u8(struct cursor *cursor)
{
	uint8_t value;

	take(cursor, &value, sizeof value);
	return value;
}

static uint32_t take_u32(struct cursor *cursor)
{
	uint32_t value;

	take(cursor, &value, sizeof value);
	return value;
}

static uint64_t take_leb128_bits(struct cursor *cursor, unsigned *ret_shift, uint8_t *ret_last)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = take_u8(cursor);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	*ret_shift = shift;
	*ret_last = byte;
	return value;
}

static uint64_t take_leb128(struct cursor *cursor)
{
	unsigned shift;
	uint8_t last;

	return take_leb128_bits(cursor, &shift, &last);
}

static int64_t take_signed_leb128(struct cursor *cursor)
{
	unsigned shift;
	uint8_t last;
	uint64_t value = take_leb128_bits(cursor, &shift, &last);

	if (shift < 64 && (last & 0x40))
		value |= UINT64_MAX << shift;
	return (int64_t)value;
}

static uint64_t take_format(struct cursor *cursor, uint8_t format)
{
	union {
		uint64_t u8;
		uint32_t u4;
		uint16_t u2;
		int32_t s4;
		int16_t s2;
	} value;

	switch (format) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		take(cursor, &value.u8, sizeof value.u8);
		return value.u8;
	case PE_UDATA4:
		take(cursor, &value.u4, sizeof value.u4);
		return value.u4;
	case PE_SDATA4:
		take(cursor, &value.s4, sizeof value.s4);
		return (uint64_t)(int64_t)value.s4;
	case PE_UDATA2:
		take(cursor, &value.u2, sizeof value.u2);
		return value.u2;
	case PE_SDATA2:
		take(cursor, &value.s2, sizeof value.s2);
		return (uint64_t)(int64_t)value.s2;
	default:
		cursor->failed = true;
		return 0;
	}
}

/* Indirect pointers need run-time memory; no linker uses them for code addresses. */
static uint64_t take_encoded(struct cursor *cursor, uint8_t encoding, uint64_t data_base)
{
	uint64_t base = 0;

	if (encoding == PE_OMIT)
		return 0;
	if ((encoding & PE_BASE) == PE_PCREL)
		base = cursor->address;
	else if ((encoding & PE_BASE) == PE_DATAREL)
		base = data_base;
	else if ((encoding & PE_BASE) != 0)
		cursor->failed = true;
	return base + take_format(cursor, encoding & PE_FORMAT);
}

/* Leaves the cursor at the table, limited to it. */
static int open_table(const struct elf_file *file, uint64_t hdr, uint64_t n_hdr_bytes,
		      struct cursor *cursor, size_t *ret_entries)
{
	uint8_t version, pointer_encoding, count_encoding, table_encoding;
	uint64_t n;
	int r;

	r = cursor_open(file, hdr, cursor);
	if (r < 0)
		return -ENODATA;
	cursor_limit(cursor, n_hdr_bytes);
	version = take_u8(cursor);
	pointer_encoding = take_u8(cursor);
	count_encoding = take_u8(cursor);
	table_encoding = take_u8(cursor);
	if (version != 1 || count_encoding == PE_OMIT ||
	    table_encoding != (PE_DATAREL | PE_SDATA4))
		return -ENODATA;
	take_encoded(cursor, pointer_encoding, hdr);
	n = take_encoded(cursor, count_encoding, hdr);
	if (cursor->failed)
		return -ENODATA;
	*ret_entries = MIN(n, (size_t)(cursor->end - cursor->at) / sizeof(struct hdr_entry));
	return 0;
}

static struct hdr_entry entry_at(const struct cursor *table, size_t i)
{
	struct hdr_entry entry;

	memcpy(&entry, table->at + i * sizeof entry, sizeof entry);
	return entry;
}

/* The last function that starts at or before the address. */
static int find_fde(const struct elf_file *file, uint64_t hdr, uint64_t n_hdr_bytes,
		    uint64_t address, uint64_t *ret)
{
	struct cursor table;
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

/* Opens a CIE or FDE and limits the cursor to it; the second word is left to the caller. */
static int open_entry(const struct elf_file *file, uint64_t address, struct cursor *ret)
{
	uint32_t n_bytes;
	int r;

	r = cursor_open(file, address, ret);
	if (r < 0)
		return r;
	n_bytes = take_u32(ret);
	/* 0 ends the section; all ones announce a 64-bit length, which no linker writes here. */
	if (ret->failed || n_bytes == 0 || n_bytes == UINT32_MAX)
		return -ENOENT;
	cursor_limit(ret, n_bytes);
	return 0;
}

/* Reads the augmentation data: 'R' says how FDEs write addresses, 'S' marks signal frames. */
static int read_augmentation(struct cursor *cursor, const char *augmentation, struct elf_cfi *cfi,
			     uint8_t *ret_encoding)
{
	for (const char *c = augmentation; *c != '\0'; c++) {
		switch (*c) {
		case 'R':
			*ret_encoding = take_u8(cursor);
			break;
		case 'P':
			/* An indirect personality is skipped, not followed. */
			take_encoded(cursor, take_u8(cursor) & ~PE_INDIRECT, 0);
			break;
		case 'L':
			take_u8(cursor);
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
	return cursor->failed ? -ENOENT : 0;
}

static int read_cie(const struct elf_file *file, uint64_t address, struct elf_cfi *cfi,
		    uint8_t *ret_encoding)
{
	struct cursor cursor, data;
	const char *augmentation;
	uint64_t n_data;
	uint32_t id;
	uint8_t version;
	int r;

	r = open_entry(file, address, &cursor);
	if (r < 0)
		return r;
	cfi->cie = cursor.at - sizeof(uint32_t);
	id = take_u32(&cursor);
	version = take_u8(&cursor);
	if (cursor.failed || id != 0 || (version != 1 && version != 3))
		return -ENOENT;
	augmentation = (const char *)cursor.at;
	while (take_u8(&cursor) != 0)
		;
	if (cursor.failed)
		return -ENOENT;
	cfi->code_factor = take_leb128(&cursor);
	cfi->data_factor = take_signed_leb128(&cursor);
	cfi->return_register = version == 1 ? take_u8(&cursor) : take_leb128(&cursor);
	*ret_encoding = PE_ABSPTR;
	if (augmentation[0] == 'z') {
		n_data = take_leb128(&cursor);
		data = cursor;
		if (cursor.failed || n_data > (uint64_t)(cursor.end - cursor.at))
			return -ENOENT;
		cursor.at += n_data;
		r = read_augmentation(&data, augmentation + 1, cfi, ret_encoding);
		if (r < 0)
			return r;
		cfi->has_augmentation = true;
	} else if (augmentation[0] != '\0') {
		return -ENOENT;
	}
	if (cursor.failed)
		return -ENOENT;
	cfi->initial = cursor.at;
	cfi->n_initial = (size_t)(cursor.end - cursor.at);
	return 0;
}

static int read_fde(const struct elf_file *file, uint64_t address, struct elf_cfi *cfi)
{
	struct cursor cursor;
	uint64_t cie_field, n_data;
	uint32_t distance;
	uint8_t encoding;
	int r;

	r = open_entry(file, address, &cursor);
	if (r < 0)
		return r;
	cfi->fde = cursor.at - sizeof(uint32_t);
	cie_field = cursor.address;
	distance = take_u32(&cursor);
	if (cursor.failed || distance == 0)
		return -ENOENT;
	r = read_cie(file, cie_field - distance, cfi, &encoding);
	if (r < 0)
		return r;
	if (encoding & PE_INDIRECT)
		return -ENOENT;
	cfi->start = take_encoded(&cursor, encoding, 0);
	cfi->end = cfi->start + take_format(&cursor, encoding & PE_FORMAT);
	n_data = cfi->has_augmentation ? take_leb128(&cursor) : 0;
	if (cursor.failed || n_data > (uint64_t)(cursor.end - cursor.at) || cfi->end < cfi->start)
		return -ENOENT;
	cfi->program = cursor.at + n_data;
	cfi->n_program = (size_t)(cursor.end - cursor.at) - n_data;
	return 0;
}

int eh_frame_find(const struct elf_file *file, uint64_t hdr, uint64_t n_hdr_bytes,
		  uint64_t address, struct elf_cfi *ret)
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
