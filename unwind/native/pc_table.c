/* SPDX-License-Identifier: MIT */
/* pc_table.c - see pc_table.h. */
#include "unwind/native/pc_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 512 };

static void insert(struct pc_table *table, const struct pc_slot *slot)
{
	size_t mask = table->n_slots - 1, i = slot->pc * 0x9e3779b97f4a7c15u >> table->shift;

	while (table->slots[i].pc != 0)
		i = (i + 1) & mask;
	table->slots[i] = *slot;
	table->n++;
}

static int enlarge(struct pc_table *table)
{
	struct pc_table larger = {
		.n_slots = table->n_slots ? 2 * table->n_slots : FIRST_SLOTS,
	};

	larger.shift = (unsigned)__builtin_clzll(larger.n_slots) + 1;
	larger.slots = aligned_alloc(_Alignof(struct pc_slot), larger.n_slots * sizeof *larger.slots);
	if (!larger.slots)
		return -ENOMEM;
	memset(larger.slots, 0, larger.n_slots * sizeof *larger.slots);
	for (size_t i = 0; i < table->n_slots; i++)
		if (table->slots[i].pc != 0)
			insert(&larger, &table->slots[i]);
	free(table->slots);
	*table = larger;
	return 0;
}

int pc_table_add(struct pc_table *table, uint64_t pc, uint32_t row, uint32_t plain)
{
	const struct pc_slot slot = {
		.pc = pc,
		.row = row,
		.plain = plain,
		.bytes = plain & PLAIN_BASE_IS_FP ? 0 : plain_cfa_offset(plain),
	};

	if (pc == 0)
		return -EINVAL;
	if (2 * (table->n + 1) > table->n_slots) {
		int r = enlarge(table);

		if (r < 0)
			return r;
	}
	insert(table, &slot);
	return 0;
}

void pc_table_clear(struct pc_table *table)
{
	if (table->n_slots > 0)
		memset(table->slots, 0, table->n_slots * sizeof *table->slots);
	table->n = 0;
}

void pc_table_done(struct pc_table *table)
{
	free(table->slots);
	memset(table, 0, sizeof *table);
}

uint32_t pc_table_plain(const struct cfi_row *row)
{
	const int32_t word = sizeof(uint64_t);
	uint16_t saved_fp = (uint16_t)row->saved[row_saved_index(MACHINE_REG_FP)];

	if (!row->is_plain || row->is_guess || row->saved[0] != -word || row->cfa_offset < word ||
	    row->cfa_offset % word != 0 || row->cfa_offset / word > PLAIN_OFFSET_MAX)
		return 0;
	return PLAIN_HOLDS | (row->cfa_register == MACHINE_REG_FP ? PLAIN_BASE_IS_FP : 0) |
	       (uint32_t)(row->cfa_offset / word) << PLAIN_OFFSET_SHIFT | saved_fp;
}
