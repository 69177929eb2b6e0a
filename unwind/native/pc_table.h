/* SPDX-License-Identifier: MIT */
/* pc_table.h - the rows of one process by PC. Private to this folder.
 *
 * An open-addressing table of 32-byte slots, at most half full, never with the same PC twice. The
 * rule of a plain frame is in the slot itself. So a warm frame costs one probe and no second
 * look-up, and mostly not even that: a slot remembers its last caller. It also remembers the size
 * of its last frame, so that the unwinder can guess a whole stack without reading it.
 */
#ifndef PROBING_PC_TABLE_H
#define PROBING_PC_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/native/row.h"

/*
 * A plain frame in 32 bits; 0: the row decides. CFA = SP or FP + offset, the
 * return address right below it, FP untouched or at a distance from the CFA.
 */
enum {
	PLAIN_HOLDS = 1u << 30,
	PLAIN_BASE_IS_FP = 1u << 29,
	PLAIN_OFFSET_SHIFT = 16, /* CFA offset in words, 13 bits */
	PLAIN_OFFSET_MAX = 0x1fff,
	PLAIN_SAVED_FP = 0xffff, /* as in saved[] */
};

/* Of the CFA from its base, in bytes. */
static inline uint32_t plain_cfa_offset(uint32_t plain)
{
	return (plain >> PLAIN_OFFSET_SHIFT & PLAIN_OFFSET_MAX) * (uint32_t)sizeof(uint64_t);
}

struct pc_slot {
	_Alignas(32) uint64_t pc; /* 0: free */
	uint32_t row, plain;
	uint32_t caller; /* index of the slot of the last caller; may be any other by now */
	uint32_t code;   /* hash of the code there, for search.c; 0: not needed */
	uint32_t bytes;  /* of the last frame there; 0: not known */
};

struct pc_table {
	struct pc_slot *slots;
	size_t n, n_slots; /* n_slots is 0 or a power of two */
	unsigned shift;    /* 64 - log2(n_slots) */
};

/* NULL: not there. Valid until the next addition; its row may be changed. */
static inline struct pc_slot *pc_table_find(const struct pc_table *table, uint64_t pc)
{
	size_t mask = table->n_slots - 1;

	if (table->n_slots == 0 || pc == 0)
		return NULL;
	for (size_t i = pc * 0x9e3779b97f4a7c15u >> table->shift;; i = (i + 1) & mask) {
		if (table->slots[i].pc == pc)
			return &table->slots[i];
		if (table->slots[i].pc == 0)
			return NULL;
	}
}

/* The PC must not be there yet. -ENOMEM, -EINVAL for 0. */
int pc_table_add(struct pc_table *table, uint64_t pc, uint32_t row, uint32_t plain);
void pc_table_clear(struct pc_table *table);
void pc_table_done(struct pc_table *table);

/* A row's rule in 32 bits, 0 where it does not fit. */
uint32_t pc_table_plain(const struct cfi_row *row);

#endif
