/* SPDX-License-Identifier: MIT */
/* fuzz_cache.c - a file of the cache of names, which somebody may have changed: its head, and all tables in it.
 *
 * An input is such a file. Its size, checksum and format are set right, and its own key is taken for the one that is
 * wanted, so that the rest of it is read. Each table is then asked for all that it says it has.
 *
 * Corpus: make_cache_corpus.py.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/cache_entry.h"
#include "symbolize/effort.h"
#include "symbolize/lines.h"
#include "symbolize/method_tables.h"
#include "symbolize/internal_functions.h"
#include "symbolize/symtab.h"
#include "symbolize/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAX_ASKED = 256 };

static void read_symbols(const struct cache_entry *entry)
{
	const struct cache_bytes *symbols = &entry->parts[CACHE_SYMBOLS], *strings = &entry->parts[CACHE_STRINGS];
	CLEANUP(symtab_freep) struct symtab *symtab = NULL;

	if (!symbols->bytes || symtab_restore(symbols->bytes, symbols->n / sizeof(struct cache_symbol), strings->bytes,
					      strings->n, &symtab) < 0)
		return;
	for (size_t i = 0; i < MIN(symtab->n_entries, (size_t)MAX_ASKED); i++) {
		const struct symtab_entry *found = symtab_find(symtab, symtab->entries[i].address);

		if (found && strlen(found->name) == SIZE_MAX)
			abort();
		found = symtab_find(symtab, symtab->entries[i].parent);
		if (found && strlen(found->name) == SIZE_MAX)
			abort();
	}
}

static void read_methods(const struct cache_entry *entry)
{
	const struct cache_bytes *methods = &entry->parts[CACHE_METHODS], *strings = &entry->parts[CACHE_STRINGS];
	CLEANUP(method_tables_freep) struct method_tables *tables = NULL;
	const struct method *method;

	if (!methods->bytes || method_tables_restore(methods->bytes, methods->n / sizeof(struct cache_method),
						     strings->bytes, strings->n, &tables) < 0)
		return;
	for (size_t i = 0; i < MAX_ASKED && (method = method_tables_nth(tables, i)) != NULL; i++) {
		CLEANUP(freep) char *name = NULL;

		if (method_tables_find(tables, method->address) != method || method_format(method, &name) < 0)
			abort();
	}
}

static void read_plumbing(const struct cache_entry *entry)
{
	const struct cache_bytes *starts = &entry->parts[CACHE_INTERNAL];
	CLEANUP(internal_functions_freep) struct internal_functions *internal = NULL;
	const uint64_t *all = starts->bytes;

	if (!all || internal_functions_restore(all, starts->n / sizeof *all, &internal) < 0)
		return;
	for (size_t i = 0; i < starts->n / sizeof *all; i++)
		if (!internal_functions_holds(internal, all[i]))
			abort();
}

static void read_lines(const struct cache_entry *entry)
{
	const struct cache_bytes *image = &entry->parts[CACHE_IMAGE], *units = &entry->parts[CACHE_UNITS],
				 *ranges = &entry->parts[CACHE_RANGES];
	const struct debug_index index = { units->bytes, ranges->bytes, units->n / sizeof(uint64_t),
					   ranges->n / sizeof(struct cache_range) };
	CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;
	CLEANUP(debug_lines_freep) struct debug_lines *lines = NULL;
	struct debug_frame frames[8];

	if (!image->bytes || unpacked_restore(image->bytes, image->n, &unpacked) < 0 ||
	    debug_lines_new(unpacked_dwarf(unpacked), 0, "/nonexistent/fuzz.so",
			    units->bytes && ranges->bytes ? &index : NULL, &lines) < 0)
		return;
	for (size_t i = 0; i < MIN(index.n_ranges, (size_t)MAX_ASKED); i++)
		for (uint64_t n = 0; n < 4; n++)
			(void)debug_lines_find(lines, index.ranges[i].start + n * 3, frames, N_ELEMENTS(frames));
	for (uint64_t at = 0x1000; at < 0x1100; at += 3)
		(void)debug_lines_find(lines, at, frames, N_ELEMENTS(frames));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) uint8_t *file = NULL;
	struct cache_entry entry;
	struct cache_key key;
	struct effort effort = { 0 };
	uint64_t checksum, n = n_bytes;

	if (n_bytes < CACHE_KEY_AT + sizeof key || posix_memalign((void **)&file, CACHE_IMAGE_ALIGNMENT, n_bytes) != 0)
		return 0;
	memcpy(file, data, n_bytes);
	memcpy(file, "prbNames\1\0\0\0", 12);
	memcpy(file + 16, &n, sizeof n);
	memcpy(&key, file + CACHE_KEY_AT, sizeof key);
	checksum = cache_checksum(file, n_bytes);
	memcpy(file + CACHE_CHECKSUM_AT, &checksum, sizeof checksum);
	if (cache_entry_read(file, n_bytes, &key, &entry) < 0)
		return 0;
	effort_begin(&effort);
	read_symbols(&entry);
	read_methods(&entry);
	read_plumbing(&entry);
	read_lines(&entry);
	effort_end(&effort);
	return 0;
}
