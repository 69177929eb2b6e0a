/* SPDX-License-Identifier: MIT */
/* function_rows.c - the rows of whole functions, compiled by one process for another.
 *
 * The unwinder waits about 50 µs for an answer, and each side takes some 10 µs of CPU time for it. So a question has
 * several addresses, and the rows of an answer are kept: later addresses are mostly among them. An answer has one part
 * after another, for some of the addresses, in their order, the first one always among them:
 *	number of the address in the question, bytes of the part (4 each)
 *	start, end (8 bytes each), number of rows (4)
 *	from, to, relative to the start (4 each); kind of CFA, its register, is it a signal frame, 0 (1 each); offset of
 *	the CFA (4); saved[] (2 each); an expression for the CFA and for each register that needs one:
 *	number of operations (1), and of each its code (1) and two numbers (8 each).
 * A part has the rows of the address' function. Addresses in [start, end) without a row are unknown, and requested
 * later. A part without rows means: no CFI. An address without a part is requested when it is needed.
 *
 * Invariants of an accepted answer, from any sender: parts belong to addresses of the question; rows are in order of
 * address, within [start, end), and do not overlap; the requested address has one, or there is none; each is one that
 * row.c could have made; derived fields of a row are computed here. A whole function's rows are kept only if none of
 * its code has rows already, and only up to a limit; of other parts the row of the address is kept, as if it had been
 * compiled here.
 */
#include "unwind/native/function_rows.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/util.h"
#include "unwind/native/program.h"

enum {
	MAX_ROWS = 128,            /* per part */
	MAX_KEPT_BYTES = 32 << 20, /* total of answers; a hostile file may have a row for each byte */
	MAX_SPLIT_BYTES = 64,      /* code that is split byte by byte */
};

/* ---- Compiling ---- */

struct compiled_row {
	uint64_t start, end;
	struct cfi_row row;
	struct cfi_slow slow;
	bool kept; /* slow is set */
};

struct compilation {
	struct elf_file *elf;
	const struct elf_cfi *cfi; /* NULL: rows come from libdw */
	uint64_t address;
	size_t n;
	struct compiled_row rows[MAX_ROWS];
};

static void drop(struct compilation *compilation, size_t n)
{
	for (size_t i = 0; i < n; i++)
		cfi_slow_done(&compilation->rows[i].slow);
	compilation->n -= n;
	memmove(compilation->rows, compilation->rows + n, compilation->n * sizeof compilation->rows[0]);
}

/* 1: the array is full and already covers the address. */
static int add_row(struct compilation *compilation, const struct compiled_row *row)
{
	if (compilation->n == MAX_ROWS && compilation->rows[compilation->n - 1].end > compilation->address)
		return 1;
	if (compilation->n == MAX_ROWS)
		drop(compilation, MAX_ROWS / 2);
	compilation->rows[compilation->n++] = *row;
	return 0;
}

/* Instructions that leave the function have a different row: split there. */
static int split_row(struct compilation *compilation, const struct compiled_row *whole)
{
	struct compiled_row part = *whole, next = *whole;
	int r = 0;

	if (whole->end - whole->start > MAX_SPLIT_BYTES) { /* too long: answer for this address only */
		if (compilation->address < whole->start || compilation->address >= whole->end)
			return 0;
		part.start = compilation->address;
		part.end = part.start + 1;
		cfi_forget_restored(compilation->elf, compilation->cfi, part.start, &part.row);
		return add_row(compilation, &part);
	}
	cfi_forget_restored(compilation->elf, compilation->cfi, part.start, &part.row);
	for (uint64_t address = whole->start + 1; address < whole->end && r == 0; address++) {
		next.row = whole->row;
		cfi_forget_restored(compilation->elf, compilation->cfi, address, &next.row);
		if (memcmp(&next.row, &part.row, sizeof part.row) == 0)
			continue;
		part.end = address;
		r = add_row(compilation, &part);
		part.start = address;
		part.end = whole->end;
		part.row = next.row;
	}
	return r != 0 ? r : add_row(compilation, &part);
}

static int take_row(void *data, uint64_t start, uint64_t end, const struct cfi_row *row, struct cfi_slow *slow,
		    bool kept)
{
	struct compiled_row compiled = { .start = start, .end = end, .row = *row, .kept = kept };
	int r;

	if (!kept && cfi_leaves_restored(row))
		return split_row(data, &compiled);
	if (kept)
		compiled.slow = *slow;
	r = add_row(data, &compiled);
	if (r != 0)
		cfi_slow_done(&compiled.slow);
	return r;
}

static const struct compiled_row *row_of(const struct compilation *compilation, uint64_t address)
{
	for (size_t i = 0; i < compilation->n; i++)
		if (address >= compilation->rows[i].start && address < compilation->rows[i].end)
			return &compilation->rows[i];
	return NULL;
}

/* Add a single row from libdw. @error: see cfi_row_by_libdw(). */
static int compile_by_libdw(struct compilation *compilation, struct module *module, int error)
{
	struct compiled_row found = { .start = 0 };
	int r;

	r = cfi_row_by_libdw(module, compilation->address, error, &found.row, &found.slow, &found.start, &found.end);
	if (r < 0)
		return r;
	found.kept = r > 0;
	if (compilation->address < found.start || compilation->address >= found.end ||
	    found.end - found.start > UINT32_MAX) {
		found.start = compilation->address;
		found.end = found.start + 1;
	}
	return add_row(compilation, &found);
}

static int compile(struct compilation *compilation, struct module *module)
{
	const struct program_taker taker = { take_row, compilation };
	struct elf_cfi cfi;
	int r;

	r = module_elf(module, &compilation->elf);
	if (r < 0 || elf_file_machine(compilation->elf) != MACHINE_ELF)
		return -ENOENT;
	r = elf_file_cfi(compilation->elf, compilation->address, &cfi);
	if (r >= 0) {
		compilation->cfi = &cfi;
		r = cfi.end - cfi.start > UINT32_MAX ? -EOPNOTSUPP : program_rows(&cfi, &taker);
		compilation->cfi = NULL;
	}
	if (r == -ENOMEM || row_of(compilation, compilation->address))
		return MIN(r, 0) == -ENOMEM ? r : 0;
	drop(compilation, compilation->n);
	return compile_by_libdw(compilation, module, r < 0 ? r : -EOPNOTSUPP);
}

/* ---- Writing ---- */

struct writer {
	uint8_t *at;
	const uint8_t *end;
	bool is_full;
};

static void put(struct writer *to, uint64_t number, size_t n_bytes)
{
	if ((size_t)(to->end - to->at) < n_bytes) {
		to->is_full = true;
		return;
	}
	memcpy(to->at, &number, n_bytes); /* all supported machines are little-endian */
	to->at += n_bytes;
}

static void put_expression(struct writer *to, const struct cfi_expression *expression)
{
	put(to, expression->n_ops, 1);
	for (size_t i = 0; i < expression->n_ops; i++) {
		put(to, expression->ops[i].atom, 1);
		put(to, expression->ops[i].number, 8);
		put(to, expression->ops[i].number2, 8);
	}
}

static void put_row(struct writer *to, const struct compiled_row *row, uint64_t start)
{
	put(to, row->start - start, 4);
	put(to, row->end - start, 4);
	put(to, row->row.cfa_kind, 1);
	put(to, row->row.cfa_register, 1);
	put(to, row->row.is_signal, 1);
	put(to, 0, 1);
	put(to, (uint32_t)row->row.cfa_offset, 4);
	for (unsigned i = 0; i < ROW_N_SAVED; i++)
		put(to, (uint16_t)row->row.saved[i], 2);
	if (row->row.cfa_kind == CFA_EXPRESSION)
		put_expression(to, &row->slow.cfa);
	for (unsigned i = 0; i < ROW_N_SAVED; i++)
		if (row->row.saved[i] == SAVED_EXPRESSION)
			put_expression(to, &row->slow.saved[i]);
}

static void put_head(uint8_t *to, uint64_t start, uint64_t end, uint32_t n)
{
	memcpy(to, &start, sizeof start);
	memcpy(to + 8, &end, sizeof end);
	memcpy(to + 16, &n, sizeof n);
}

enum { PART_BYTES = 8, HEAD_BYTES = 20 };

/* Write as many rows from `first` on as fit. Returns their number. */
static size_t write_rows(const struct compilation *compilation, size_t first, uint8_t *to, const uint8_t *to_end,
			 size_t *ret_bytes)
{
	struct writer writer = { to + HEAD_BYTES, to_end, false };
	uint64_t start = compilation->rows[first].start;
	size_t n = first;

	for (; n < compilation->n; n++) {
		uint8_t *before = writer.at;

		put_row(&writer, &compilation->rows[n], start);
		if (writer.is_full) {
			writer.at = before;
			break;
		}
	}
	*ret_bytes = (size_t)(writer.at - to);
	if (n > first)
		put_head(to, start, compilation->rows[n - 1].end, (uint32_t)(n - first));
	return n - first;
}

/* Write the rows around an address. Returns the number of bytes; 0: not even its own row found room; -ENOMEM. */
static int compile_part(struct compilation *compilation, struct module *module, uint64_t address, uint8_t *to,
			const uint8_t *to_end)
{
	size_t wanted, n, n_bytes = 0;
	int r;

	compilation->address = address;
	r = compile(compilation, module);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		put_head(to, address, address + 1, 0);
		return HEAD_BYTES;
	}
	wanted = (size_t)(row_of(compilation, address) - compilation->rows);
	n = write_rows(compilation, 0, to, to_end, &n_bytes);
	if (n <= wanted)
		n = write_rows(compilation, wanted, to, to_end, &n_bytes);
	return n > 0 ? (int)n_bytes : 0;
}

/* Has an earlier part covered the address? */
static bool is_covered(const uint8_t *parts, size_t n_bytes, uint64_t address)
{
	uint32_t n_part_bytes;
	uint64_t start, end;

	for (size_t at = 0; at < n_bytes; at += PART_BYTES + n_part_bytes) {
		memcpy(&n_part_bytes, parts + at + 4, sizeof n_part_bytes);
		memcpy(&start, parts + at + PART_BYTES, sizeof start);
		memcpy(&end, parts + at + PART_BYTES + 8, sizeof end);
		if (address >= start && address < end)
			return true;
	}
	return false;
}

int native_rows_compile(struct module *module, const uint64_t *addresses, size_t n, uint8_t *to, size_t *ret_bytes)
{
	CLEANUP(freep) struct compilation *compilation = malloc(sizeof *compilation);
	const uint8_t *to_end = to + NATIVE_ROWS_MAX_BYTES;
	size_t n_bytes = 0;

	if (!compilation)
		return -ENOMEM;
	compilation->cfi = NULL;
	compilation->n = 0;
	for (uint32_t i = 0; i < n && NATIVE_ROWS_MAX_BYTES - n_bytes >= PART_BYTES + HEAD_BYTES; i++) {
		uint8_t *part = to + n_bytes;
		uint32_t n_part_bytes;
		int r;

		if (is_covered(to, n_bytes, addresses[i]))
			continue;
		r = compile_part(compilation, module, addresses[i], part + PART_BYTES, to_end);
		drop(compilation, compilation->n);
		if (r < 0)
			return r;
		if (r == 0)
			break;
		n_part_bytes = (uint32_t)r;
		memcpy(part, &i, sizeof i);
		memcpy(part + 4, &n_part_bytes, sizeof n_part_bytes);
		n_bytes += PART_BYTES + n_part_bytes;
	}
	*ret_bytes = n_bytes;
	return 0;
}

void native_rows_done(struct module *module)
{
	cfi_module_done(module);
}

/* ---- Reading ---- */

static int take_expression(struct cursor *from, Dwarf_Op *ops, size_t *ret)
{
	size_t n = cursor_fixed(from, 1);

	if (n == 0 || n > ROW_MAX_OPS)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		ops[i] = (Dwarf_Op){ .atom = (uint8_t)cursor_fixed(from, 1) };
		ops[i].number = cursor_fixed(from, 8);
		ops[i].number2 = cursor_fixed(from, 8);
	}
	*ret = n;
	return from->failed ? -EBADMSG : 0;
}

/* Returns 1 if slow was set, 0 if not, -EBADMSG, -ENOMEM. Call cfi_slow_done() in all cases. */
static int take_expressions(struct cursor *from, struct cfi_row *row, struct cfi_slow *slow)
{
	Dwarf_Op ops[ROW_MAX_OPS];
	size_t n;
	int r = 0, kept = 0;

	if (row->cfa_kind == CFA_EXPRESSION) {
		r = take_expression(from, ops, &n);
		kept |= r = r < 0 ? r : row_set_cfa(row, slow, ops, n);
	}
	for (unsigned i = 0; i < ROW_N_SAVED && r >= 0; i++) {
		if (row->saved[i] != SAVED_EXPRESSION)
			continue;
		r = take_expression(from, ops, &n);
		kept |= r = r < 0 ? r : row_set_saved(row, slow, i, ops, n);
	}
	return r < 0 ? r : kept;
}

static int take_cfi_row(struct cursor *from, struct cfi_row *row, struct cfi_slow *slow)
{
	memset(row, 0, sizeof *row);
	memset(slow, 0, sizeof *slow);
	row->cfa_kind = (uint8_t)cursor_fixed(from, 1);
	row->cfa_register = (uint8_t)cursor_fixed(from, 1);
	row->is_signal = cursor_fixed(from, 1) != 0;
	(void)cursor_fixed(from, 1);
	row->cfa_offset = (int32_t)cursor_signed(from, 4);
	for (unsigned i = 0; i < ROW_N_SAVED; i++)
		row->saved[i] = (int16_t)cursor_signed(from, 2);
	if (from->failed || row->cfa_kind > CFA_EXPRESSION || row->cfa_register >= MACHINE_N_REGS)
		return -EBADMSG;
	return take_expressions(from, row, slow);
}

/* The part of an answer for one address. */
struct rows_part {
	uint64_t start, end;
	uint32_t n_rows;
	uint64_t offset; /* of the requested address */
	bool is_kept;    /* keep all rows, not only the one of the address */
	uint32_t last;   /* end of the last range */
	bool has_found;  /* the answer has the row of the address */
	uint32_t found;
};

/* A range that is not kept has row 0. */
static int take_range(struct row_pool *pool, struct cursor *from, struct rows_part *part, struct cfi_range *ret)
{
	uint64_t span = part->end - part->start;
	struct cfi_range range = { 0 };
	bool is_wanted;
	struct cfi_slow slow;
	struct cfi_row row;
	int r;

	range.from = (uint32_t)cursor_fixed(from, 4);
	range.to = (uint32_t)cursor_fixed(from, 4);
	if (from->failed || range.from < part->last || range.to <= range.from || range.to > span)
		return -EBADMSG;
	is_wanted = part->offset >= range.from && part->offset < range.to;
	r = take_cfi_row(from, &row, &slow);
	if (r < 0 || (!part->is_kept && !is_wanted)) {
		cfi_slow_done(&slow);
	} else {
		row_classify(&row);
		r = pool_add(pool, &row, &slow, r > 0, &range.row);
	}
	if (r < 0)
		return r;
	if (is_wanted) {
		part->has_found = true;
		part->found = range.row;
	}
	part->last = range.to;
	*ret = range;
	return 0;
}

/* The first function that ends after an address. */
static size_t first_ending_after(const struct cfi_module *cfi, uint64_t address)
{
	size_t low = 0, high = cfi->n_functions;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (cfi->functions[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool function_rows_find(const struct cfi_module *cfi, uint64_t address, uint32_t *ret)
{
	size_t at = first_ending_after(cfi, address);
	const struct cfi_function *function;

	if (at == cfi->n_functions || address < cfi->functions[at].start)
		return false;
	function = &cfi->functions[at];
	for (uint32_t i = 0; i < function->n; i++) {
		const struct cfi_range *range = &cfi->ranges[function->first + i];

		if (address - function->start < range->from)
			return false;
		if (address - function->start < range->to) {
			*ret = range->row;
			return true;
		}
	}
	return false;
}

static int take_head(const struct row_pool *pool, const struct cfi_module *cfi, struct cursor *from, uint64_t address,
		     struct rows_part *part)
{
	size_t n_bytes = cursor_left(from), at;

	part->start = cursor_fixed(from, 8);
	part->end = cursor_fixed(from, 8);
	part->n_rows = (uint32_t)cursor_fixed(from, 4);
	if (from->failed || part->n_rows > MAX_ROWS || part->end <= part->start ||
	    part->end - part->start > UINT32_MAX || address < part->start || address >= part->end)
		return -EBADMSG;
	part->offset = address - part->start;
	at = first_ending_after(cfi, part->start);
	part->is_kept = (at == cfi->n_functions || cfi->functions[at].start >= part->end) &&
			pool->n_kept_bytes + n_bytes <= MAX_KEPT_BYTES;
	return 0;
}

/* Append ranges after those of the module; store_rows() adds them once all were read. */
static int take_rows(struct row_pool *pool, struct cfi_module *cfi, struct cursor *from, uint64_t address,
		     struct rows_part *part)
{
	int r;

	r = take_head(pool, cfi, from, address, part);
	for (uint32_t i = 0; r >= 0 && i < part->n_rows; i++) {
		r = grow(&cfi->ranges, cfi->n_ranges + i, &cfi->ranges_allocated, sizeof *cfi->ranges);
		if (r >= 0)
			r = take_range(pool, from, part, &cfi->ranges[cfi->n_ranges + i]);
	}
	if (r < 0)
		return r;
	return cursor_left(from) == 0 && part->has_found == (part->n_rows > 0) ? 0 : -EBADMSG;
}

static int store_rows(struct row_pool *pool, struct cfi_module *cfi, const struct rows_part *part, size_t n_bytes)
{
	size_t at = first_ending_after(cfi, part->start);
	int r;

	r = grow(&cfi->functions, cfi->n_functions, &cfi->functions_allocated, sizeof *cfi->functions);
	if (r < 0)
		return r;
	memmove(cfi->functions + at + 1, cfi->functions + at, (cfi->n_functions - at) * sizeof *cfi->functions);
	cfi->functions[at] = (struct cfi_function){ part->start, part->end, (uint32_t)cfi->n_ranges, part->n_rows };
	cfi->n_functions++;
	cfi->n_ranges += part->n_rows;
	pool->n_kept_bytes += n_bytes;
	return 0;
}

/* Take the rows around an address. @ret: its row, ROW_NONE: it has no CFI. */
static int take_part(struct row_pool *pool, struct cfi_module *cfi, struct cursor *from, uint64_t address,
		     uint32_t *ret)
{
	struct rows_part part = { .n_rows = 0 };
	size_t n_bytes = cursor_left(from);
	int r;

	r = take_rows(pool, cfi, from, address, &part);
	if (r >= 0 && part.has_found && part.is_kept)
		r = store_rows(pool, cfi, &part, n_bytes);
	*ret = part.has_found ? part.found : ROW_NONE;
	return r < 0 || (part.has_found && part.is_kept) ? r : id_map_add(&cfi->pcs, address + 1, *ret);
}

/* @ret: row of the first address. */
static int take_answer(struct row_pool *pool, struct cfi_module *cfi, struct cursor *from, const uint64_t *addresses,
		       size_t n, uint32_t *ret)
{
	uint32_t first = 0, number, n_bytes, row;
	int r = 0;

	do {
		struct cursor part = { .at = from->at };

		number = (uint32_t)cursor_fixed(from, 4);
		n_bytes = (uint32_t)cursor_fixed(from, 4);
		if (from->failed || number < first || number >= n || (first == 0 && number != 0) ||
		    n_bytes > cursor_left(from))
			return -EBADMSG;
		part.at = from->at;
		part.end = from->at += n_bytes;
		/* Rows that an earlier part brought stay. */
		if (number == 0 || !function_rows_find(cfi, addresses[number], &row))
			r = take_part(pool, cfi, &part, addresses[number], &row);
		if (number == 0 && r >= 0)
			*ret = row;
		first = number + 1;
	} while (r >= 0 && cursor_left(from) > 0);
	return r;
}

int function_rows_ask(struct row_pool *pool, const struct native_row_source *source, struct module *module,
		      struct cfi_module *cfi, const uint64_t *addresses, size_t n, uint32_t *ret)
{
	struct cursor from = { .failed = false };
	uint32_t row = ROW_NONE;
	const uint8_t *bytes;
	size_t n_bytes;
	int r;

	r = source->ask(source->data, module, addresses, n, &bytes, &n_bytes);
	if (r >= 0) {
		from.at = bytes;
		from.end = bytes + n_bytes;
		r = take_answer(pool, cfi, &from, addresses, n, &row);
		if (r == -EBADMSG)
			source->refuse(source->data, module);
	}
	if (r == -ENOMEM)
		return r;
	*ret = row;
	if (r >= 0 || id_map_find(&cfi->pcs, addresses[0] + 1) || function_rows_find(cfi, addresses[0], &row))
		return 0;
	return id_map_add(&cfi->pcs, addresses[0] + 1, ROW_NONE);
}
