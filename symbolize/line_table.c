/* SPDX-License-Identifier: MIT */
/* line_table.c - one unit's table of lines; see line_table.h.
 *
 * A table of lines is a program: it produces a row for each address at which the line changes. libdw keeps
 * all rows, 40 bytes each, of each unit used, which is ten times the size of the program. This file runs the
 * program once and keeps one row in BLOCK_ROWS, as a mark: a look-up runs the program from the mark
 * before its address.
 *
 * Invariants: a block is a mark's row and the following ones of its sequence, with ascending addresses, at most
 * BLOCK_ROWS rows and BLOCK_BYTES bytes. ends_block() alone decides where one ends, both when marks are made and
 * when they are used. Marks are sorted as libdw sorts rows: by address, the end of a sequence before the start of
 * another one there, then as written. The file may be damaged: reads are bounded by the section.
 */
#include "symbolize/line_table.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/names.h"

enum {
	BLOCK_ROWS = 64,
	BLOCK_BYTES = 4096,
	MAX_SECTIONS = 1 << 16,
	MAX_FORMATS = 16,
	OPCODES_A_CHECK = 1 << 12,
	STEPS_OF_NAME = 16
};

/* The state-machine registers that are used; also a finished row. */
struct row {
	uint64_t address;
	uint32_t file, line;
	uint32_t op_index;
	bool is_end; /* end of a sequence */
};

struct mark {
	struct row row;
	uint32_t at; /* offset of the program after the row */
};

struct file {
	const char *name; /* in the section */
	uint64_t folder;
	char *whole; /* NULL: not built yet */
};

struct line_table {
	char *compiled_in; /* NULL: unknown */
	const char **folders;
	size_t n_folders, folders_allocated;
	struct file *files;
	size_t n_files, files_allocated;
	uint64_t first_number; /* number of files[0] */
	struct mark *marks;
	size_t n_marks, marks_allocated;

	/* Parameters of the program. */
	const uint8_t *program;
	size_t n_program;
	const uint8_t *operands; /* number of operands of each standard opcode, from opcode 1 on */
	uint8_t opcode_base, line_range, instruction_bytes, max_ops;
	int8_t line_base;
};

/* ---- Sections ---- */

static bool take_section(Elf_Scn *section, const GElf_Shdr *header, struct line_bytes *ret)
{
	const Elf_Data *data;

	if (header->sh_type == SHT_NOBITS || (header->sh_flags & SHF_COMPRESSED))
		return false;
	data = elf_rawdata(section, NULL);
	if (!data || !data->d_buf)
		return false;
	*ret = (struct line_bytes){ data->d_buf, data->d_size };
	return true;
}

/* Only linked files: in others, the addresses in the table still need relocation. */
static bool is_known(Elf *elf)
{
	GElf_Ehdr header;

	return gelf_getehdr(elf, &header) && header.e_ident[EI_DATA] == ELFDATA2LSB &&
	       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && (header.e_type == ET_DYN || header.e_type == ET_EXEC);
}

int line_sections_of(Dwarf *dwarf, struct line_sections *ret)
{
	struct line_sections sections = { 0 };
	Elf *elf = dwarf_getelf(dwarf);
	Elf_Scn *section = NULL;
	size_t names, n = 0;

	if (!elf || !is_known(elf) || elf_getshdrstrndx(elf, &names) < 0)
		return -ENOTSUP;
	while ((section = elf_nextscn(elf, section)) != NULL && ++n < MAX_SECTIONS) {
		struct line_bytes *wanted = NULL;
		const char *name;
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && strcmp(name, ".debug_line") == 0)
			wanted = &sections.lines;
		else if (name && strcmp(name, ".debug_line_str") == 0)
			wanted = &sections.line_strings;
		else if (name && strcmp(name, ".debug_str") == 0)
			wanted = &sections.strings;
		if (wanted && !take_section(section, &header, wanted))
			return -ENOTSUP;
	}
	if (!sections.lines.bytes)
		return -ENOTSUP;

	*ret = sections;
	return 0;
}

/* ---- Header ---- */

struct header {
	const struct line_sections *sections;
	struct cursor cursor;
	unsigned version, offset_bytes;
};

static const char *read_string(struct cursor *cursor)
{
	const char *text = (const char *)cursor->at;
	const uint8_t *end = cursor->failed ? NULL : memchr(cursor->at, '\0', cursor_left(cursor));

	if (!end) {
		cursor->failed = true;
		return "";
	}
	cursor->at = end + 1;
	return text;
}

static const char *string_at(const struct line_bytes *strings, uint64_t offset)
{
	if (!strings->bytes || offset >= strings->n_bytes ||
	    !memchr(strings->bytes + offset, '\0', MIN(strings->n_bytes - offset, (size_t)NAME_MAX_BYTES)))
		return NULL;
	return (const char *)strings->bytes + offset;
}

/* Read a number or a text. -ENOTSUP: neither, or in another file. */
static int read_form(struct header *header, uint64_t form, const char **ret_text, uint64_t *ret_number)
{
	struct cursor *cursor = &header->cursor;
	uint64_t n_block;

	*ret_text = NULL;
	*ret_number = 0;
	switch (form) {
	case DW_FORM_string:
		*ret_text = read_string(cursor);
		return 0;
	case DW_FORM_line_strp:
		*ret_text = string_at(&header->sections->line_strings, cursor_fixed(cursor, header->offset_bytes));
		return 0;
	case DW_FORM_strp:
		*ret_text = string_at(&header->sections->strings, cursor_fixed(cursor, header->offset_bytes));
		return 0;
	case DW_FORM_data1:
		*ret_number = cursor_fixed(cursor, 1);
		return 0;
	case DW_FORM_data2:
		*ret_number = cursor_fixed(cursor, 2);
		return 0;
	case DW_FORM_data4:
		*ret_number = cursor_fixed(cursor, 4);
		return 0;
	case DW_FORM_data8:
		*ret_number = cursor_fixed(cursor, 8);
		return 0;
	case DW_FORM_udata:
		*ret_number = cursor_leb128(cursor);
		return 0;
	case DW_FORM_data16: /* checksum */
		n_block = 16;
		break;
	case DW_FORM_block:
		n_block = cursor_leb128(cursor);
		break;
	default:
		return -ENOTSUP;
	}
	cursor->failed |= n_block > cursor_left(cursor);
	cursor->at += cursor->failed ? 0 : n_block;
	return 0;
}

static int add_folder(struct line_table *table, const char *folder)
{
	int r;

	if (!effort_go_on(STEPS_OF_NAME))
		return -ETIME;
	r = effort_grow(&table->folders, table->n_folders, &table->folders_allocated, sizeof *table->folders);
	if (r < 0)
		return r;
	table->folders[table->n_folders++] = folder;
	return 0;
}

static int add_file(struct line_table *table, const char *name, uint64_t folder)
{
	int r;

	if (!effort_go_on(STEPS_OF_NAME))
		return -ETIME;
	r = effort_grow(&table->files, table->n_files, &table->files_allocated, sizeof *table->files);
	if (r < 0)
		return r;
	table->files[table->n_files++] = (struct file){ .name = name, .folder = folder };
	return 0;
}

/* Up to DWARF 4: folder 0 is the unit's, and files count from 1. */
static int read_old_names(struct line_table *table, struct header *header)
{
	struct cursor *cursor = &header->cursor;
	const char *name;
	int r;

	table->first_number = 1;
	r = add_folder(table, table->compiled_in);
	while (r >= 0 && (name = read_string(cursor))[0] != '\0')
		r = add_folder(table, name);
	while (r >= 0 && (name = read_string(cursor))[0] != '\0') {
		uint64_t folder = cursor_leb128(cursor);

		(void)cursor_leb128(cursor); /* time of change, and size */
		(void)cursor_leb128(cursor);
		r = add_file(table, name, folder);
	}
	return r;
}

struct format {
	uint64_t content, form;
};

static int read_formats(struct cursor *cursor, struct format *formats, size_t *ret)
{
	size_t n = cursor_fixed(cursor, 1);

	if (n > MAX_FORMATS)
		return -ENOTSUP;
	for (size_t i = 0; i < n; i++) {
		formats[i].content = cursor_leb128(cursor);
		formats[i].form = cursor_leb128(cursor);
	}
	*ret = n;
	return 0;
}

/* Read one entry's name and folder. */
static int read_entry(struct header *header, const struct format *formats, size_t n_formats, const char **ret_name,
		      uint64_t *ret_folder)
{
	*ret_name = NULL;
	*ret_folder = 0;
	for (size_t i = 0; i < n_formats; i++) {
		const char *text;
		uint64_t number;
		int r;

		r = read_form(header, formats[i].form, &text, &number);
		if (r < 0)
			return r;
		if (formats[i].content == DW_LNCT_path)
			*ret_name = text;
		else if (formats[i].content == DW_LNCT_directory_index)
			*ret_folder = number;
	}
	return 0;
}

/* DWARF 5: the formats of entries come first. Without formats, entries would take no bytes and have no limit. */
static int read_entries(struct line_table *table, struct header *header, bool are_files)
{
	struct format formats[MAX_FORMATS];
	size_t n_formats;
	uint64_t n;
	int r;

	r = read_formats(&header->cursor, formats, &n_formats);
	if (r < 0)
		return r;
	n = cursor_leb128(&header->cursor);
	if (n > 0 && n_formats == 0)
		return -EBADMSG;
	while (n-- > 0 && !header->cursor.failed) {
		const char *name;
		uint64_t folder;

		r = read_entry(header, formats, n_formats, &name, &folder);
		if (r >= 0)
			r = are_files ? add_file(table, name, folder) : add_folder(table, name);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_names(struct line_table *table, struct header *header)
{
	int r;

	if (header->version < 5)
		return read_old_names(table, header);
	r = read_entries(table, header, false);
	return r < 0 ? r : read_entries(table, header, true);
}

/* Read the unit's length; nothing after it is read. */
static int read_length(struct header *header)
{
	struct cursor *cursor = &header->cursor;
	uint64_t n = cursor_fixed(cursor, 4);

	header->offset_bytes = n == 0xffffffff ? 8 : 4;
	if (header->offset_bytes == 8)
		n = cursor_fixed(cursor, 8);
	if (cursor->failed || n > cursor_left(cursor) || n > UINT32_MAX)
		return -EBADMSG;
	cursor->end = cursor->at + n;
	header->version = (unsigned)cursor_fixed(cursor, 2);
	if (header->version < 2 || header->version > 5)
		return -ENOTSUP;
	if (header->version == 5 && (cursor_fixed(cursor, 1) > 8 || cursor_fixed(cursor, 1) != 0))
		return -ENOTSUP;
	return 0;
}

static int read_header(struct line_table *table, struct header *header)
{
	struct cursor *cursor = &header->cursor;
	uint64_t n_header;
	int r;

	r = read_length(header);
	if (r < 0)
		return r;
	n_header = cursor_fixed(cursor, header->offset_bytes);
	if (cursor->failed || n_header > cursor_left(cursor))
		return -EBADMSG;
	table->program = cursor->at + n_header;
	table->n_program = cursor_left(cursor) - n_header;
	cursor->end = table->program;
	table->instruction_bytes = (uint8_t)cursor_fixed(cursor, 1);
	table->max_ops = header->version >= 4 ? (uint8_t)cursor_fixed(cursor, 1) : 1;
	(void)cursor_fixed(cursor, 1); /* default of is_stmt */
	table->line_base = (int8_t)cursor_fixed(cursor, 1);
	table->line_range = (uint8_t)cursor_fixed(cursor, 1);
	table->opcode_base = (uint8_t)cursor_fixed(cursor, 1);
	table->operands = cursor->at;
	if (table->opcode_base == 0 || table->line_range == 0 || table->max_ops == 0 ||
	    cursor_left(cursor) < table->opcode_base - 1U)
		return -EBADMSG;
	cursor->at += table->opcode_base - 1U;
	r = read_names(table, header);
	if (r < 0)
		return r;
	return cursor->failed ? -EBADMSG : 0;
}

/* ---- Program ---- */

static const struct row first_row = { .file = 1, .line = 1 };

static inline uint8_t read_byte(struct cursor *cursor)
{
	if (cursor->at == cursor->end) {
		cursor->failed = true;
		return 0;
	}
	return *cursor->at++;
}

/* Nearly all numbers have one byte. */
static inline uint64_t read_number(struct cursor *cursor)
{
	if (cursor->at != cursor->end && *cursor->at < 0x80)
		return *cursor->at++;
	return cursor_leb128(cursor);
}

static inline int64_t read_signed(struct cursor *cursor)
{
	if (cursor->at != cursor->end && *cursor->at < 0x40)
		return *cursor->at++;
	return cursor_signed_leb128(cursor);
}

static inline void advance(const struct line_table *table, struct row *row, uint64_t n_operations)
{
	if (table->max_ops == 1) {
		row->address += n_operations * table->instruction_bytes;
		return;
	}
	n_operations += row->op_index;
	row->address += n_operations / table->max_ops * table->instruction_bytes;
	row->op_index = (uint32_t)(n_operations % table->max_ops);
}

static inline void run_special(const struct line_table *table, struct row *row, uint8_t opcode)
{
	unsigned adjusted = (unsigned)opcode - table->opcode_base;

	advance(table, row, adjusted / table->line_range);
	row->line += (uint32_t)(table->line_base + (int)(adjusted % table->line_range));
}

/* Returns 1 at the end of a sequence, 0 otherwise, -ENOTSUP for opcodes that only libdw supports. */
static int run_extended(struct cursor *cursor, struct row *row)
{
	uint64_t n = read_number(cursor);
	const uint8_t *start = cursor->at;
	uint8_t opcode;

	if (n == 0 || n > cursor_left(cursor)) {
		cursor->failed = true;
		return 0;
	}
	opcode = read_byte(cursor);
	if (opcode == DW_LNE_define_file)
		return -ENOTSUP;
	if (opcode == DW_LNE_set_address && n - 1 <= sizeof row->address) {
		row->address = cursor_fixed(cursor, n - 1);
		row->op_index = 0;
	}
	cursor->at = start + n;
	row->is_end = opcode == DW_LNE_end_sequence;
	return row->is_end;
}

/* Number of LEB128 operands of each known standard opcode; fixed_advance_pc has one fixed-size operand. */
static const uint8_t usual_operands[] = { 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

/* Skip unknown opcodes, and those with another number of operands. Returns 1 for a row. */
static int run_standard(const struct line_table *table, struct cursor *cursor, struct row *row, uint8_t opcode)
{
	uint8_t n_operands = table->operands[opcode - 1];

	if (opcode >= N_ELEMENTS(usual_operands) || n_operands != usual_operands[opcode]) {
		while (n_operands-- > 0)
			(void)read_number(cursor);
		return 0;
	}
	switch (opcode) {
	case DW_LNS_copy:
		return 1;
	case DW_LNS_advance_pc:
		advance(table, row, read_number(cursor));
		return 0;
	case DW_LNS_advance_line:
		row->line += (uint32_t)read_signed(cursor);
		return 0;
	case DW_LNS_set_file:
		row->file = (uint32_t)read_number(cursor);
		return 0;
	case DW_LNS_const_add_pc:
		advance(table, row, (255U - table->opcode_base) / table->line_range);
		return 0;
	case DW_LNS_fixed_advance_pc:
		row->address += cursor_fixed(cursor, 2);
		row->op_index = 0;
		return 0;
	case DW_LNS_set_column:
	case DW_LNS_set_isa:
		(void)read_number(cursor);
		return 0;
	default: /* flags for statements and blocks: unused */
		return 0;
	}
}

/* Run to the next row. Returns 1, 0 at the end of the program; -ENOTSUP, -ETIME. */
static int next_row(const struct line_table *table, struct cursor *cursor, struct row *row)
{
	for (unsigned n = 1; cursor->at != cursor->end && !cursor->failed; n++) {
		uint8_t opcode = *cursor->at++;
		int r;

		if (n % OPCODES_A_CHECK == 0 && !effort_go_on(OPCODES_A_CHECK))
			return -ETIME;
		if (opcode >= table->opcode_base) {
			run_special(table, row, opcode);
			return 1;
		}
		r = opcode == 0 ? run_extended(cursor, row) : run_standard(table, cursor, row, opcode);
		if (r != 0)
			return r;
	}
	return 0;
}

/* Whether a new block starts at the row. @n_rows: in the block so far. */
static bool ends_block(const struct mark *mark, const struct row *before, const struct row *row, unsigned n_rows,
		       size_t at)
{
	return before->is_end || n_rows == BLOCK_ROWS || row->address < before->address || at - mark->at > BLOCK_BYTES;
}

static int add_mark(struct line_table *table, const struct row *row, size_t at)
{
	int r;

	r = effort_grow(&table->marks, table->n_marks, &table->marks_allocated, sizeof *table->marks);
	if (r < 0)
		return r;
	table->marks[table->n_marks++] = (struct mark){ .row = *row, .at = (uint32_t)at };
	return 0;
}

/* Linkers write 0, -1 or -2 for a dropped function. */
static bool is_dropped(uint64_t address)
{
	return address == 0 || address >= UINT64_MAX - 1;
}

static int make_marks(struct line_table *table)
{
	struct cursor cursor = { table->program, table->program + table->n_program, false };
	struct row row = first_row, before = { .is_end = true };
	bool is_left_out = false;
	unsigned n_rows = 0;
	int r;

	while ((r = next_row(table, &cursor, &row)) > 0) {
		size_t at = (size_t)(cursor.at - table->program);

		if (before.is_end)
			is_left_out = is_dropped(row.address);
		if (!is_left_out &&
		    (before.is_end || ends_block(&table->marks[table->n_marks - 1], &before, &row, n_rows, at))) {
			r = add_mark(table, &row, at);
			if (r < 0)
				return r;
			n_rows = 0;
			if (!effort_go_on(BLOCK_ROWS / 4))
				return -ETIME;
		}
		n_rows++;
		before = row;
		if (row.is_end)
			row = first_row;
	}
	return r;
}

static int compare_marks(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	if (x->row.address != y->row.address)
		return x->row.address < y->row.address ? -1 : 1;
	if (x->row.is_end != y->row.is_end)
		return x->row.is_end ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void sort_marks(struct line_table *table)
{
	for (size_t i = 1; i < table->n_marks; i++) {
		if (compare_marks(&table->marks[i - 1], &table->marks[i]) > 0) {
			qsort(table->marks, table->n_marks, sizeof *table->marks, compare_marks);
			return;
		}
	}
}

/* The last mark at or before an address; NULL: all are after it. */
static const struct mark *mark_before(const struct line_table *table, uint64_t address)
{
	size_t low = 0, high = table->n_marks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->marks[middle].row.address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? &table->marks[low - 1] : NULL;
}

bool line_table_find(const struct line_table *table, uint64_t address, uint64_t *ret_file, int *ret_line)
{
	const struct mark *mark = mark_before(table, address);
	struct row best, before, row;
	struct cursor cursor;

	if (!mark)
		return false;
	best = before = row = mark->row;
	cursor = (struct cursor){ table->program + mark->at, table->program + table->n_program, false };
	for (unsigned n_rows = 1; !before.is_end && next_row(table, &cursor, &row) > 0; n_rows++) {
		if (ends_block(mark, &before, &row, n_rows, (size_t)(cursor.at - table->program)) ||
		    row.address > address)
			break;
		best = before = row;
	}
	if (best.is_end)
		return false;
	*ret_file = best.file;
	*ret_line = best.line <= INT32_MAX ? (int)best.line : 0;
	return true;
}

/* ---- Files ---- */

static bool is_too_long(const char *name)
{
	return name && strnlen(name, NAME_MAX_BYTES) == NAME_MAX_BYTES;
}

/* The folder of a file; NULL: unknown. */
static const char *folder_of(const struct line_table *table, const struct file *file)
{
	const char *folder = file->folder < table->n_folders ? table->folders[file->folder] : NULL;

	return is_too_long(folder) ? NULL : folder;
}

static int make_whole(const struct line_table *table, struct file *file)
{
	const char *folder = folder_of(table, file);
	const char *compiled_in = table->compiled_in;
	int n;

	if (file->name[0] == '/' || (!folder && !compiled_in))
		n = asprintf(&file->whole, "%s", file->name);
	else if (!folder)
		n = asprintf(&file->whole, "%s/%s", compiled_in, file->name);
	else if (folder[0] == '/' || !compiled_in || compiled_in[0] != '/')
		n = asprintf(&file->whole, "%s/%s", folder, file->name);
	else
		n = asprintf(&file->whole, "%s/%s/%s", compiled_in, folder, file->name);
	if (n < 0) {
		file->whole = NULL;
		return -ENOMEM;
	}
	return 0;
}

int line_table_file(struct line_table *table, uint64_t number, const char **ret)
{
	struct file *file;
	int r;

	*ret = NULL;
	if (number < table->first_number || number - table->first_number >= table->n_files)
		return 0;
	file = &table->files[number - table->first_number];
	if (!file->name || is_too_long(file->name))
		return 0;
	if (!file->whole) {
		r = make_whole(table, file);
		if (r < 0)
			return r;
	}
	*ret = file->whole;
	return 0;
}

/* ---- Lifetime ---- */

int line_table_new(const struct line_sections *sections, uint64_t offset, const char *folder, struct line_table **ret)
{
	CLEANUP(line_table_freep) struct line_table *table = NULL;
	struct header header = { .sections = sections };
	int r;

	if (offset >= sections->lines.n_bytes)
		return -EBADMSG;
	table = calloc(1, sizeof *table);
	if (!table)
		return -ENOMEM;
	if (folder && !is_too_long(folder)) {
		table->compiled_in = strdup(folder);
		if (!table->compiled_in)
			return -ENOMEM;
	}
	header.cursor.at = sections->lines.bytes + offset;
	header.cursor.end = sections->lines.bytes + sections->lines.n_bytes;
	r = read_header(table, &header);
	if (r >= 0)
		r = make_marks(table);
	if (r < 0)
		return r;
	sort_marks(table);

	*ret = TAKE(table);
	return 0;
}

void line_table_free(struct line_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->n_files; i++)
		free(table->files[i].whole);
	free(table->files);
	free(table->folders);
	free(table->marks);
	free(table->compiled_in);
	free(table);
}

void line_table_freep(struct line_table **table)
{
	line_table_free(*table);
}
