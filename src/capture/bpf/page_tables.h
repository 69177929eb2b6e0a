/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* page_tables.h - reads a program's memory through its page tables.
 *
 * The kernel maps all memory in one place, its direct map. By following a program's page tables, a BPF program finds
 * the data of an address there, in a tenth of the helper's time.
 *
 * Interrupts must be off, so that no table is freed meanwhile: the kernel frees tables after an answer of all
 * processors that may follow them, or after a grace period, which this processor delays. A page may be moved all the
 * same, and then its data belong to another. So the entry is read again afterwards. For pages missing in the direct map
 * (released or hidden memory) the kernel lets such a program read zeros.
 *
 * x86-64 alone, four or five levels. Source: Documentation/arch/x86/x86_64/mm.rst,
 * arch/x86/include/asm/pgtable_types.h and mm/gup.c, gup_fast(), Linux 6.18; Intel's Software Developer's Manual,
 * volume 3, "4-level paging and 5-level paging".
 */
#ifndef PROBING_CAPTURE_BPF_PAGE_TABLES_H
#define PROBING_CAPTURE_BPF_PAGE_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "src/capture/direct_map.h"

#ifdef __bpf__
#include <bpf/bpf_helpers.h>

#include "src/capture/bpf/placeholders.h"

/* Makes a pointer that may be read through, of a type by its number. Its call is no helper's: the loader replaces the number. */
static void *(*const rdonly_cast)(const void *from, uint32_t type) = (void *)PLACEHOLDER_RDONLY_CAST;

/* A number of the running kernel. A move of its own, because the compiler must not compute with the placeholder. */
#define KERNEL_NUMBER(placeholder)                                                                                     \
	({                                                                                                             \
		uint64_t number_;                                                                                      \
		asm("%0 = %1" : "=r"(number_) : "i"(placeholder));                                                     \
		number_;                                                                                               \
	})

/*
 * Read a word at a kernel address; zeros if nothing is mapped there. As a separate instruction: the verifier rejects
 * one load that reads kernel memory on one path and a map on another, which the compiler would emit.
 */
#define LOAD_KERNEL(size, address)                                                                                     \
	({                                                                                                             \
		const void *memory_ = rdonly_cast((const void *)(address),                                             \
						  (uint32_t)KERNEL_NUMBER(PLACEHOLDER_WORD_TYPE));                     \
		uint64_t loaded_;                                                                                      \
		asm volatile("%0 = *(" size " *)(%1 + 0)" : "=r"(loaded_) : "r"(memory_));                             \
		loaded_;                                                                                               \
	})

static __always_inline uint64_t kernel_word(uint64_t address)
{
	return LOAD_KERNEL("u64", address);
}

static __always_inline uint32_t kernel_half(uint64_t address)
{
	return (uint32_t)LOAD_KERNEL("u32", address);
}

static __always_inline uint8_t kernel_byte(uint64_t address)
{
	return (uint8_t)LOAD_KERNEL("u8", address);
}

/* The running thread's top-level page table; 0: a kernel thread has none. */
static __always_inline uint64_t own_tables(void)
{
	uint64_t mm = kernel_word(bpf_get_current_task() + KERNEL_NUMBER(PLACEHOLDER_TASK_MM));

	return mm ? kernel_word(mm + KERNEL_NUMBER(PLACEHOLDER_MM_PGD)) : 0;
}
#endif /* a test defines these functions itself */

enum {
	TABLE_PAGE_BYTES = 4096,
	TABLE_ENTRIES_MASK = 511,
	/* Bits of a page-table entry. */
	TABLE_PRESENT = 1 << 0,
	TABLE_USER = 1 << 2,
	TABLE_LARGE = 1 << 7, /* at levels 3 and 2: a page of 1 GiB or 2 MiB */
	/* The lowest address bit that each level translates. */
	TABLE_SHIFT_1 = 12,
	TABLE_SHIFT_2 = 21,
	TABLE_SHIFT_3 = 30,
	TABLE_SHIFT_4 = 39,
	TABLE_SHIFT_5 = 48,
};

#define TABLE_ADDRESS_MASK 0x000ffffffffff000ull

/* Where the direct map has bytes of the program, and the page-table entry that says so. */
struct place {
	uint64_t address; /* 0: not found */
	uint64_t entry_address, entry;
};

/* Where the direct map has the memory that an entry points to; 0: outside the direct map. */
static __always_inline uint64_t pointed_at(const volatile struct direct_map *map, uint64_t entry, uint32_t shift)
{
	uint64_t physical = entry & TABLE_ADDRESS_MASK & ~((1ull << shift) - 1);

	return (entry & TABLE_PRESENT) && physical < map->end ? map->base + physical : 0;
}

static __always_inline uint64_t entry_address(uint64_t table, uint64_t address, uint32_t shift)
{
	return table + (address >> shift & TABLE_ENTRIES_MASK) * sizeof(uint64_t);
}

/* Read the entry of one level for an address. */
static __always_inline void look_up(uint64_t table, uint64_t address, uint32_t shift, struct place *place)
{
	place->entry_address = entry_address(table, address, shift);
	place->entry = kernel_word(place->entry_address);
}

static __always_inline uint64_t table_below(const volatile struct direct_map *map, uint64_t table, uint64_t address,
					    uint32_t shift)
{
	return pointed_at(map, kernel_word(entry_address(table, address, shift)), TABLE_SHIFT_1);
}

/* Find the address in the page that an entry maps. False: user space may not access the page. */
static __always_inline bool place_in_page(const volatile struct direct_map *map, uint64_t address, uint32_t shift,
					  struct place *place)
{
	uint64_t page = pointed_at(map, place->entry, shift);

	if (page == 0 || (place->entry & TABLE_USER) == 0)
		return false;
	place->address = page + (address & ((1ull << shift) - 1));
	return true;
}

/*
 * find_place - find n_bytes of the program in the direct map.
 * @tables: see own_tables(); 0: none.
 * False: the bytes cross a page, are not word-aligned, or are not mapped.
 */
static __always_inline bool find_place(const volatile struct direct_map *map, uint64_t tables, uint64_t address,
				       uint32_t n_bytes, struct place *ret)
{
	uint64_t table = tables;

	if (table == 0 || (address & 7) != 0 || (address & (TABLE_PAGE_BYTES - 1)) + n_bytes > TABLE_PAGE_BYTES)
		return false;
	if (address >> (map->n_levels == 5 ? 56 : 47) != 0) /* a kernel or invalid address */
		return false;
	if (map->n_levels == 5)
		table = table_below(map, table, address, TABLE_SHIFT_5);
	if (table != 0)
		table = table_below(map, table, address, TABLE_SHIFT_4);
	if (table == 0)
		return false;
	for (uint32_t shift = TABLE_SHIFT_3; shift > TABLE_SHIFT_1; shift -= TABLE_SHIFT_2 - TABLE_SHIFT_1) {
		look_up(table, address, shift, ret);
		if (ret->entry & TABLE_LARGE)
			return place_in_page(map, address, shift, ret);
		table = pointed_at(map, ret->entry, TABLE_SHIFT_1);
		if (table == 0)
			return false;
	}
	look_up(table, address, TABLE_SHIFT_1, ret);
	return place_in_page(map, address, TABLE_SHIFT_1, ret);
}

/*
 * Whether the entry still maps the page, so that the data read belong to the program. Ignores the bits that the
 * processor sets in an entry.
 */
static __always_inline bool is_in_place(const struct place *place)
{
	return ((kernel_word(place->entry_address) ^ place->entry) &
		(TABLE_ADDRESS_MASK | TABLE_PRESENT | TABLE_USER)) == 0;
}

#endif
