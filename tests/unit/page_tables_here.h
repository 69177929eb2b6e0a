/* SPDX-License-Identifier: MIT */
/* page_tables_here.h - x86-64's page tables, and the direct map that they are read in, in a test's own memory.
 *
 * Physical memory begins with the tables, the uppermost first; what lies behind them is the includer's. Nothing else is in the
 * direct map: to read beside it is a mistake of whoever does.
 */
#ifndef PROBING_TESTS_PAGE_TABLES_HERE_H
#define PROBING_TESTS_PAGE_TABLES_HERE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define DIRECT_MAP_BASE 0xffff888000000000ull

enum { PAGE_TABLES_MAX = 4096, PAGE_TABLE_ENTRIES = 512, PAGE_TABLE_BYTES = 4096 };

/* The first physical address that is no table's. */
#define PAGE_TABLES_END ((uint64_t)PAGE_TABLES_MAX * PAGE_TABLE_BYTES)

static struct page_tables {
	size_t n;
	uint64_t tables[PAGE_TABLES_MAX][PAGE_TABLE_ENTRIES];
	size_t n_read; /* words that were asked for */
} page_tables;

/* The includer's: a word of memory behind the tables, on one page, but maybe not a whole one: an interpreter may say
 * anything of where it has a field. */
static uint64_t physical_word(uint64_t physical);

/* Something happens before a word is read. */
static void (*before_word)(void);

static uint64_t read_word(uint64_t address)
{
	uint64_t physical = address - DIRECT_MAP_BASE;

	page_tables.n_read++;
	if (before_word)
		before_word();
	if (address < DIRECT_MAP_BASE || address % PAGE_TABLE_BYTES > PAGE_TABLE_BYTES - sizeof(uint64_t))
		abort();
	if (physical >= PAGE_TABLES_END)
		return physical_word(physical);
	if (physical % sizeof(uint64_t) != 0)
		abort();
	return page_tables.tables[physical / PAGE_TABLE_BYTES][physical % PAGE_TABLE_BYTES / sizeof(uint64_t)];
}

/* The last bytes of a page: a word that ends with them. */
static uint64_t read_end(uint64_t address, uint32_t n_bytes)
{
	uint64_t last = (address & ~(uint64_t)(PAGE_TABLE_BYTES - 1)) + PAGE_TABLE_BYTES - sizeof(uint64_t);

	if (address % PAGE_TABLE_BYTES > PAGE_TABLE_BYTES - n_bytes)
		abort();
	return address <= last ? read_word(address) : read_word(last) >> (address - last) * 8;
}

static uint64_t kernel_word(uint64_t address)
{
	return read_word(address);
}

__attribute__((unused)) static uint32_t kernel_half(uint64_t address)
{
	return (uint32_t)read_end(address, sizeof(uint32_t));
}

__attribute__((unused)) static uint8_t kernel_byte(uint64_t address)
{
	return (uint8_t)read_end(address, sizeof(uint8_t));
}

#include "src/capture/bpf/page_tables.h"

static inline void page_tables_begin(void)
{
	memset(page_tables.tables, 0, MAX(page_tables.n, (size_t)1) * sizeof page_tables.tables[0]);
	page_tables.n = 1;
}

/* The entry of a level, 1 to 3, for an address; creates missing tables above it. */
static inline uint64_t *page_tables_entry(uint64_t address, unsigned n_levels, unsigned level)
{
	uint64_t *table = page_tables.tables[0];

	for (unsigned at = n_levels;; at--) {
		uint64_t *entry = &table[address >> (12 + 9 * (at - 1)) & (PAGE_TABLE_ENTRIES - 1)];

		if (at == level)
			return entry;
		if (*entry == 0) {
			if (page_tables.n == PAGE_TABLES_MAX)
				abort();
			memset(page_tables.tables[page_tables.n], 0, sizeof page_tables.tables[0]);
			*entry = page_tables.n++ * PAGE_TABLE_BYTES | TABLE_PRESENT | TABLE_USER;
		}
		table = page_tables.tables[(*entry & TABLE_ADDRESS_MASK) / PAGE_TABLE_BYTES];
	}
}

#endif
