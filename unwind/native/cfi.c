/* SPDX-License-Identifier: MIT */
/* cfi.c - rows of a module, compiled one PC at a time.
 *
 * program.c runs programs of .eh_frame; libdw handles its rare cases, and
 * .debug_frame.
 *
 * Whole tables are never compiled: a process with libtorch mapped has millions
 * of rows and meets a few thousand PCs. Equal rows are shared through the
 * pool, so that the rows in use stay in the cache.
 */
#include "unwind/native/cfi.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/native/function_rows.h"
#include "unwind/native/program.h"

int row_pool_init(struct row_pool *pool)
{
	int r;

	memset(pool, 0, sizeof *pool);
	r = grow(&pool->rows, 0, &pool->allocated, sizeof *pool->rows);
	if (r < 0)
		return r;
	memset(&pool->rows[ROW_NONE], 0, sizeof pool->rows[0]);
	pool->n = 1;
	pool->n_slow = 1;
	return 0;
}

void row_pool_done(struct row_pool *pool)
{
	for (size_t i = 1; i < pool->n_slow; i++)
		cfi_slow_done(&pool->slow[i]);
	free(pool->slow);
	free(pool->rows);
	id_map_done(&pool->index);
	memset(pool, 0, sizeof *pool);
}

static uint64_t row_hash(const struct cfi_row *row)
{
	uint64_t words[sizeof *row / sizeof(uint64_t)], hash = 0;

	memcpy(words, row, sizeof words);
	for (unsigned i = 0; i < N_ELEMENTS(words); i++)
		hash = mix64(hash ^ words[i]);
	return hash | 1;
}

static int pool_append(struct row_pool *pool, const struct cfi_row *row, uint32_t *ret)
{
	int r;

	r = grow(&pool->rows, pool->n, &pool->allocated, sizeof *pool->rows);
	if (r < 0)
		return r;
	pool->rows[pool->n] = *row;
	*ret = (uint32_t)pool->n++;
	return 0;
}

/* Add a row without expressions, or find an equal one. */
int row_pool_share(struct row_pool *pool, const struct cfi_row *row, uint32_t *ret)
{
	uint64_t hash = row_hash(row);
	const struct id_slot *slot = id_map_find(&pool->index, hash);
	int r;

	if (slot && memcmp(&pool->rows[slot->id], row, sizeof *row) == 0) {
		*ret = slot->id;
		return 0;
	}
	r = pool_append(pool, row, ret);
	if (r < 0 || slot)
		return r;
	return id_map_add(&pool->index, hash, *ret);
}

/* Takes ownership of slow on success. */
static int pool_add_slow(struct row_pool *pool, struct cfi_row *row, struct cfi_slow *slow, uint32_t *ret)
{
	int r;

	r = grow(&pool->slow, pool->n_slow, &pool->slow_allocated, sizeof *pool->slow);
	if (r < 0)
		return r;
	row->slow = (uint32_t)pool->n_slow;
	r = pool_append(pool, row, ret);
	if (r < 0)
		return r;
	pool->slow[pool->n_slow++] = *slow;
	return 0;
}

int pool_add(struct row_pool *pool, struct cfi_row *row, struct cfi_slow *slow, bool kept, uint32_t *ret)
{
	int r;

	pool->n_compiled++;
	if (!kept)
		return row_pool_share(pool, row, ret);
	r = pool_add_slow(pool, row, slow, ret);
	if (r < 0)
		cfi_slow_done(slow);
	return r;
}

/* Compute the row with libdw. -ENOENT: libdw has no row either. */
static int ask_libdw(Dwarf_CFI *cfi, uint64_t address, struct cfi_row *row, struct cfi_slow *slow, uint64_t *ret_start,
		     uint64_t *ret_end)
{
	CLEANUP(freep) Dwarf_Frame *frame = NULL;
	Dwarf_Addr start, end;
	int r;

	if (dwarf_cfi_addrframe(cfi, address, &frame) != 0) {
		frame = NULL;
		return -ENOENT;
	}
	if (dwarf_frame_info(frame, &start, &end, NULL) < 0)
		return -ENOENT;
	r = row_compile(frame, row, slow);
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	*ret_start = start;
	*ret_end = end;
	return r;
}

bool cfi_leaves_restored(const struct cfi_row *row)
{
	if (row->cfa_kind != CFA_REGISTER || row->cfa_register != MACHINE_REG_SP)
		return false;
	for (unsigned i = 1; i < ROW_N_SAVED; i++)
		if (row->saved[i] >= SAVED_FIRST_OFFSET && row->saved[i] < -row->cfa_offset)
			return true;
	return false;
}

/*
 * Compilers emit no rule for a popped register. At the function's end the old rule stays and points below the stack
 * pointer, where a signal handler may overwrite the value. An instruction that leaves the function has restored all
 * registers.
 */
void cfi_forget_restored(struct elf_file *elf, const struct elf_cfi *cfi, uint64_t address, struct cfi_row *row)
{
	enum { LONGEST_INSTRUCTION = 16 };
	size_t n_bytes = (size_t)MIN(cfi->end - address, (uint64_t)LONGEST_INSTRUCTION);
	const void *code;

	if (!cfi_leaves_restored(row) || elf_file_data(elf, address, n_bytes, &code) < 0 ||
	    !machine_is_leaving(code, n_bytes, address, cfi->start, cfi->end))
		return;
	for (unsigned i = 1; i < ROW_N_SAVED; i++)
		if (row->saved[i] >= SAVED_FIRST_OFFSET && row->saved[i] < -row->cfa_offset)
			row->saved[i] = SAVED_SAME;
	row_classify(row);
}

/*
 * Compute the row without libdw, and without allocation for common rows. -ENOENT: no function with CFI is there. Other
 * errors except -ENOMEM: try libdw.
 */
static int run_program(struct row_pool *pool, struct module *module, uint64_t address, uint32_t *ret)
{
	struct elf_file *elf;
	struct elf_cfi cfi;
	struct cfi_slow slow;
	struct cfi_row row;
	int r;

	r = module_elf(module, &elf);
	if (r < 0 || elf_file_machine(elf) != MACHINE_ELF)
		return -ENOENT;
	r = elf_file_cfi(elf, address, &cfi);
	if (r >= 0)
		r = program_row(&cfi, address, &row, &slow);
	if (r >= 0)
		cfi_forget_restored(elf, &cfi, address, &row);
	return r < 0 ? r : pool_add(pool, &row, &slow, r > 0, ret);
}

static int module_cfi(struct module *module, struct cfi_module **ret)
{
	struct cfi_module *cfi = module->cfi;

	if (!cfi) {
		cfi = calloc(1, sizeof *cfi);
		if (!cfi)
			return -ENOMEM;
		module->cfi = cfi;
	}
	*ret = cfi;
	return 0;
}

static Dwarf_CFI *eh_frame(struct module *module, struct cfi_module *cfi)
{
	struct elf_file *elf;

	if (!cfi->eh_frame_tried) {
		cfi->eh_frame_tried = true;
		if (module_elf(module, &elf) >= 0 && elf_file_machine(elf) == MACHINE_ELF)
			cfi->eh_frame = dwarf_getcfi_elf(elf_file_elf(elf));
	}
	return cfi->eh_frame;
}

enum { MAX_UNPACKED_BYTES = 16 << 20 };

/*
 * Hand-written assembly and some languages only have .debug_frame. libdw decompresses all debug information for it,
 * here, between two samples: skip files where that is large.
 */
static Dwarf_CFI *debug_frame(struct module *module, struct cfi_module *cfi)
{
	struct elf_file *elf;

	if (cfi->debug_frame_tried)
		return cfi->debug_frame;
	cfi->debug_frame_tried = true;
	if (module_elf(module, &elf) < 0 || elf_file_machine(elf) != MACHINE_ELF ||
	    elf_file_packed_bytes(elf) > MAX_UNPACKED_BYTES)
		return NULL;
	cfi->dwarf = dwarf_begin_elf(elf_file_elf(elf), DWARF_C_READ, NULL);
	if (cfi->dwarf)
		cfi->debug_frame = dwarf_getcfi(cfi->dwarf);
	return cfi->debug_frame;
}

int cfi_row_by_libdw(struct module *module, uint64_t address, int error, struct cfi_row *row, struct cfi_slow *slow,
		     uint64_t *ret_start, uint64_t *ret_end)
{
	struct cfi_module *cfi;
	int r;

	r = module_cfi(module, &cfi);
	if (r < 0)
		return r;
	r = -ENOENT;
	if (error != -ENOENT && eh_frame(module, cfi))
		r = ask_libdw(cfi->eh_frame, address, row, slow, ret_start, ret_end);
	if (r == -ENOENT && debug_frame(module, cfi))
		r = ask_libdw(cfi->debug_frame, address, row, slow, ret_start, ret_end);
	return r;
}

/* Compile the row in this process. -ENOENT: the address has no CFI. */
static int compile(struct row_pool *pool, struct module *module, uint64_t address, uint32_t *ret)
{
	struct cfi_slow slow;
	struct cfi_row row;
	uint64_t start, end;
	int r;

	r = run_program(pool, module, address, ret);
	if (r >= 0 || r == -ENOMEM)
		return r;
	r = cfi_row_by_libdw(module, address, r, &row, &slow, &start, &end);
	return r < 0 ? r : pool_add(pool, &row, &slow, r > 0, ret);
}

bool cfi_row_find(const struct module *module, uint64_t address, uint32_t *ret)
{
	const struct cfi_module *cfi = module->cfi;
	const struct id_slot *slot = cfi ? id_map_find(&cfi->pcs, address + 1) : NULL;

	if (!slot)
		return cfi && function_rows_find(cfi, address, ret);
	*ret = slot->id;
	return true;
}

int cfi_rows_ask(struct row_pool *pool, const struct native_row_source *source, struct module *module,
		 const uint64_t *addresses, size_t n, uint32_t *ret)
{
	struct cfi_module *cfi;
	int r;

	r = module_cfi(module, &cfi);
	return r < 0 ? r : function_rows_ask(pool, source, module, cfi, addresses, n, ret);
}

int cfi_row_at(struct row_pool *pool, const struct native_row_source *source, struct module *module, uint64_t address,
	       uint32_t *ret)
{
	struct cfi_module *cfi;
	uint32_t row = ROW_NONE;
	int r;

	if (cfi_row_find(module, address, ret))
		return 0;
	if (source)
		return cfi_rows_ask(pool, source, module, &address, 1, ret);
	r = module_cfi(module, &cfi);
	if (r < 0)
		return r;
	r = compile(pool, module, address, &row);
	if (r < 0 && r != -ENOENT)
		return r;
	r = id_map_add(&cfi->pcs, address + 1, row);
	if (r < 0)
		return r;
	*ret = row;
	return 0;
}

void cfi_module_done(struct module *module)
{
	struct cfi_module *cfi = module->cfi;

	if (!cfi)
		return;
	module->cfi = NULL;
	id_map_done(&cfi->pcs);
	free(cfi->functions);
	free(cfi->ranges);
	dwarf_cfi_end(cfi->eh_frame);
	dwarf_end(cfi->dwarf);
	free(cfi);
}
