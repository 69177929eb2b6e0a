/* SPDX-License-Identifier: MIT */
/* go_table.c - see go_table.h.
 *
 * Go's runtime names the functions of a traceback by a table in the program, .gopclntab. strip(1) keeps it, since it is
 * program data. Its parts are found by offsets in its header:
 *
 *	functions   sorted by start: {start, where its record lies}
 *	record      name, and where its tables by PC begin: file, line, index into its tree of inlined calls
 *	tree        an inlined call: the function's name, and a PC in the caller whose line is that of the call
 *
 * A table by PC is a sequence of pairs of varints, the change of the value and the bytes of code that have it. The tree lies
 * elsewhere, at an offset from an address that only the module data has.
 *
 * Invariants: everything is read through bytes_at(), which checks the bounds; all loops are bounded.
 *
 * Source: Go 1.19, src/runtime/symtab.go (pcHeader, moduledata, _func, inlinedCall, pcvalue); src/runtime/runtime2.go; the
 * layouts of 1.16 and 1.20 in debug/gosym/pclntab.go of those releases.
 */
#include "symbolize/go_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/image.h"
#include "symbolize/names.h"

enum {
	HEADER_BYTES = 72,
	MAX_FUNCTIONS = 1 << 23,
	MAX_PAIRS = 1 << 20, /* of one PC-value table */
	PAIRS_A_STEP = 4,
	MAX_SCANNED = 64 << 20, /* bytes of data searched for a table or for the module data */
	WORDS_A_STEP = 16,
	INLINE_INDEX = 2, /* PCDATA_InlTreeIndex */
	INLINE_TREE = 3,  /* FUNCDATA_InlTree */
	MAX_ITEMS = 64,   /* tables per function */
};

/* Differences between releases: offsets in bytes. @start 0: function starts are absolute addresses. */
static const struct go_layout {
	uint32_t magic;
	unsigned start, names, units, files, by_pc, functions; /* in the header */
	unsigned entry_bytes; /* sizes of a function's start and of its record's offset */
	unsigned name, by_file, by_line, n_items, unit, n_data, record_bytes;
	unsigned call_bytes, call_name, call_pc;
	unsigned tree_base; /* in the module data; 0: trees have absolute addresses */
} layouts[] = {
	/* 1.20 */
	{ 0xfffffff1, 24, 32, 40, 48, 56, 64, 4, 4, 20, 24, 28, 32, 43, 44, 16, 4, 8, 320 },
	/* 1.18 */
	{ 0xfffffff0, 24, 32, 40, 48, 56, 64, 4, 4, 20, 24, 28, 32, 39, 40, 20, 12, 16, 304 },
	/* 1.16 */
	{ 0xfffffffa, 0, 24, 32, 40, 48, 56, 8, 8, 24, 28, 32, 36, 43, 44, 20, 12, 16, 0 },
};

struct go_table {
	struct image image;
	const struct go_layout *layout;
	uint64_t base;    /* address of the table */
	uint64_t n_bytes; /* from the table to the end of its segment */
	uint64_t n_functions, text;
	uint64_t names, units, files, by_pc, functions; /* addresses */
	uint64_t trees;                                 /* base of tree offsets; 0: unknown */
	unsigned step;                                  /* code bytes per unit of a PC-value table */
};

/* A function's record. */
struct go_function {
	uint64_t start, end, record;
};

/* ---- Bytes ---- */

static const uint8_t *bytes_at(const struct image *image, uint64_t address, size_t n_bytes)
{
	const struct image_segment *segment = image_segment_at(image, address);

	if (!segment || address >= segment->end || segment->end - address < n_bytes)
		return NULL;
	return (segment->relocated ? segment->relocated : segment->bytes) + (address - segment->start);
}

static bool number_at(const struct image *image, uint64_t address, unsigned n_bytes, uint64_t *ret)
{
	const uint8_t *bytes = bytes_at(image, address, n_bytes);

	*ret = 0;
	if (bytes)
		memcpy(ret, bytes, n_bytes); /* all machines with supported tables are little-endian */
	return bytes != NULL;
}

/* The address of a part, from its offset in the header. */
static bool part_at(const struct go_table *table, unsigned field, uint64_t *ret)
{
	uint64_t offset;

	if (!number_at(&table->image, table->base + field, 8, &offset) || offset >= table->n_bytes)
		return false;
	*ret = table->base + offset;
	return true;
}

/* ---- Find the table ---- */

static const struct go_layout *layout_at(const struct image *image, uint64_t address)
{
	const uint8_t *bytes = bytes_at(image, address, HEADER_BYTES);
	uint32_t magic;

	if (!bytes || bytes[4] != 0 || bytes[5] != 0 || (bytes[6] != 1 && bytes[6] != 2 && bytes[6] != 4) ||
	    bytes[7] != 8)
		return NULL;
	memcpy(&magic, bytes, sizeof magic);
	for (size_t i = 0; i < N_ELEMENTS(layouts); i++)
		if (layouts[i].magic == magic)
			return &layouts[i];
	return NULL;
}

/* Check for a valid table and fill it in. */
static bool take_table(struct go_table *table, struct elf_file *elf, uint64_t address)
{
	const struct image_segment *segment = image_segment_at(&table->image, address);
	uint64_t size;

	table->layout = layout_at(&table->image, address);
	if (!table->layout)
		return false;
	table->base = address;
	table->n_bytes = segment->end - address;
	table->step = bytes_at(&table->image, address, HEADER_BYTES)[6];
	if (!number_at(&table->image, address + 8, 8, &table->n_functions) || table->n_functions == 0 ||
	    table->n_functions > MAX_FUNCTIONS || !part_at(table, table->layout->names, &table->names) ||
	    !part_at(table, table->layout->units, &table->units) ||
	    !part_at(table, table->layout->files, &table->files) ||
	    !part_at(table, table->layout->by_pc, &table->by_pc) ||
	    !part_at(table, table->layout->functions, &table->functions))
		return false;
	if (table->layout->start && !number_at(&table->image, address + table->layout->start, 8, &table->text))
		return false;
	if (table->layout->start && table->text == 0 && elf_file_section(elf, ".text", &table->text, &size) < 0)
		return false;
	return bytes_at(&table->image, table->functions,
			(size_t)(table->n_functions * 2 + 1) * table->layout->entry_bytes) != NULL;
}

/* In position-independent programs the table has no section of its own: scan the data. */
static int scan(struct go_table *table, struct elf_file *elf)
{
	for (size_t i = 0; i < table->image.n_segments; i++) {
		const struct image_segment *segment = &table->image.segments[i];
		const uint64_t end = MIN(segment->end, segment->start + MAX_SCANNED);

		for (uint64_t at = (segment->start + 7) & ~UINT64_C(7); !segment->executable && at < end; at += 8) {
			if (take_table(table, elf, at))
				return 0;
			if (at % (8 * 4096) == 0 && !effort_go_on(4096 / WORDS_A_STEP))
				return -ETIME;
		}
	}
	return -ENOENT;
}

static int find(struct go_table *table, struct elf_file *elf)
{
	static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	uint64_t address, size;

	for (size_t i = 0; i < N_ELEMENTS(sections); i++)
		if (elf_file_section(elf, sections[i], &address, &size) >= 0)
			return take_table(table, elf, address) ? 0 : -ENOENT;
	return scan(table, elf);
}

/*
 * The module data begins with the addresses of the table and of the names. Without it, inlined functions are unknown.
 */
static int find_trees(struct go_table *table)
{
	uint64_t word, names;

	for (size_t i = 0; table->layout->tree_base && i < table->image.n_segments; i++) {
		const struct image_segment *segment = &table->image.segments[i];
		const uint64_t end = MIN(segment->end, segment->start + MAX_SCANNED);

		for (uint64_t at = (segment->start + 7) & ~UINT64_C(7); segment->writable && at < end; at += 8) {
			if (image_word(&table->image, at, &word) && word == table->base &&
			    image_word(&table->image, at + 8, &names) && names == table->names) {
				(void)image_word(&table->image, at + table->layout->tree_base, &table->trees);
				return 0;
			}
			if (at % (8 * 4096) == 0 && !effort_go_on(4096 / WORDS_A_STEP))
				return -ETIME;
		}
	}
	return 0;
}

/* Go's linker adds notes on the build and the modules. */
static bool is_go(struct elf_file *elf)
{
	static const char *const sections[] = { ".go.buildinfo", ".note.go.buildid", ".gopclntab" };
	uint64_t address, size;

	for (size_t i = 0; i < N_ELEMENTS(sections); i++)
		if (elf_file_section(elf, sections[i], &address, &size) >= 0)
			return true;
	return false;
}

int go_table_new(struct elf_file *elf, struct go_table **ret)
{
	CLEANUP(go_table_freep) struct go_table *table = NULL;
	int r;

	if (!is_go(elf))
		return -ENOENT;
	table = calloc(1, sizeof *table);
	if (!table)
		return -ENOMEM;
	r = image_init(&table->image, elf);
	if (r >= 0)
		r = find(table, elf);
	if (r >= 0)
		r = find_trees(table);
	if (r < 0)
		return r;
	*ret = TAKE(table);
	return 0;
}

void go_table_free(struct go_table *table)
{
	if (!table)
		return;
	image_done(&table->image);
	free(table);
}

void go_table_freep(struct go_table **table)
{
	go_table_free(*table);
}

/* ---- Functions ---- */

/* NULL: outside the table. */
static const char *string_at(const struct go_table *table, uint64_t part, uint64_t offset)
{
	const char *string = image_string(&table->image, part + offset, NAME_MAX_BYTES);

	return offset < table->n_bytes && string && string[0] ? string : NULL;
}

static bool start_of(const struct go_table *table, uint64_t i, uint64_t *ret)
{
	const unsigned size = table->layout->entry_bytes;

	if (!number_at(&table->image, table->functions + i * 2 * size, size, ret))
		return false;
	*ret += table->text;
	return true;
}

static bool function_at(const struct go_table *table, uint64_t address, struct go_function *ret)
{
	const unsigned size = table->layout->entry_bytes;
	uint64_t low = 0, high = table->n_functions, offset;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2, start;

		if (!start_of(table, middle, &start))
			return false;
		if (start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || !start_of(table, low - 1, &ret->start) || !start_of(table, low, &ret->end) ||
	    address >= ret->end || address < ret->start ||
	    !number_at(&table->image, table->functions + (low - 1) * 2 * size + size, size, &offset) ||
	    offset >= table->n_bytes)
		return false;
	ret->record = table->functions + offset;
	return bytes_at(&table->image, ret->record, table->layout->record_bytes) != NULL;
}

static bool read_varint(const struct image_segment *segment, uint64_t *at, uint32_t *ret)
{
	const uint8_t *bytes = segment->relocated ? segment->relocated : segment->bytes;

	*ret = 0;
	for (unsigned shift = 0; shift < 35; shift += 7) {
		uint8_t byte;

		if (*at >= segment->end)
			return false;
		byte = bytes[(*at)++ - segment->start];
		*ret |= (uint32_t)((uint64_t)(byte & 0x7f) << shift);
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Look up a PC-value table; -1: no value. -ETIME. */
static int value_at(const struct go_table *table, const struct go_function *function, uint64_t offset, uint64_t address,
		    int32_t *ret)
{
	uint64_t at = table->by_pc + offset, pc = function->start;
	const struct image_segment *segment = image_segment_at(&table->image, at);
	int32_t value = -1;

	*ret = -1;
	if (offset == 0 || offset >= table->n_bytes || !segment || at >= segment->end)
		return 0;
	for (unsigned n = 0; n < MAX_PAIRS; n++) {
		uint32_t change, length;

		if (!read_varint(segment, &at, &change) || (change == 0 && n > 0) ||
		    !read_varint(segment, &at, &length))
			return 0;
		value = (int32_t)((uint32_t)value + ((change >> 1) ^ -(change & 1)));
		pc += (uint64_t)length * table->step;
		if (address < pc) {
			*ret = value;
			return 0;
		}
		if (n % (PAIRS_A_STEP * 64) == 0 && !effort_go_on(64))
			return -ETIME;
	}
	return 0;
}

static uint64_t record_word(const struct go_table *table, const struct go_function *function, unsigned field)
{
	uint64_t value;

	(void)number_at(&table->image, function->record + field, 4, &value);
	return value;
}

/* ---- Files, lines and inlined calls ---- */

static int put_line(const struct go_table *table, const struct go_function *function, uint64_t address,
		    struct debug_frame *frame)
{
	const uint64_t unit = record_word(table, function, table->layout->unit);
	uint64_t offset;
	int32_t file, line;
	int r;

	r = value_at(table, function, record_word(table, function, table->layout->by_file), address, &file);
	if (r >= 0)
		r = value_at(table, function, record_word(table, function, table->layout->by_line), address, &line);
	if (r < 0)
		return r;
	if (file < 0 || line <= 0 ||
	    !number_at(&table->image, table->units + (unit + (uint64_t)file) * 4, 4, &offset) || offset == UINT32_MAX)
		return 0;
	frame->file = string_at(table, table->files, offset);
	frame->line = frame->file ? line : 0;
	return 0;
}

/* Index into the tree of inlined calls; -1: nothing is inlined at the address. */
static int inlined_index(const struct go_table *table, const struct go_function *function, uint64_t address,
			 int32_t *ret)
{
	uint64_t offset;

	*ret = -1;
	if (record_word(table, function, table->layout->n_items) <= INLINE_INDEX ||
	    !number_at(&table->image, function->record + table->layout->record_bytes + INLINE_INDEX * 4, 4, &offset))
		return 0;
	return value_at(table, function, offset, address, ret);
}

/* Address of a function's tree; 0: unknown. */
static uint64_t tree_of(const struct go_table *table, const struct go_function *function)
{
	const uint64_t n_items = record_word(table, function, table->layout->n_items);
	uint64_t at = function->record + table->layout->record_bytes + n_items * 4, value, n_data;

	if (n_items > MAX_ITEMS || !number_at(&table->image, function->record + table->layout->n_data, 1, &n_data) ||
	    n_data <= INLINE_TREE)
		return 0;
	if (table->layout->tree_base == 0) {
		at = ((at + 7) & ~UINT64_C(7)) + INLINE_TREE * 8;
		return number_at(&table->image, at, 8, &value) ? value : 0;
	}
	if (table->trees == 0 || !number_at(&table->image, at + INLINE_TREE * 4, 4, &value) || value == UINT32_MAX)
		return 0;
	return table->trees + value;
}

/* Read an inlined call; false: it is inconsistent. @ret_pc: an address whose line is the call's line. */
static bool read_call(const struct go_table *table, const struct go_function *function, uint64_t tree, int32_t index,
		      const char **ret_name, uint64_t *ret_pc)
{
	const uint64_t call = tree + (uint64_t)index * table->layout->call_bytes;
	uint64_t name, distance, before;

	if (!bytes_at(&table->image, call, table->layout->call_bytes) ||
	    !number_at(&table->image, call + table->layout->call_name, 4, &name) ||
	    !number_at(&table->image, call + table->layout->call_pc, 4, &distance) ||
	    distance >= function->end - function->start || name == 0 ||
	    !number_at(&table->image, table->names + name - 1, 1, &before) || before != 0)
		return false;
	*ret_name = string_at(table, table->names, name);
	*ret_pc = function->start + distance;
	return *ret_name != NULL;
}

/*
 * Returns the number of inlined functions put into frames; @address becomes the address of the call. -ENODATA: unknown
 * functions; -ETIME.
 */
static int put_inlined(const struct go_table *table, const struct go_function *function, uint64_t *address,
		       struct debug_frame *frames, size_t max)
{
	uint64_t tree = tree_of(table, function);
	size_t n = 0;
	int32_t index;
	int r;

	while ((r = inlined_index(table, function, *address, &index)) >= 0 && index >= 0 && n < max) {
		struct debug_frame *frame = &frames[n];
		uint64_t pc;

		*frame = (struct debug_frame){ 0 };
		if (tree == 0 || !read_call(table, function, tree, index, &frame->name, &pc))
			return -ENODATA;
		r = put_line(table, function, *address, frame);
		if (r < 0)
			return r;
		*address = pc;
		n++;
	}
	return r < 0 ? r : (int)n;
}

int go_table_find(const struct go_table *table, uint64_t address, struct debug_frame *frames, size_t max)
{
	struct go_function function;
	struct debug_frame *frame;
	const char *name;
	int n, r = 0;

	if (!function_at(table, address, &function))
		return 0;
	name = string_at(table, table->names, record_word(table, &function, table->layout->name));
	if (!name)
		return 0;
	n = put_inlined(table, &function, &address, frames, max - 1);
	if (n < 0 && n != -ENODATA)
		return n;
	frame = &frames[MAX(n, 0)];
	*frame = (struct debug_frame){ .name = name, .start = function.start };
	if (n >= 0)
		r = put_line(table, &function, address, frame);
	return r < 0 ? r : MAX(n, 0) + 1;
}
