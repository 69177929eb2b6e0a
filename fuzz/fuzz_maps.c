/* SPDX-License-Identifier: MIT */
/* fuzz_maps.c - lines as of /proc/PID/maps, added to an address space.
 *
 * Whatever the lines say, the mappings stay sorted and apart, and each address
 * is found in the mapping that holds it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/address_space.h"
#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void expect(bool holds)
{
	if (!holds)
		abort();
}

static void check(struct address_space *space)
{
	const struct mapping *mapping;
	uint64_t end = 0;

	for (size_t n = 0; (mapping = address_space_nth(space, n)) != NULL; n++) {
		expect(mapping->start >= end && mapping->start < mapping->end);
		expect(address_space_find(space, mapping->start) == mapping);
		expect(address_space_find(space, mapping->end - 1) == mapping);
		expect(address_space_find(space, mapping->end) != mapping);
		end = mapping->end;
	}
}

static void add_lines(struct address_space *space, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n")) != NULL) {
		struct mapping_source source;

		if (maps_parse_line(line, &source) == 0 && address_space_add(space, &source) == 0)
			expect(address_space_find(space, source.start)->end == source.end);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(module_table_freep) struct module_table *modules = NULL;
	CLEANUP(address_space_freep) struct address_space *space = NULL;
	CLEANUP(freep) char *text = strndup((const char *)data, n_bytes);

	if (!text || module_table_new(&modules) < 0 || address_space_new(1, modules, &space) < 0)
		return 0;
	add_lines(space, text);
	check(space);
	return 0;
}
