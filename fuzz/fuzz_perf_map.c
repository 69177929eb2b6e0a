/* SPDX-License-Identifier: MIT */
/* fuzz_perf_map.c - text as of /tmp/perf-PID.map, in two readings cut at any byte.
 *
 * Whatever it says, an address that is found lies in the range it was found in,
 * no newer range of that time holds it, and where the text was cut makes no
 * difference to what lies there now.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAX_CHECKED = 200 };

static void expect(bool holds)
{
	if (!holds)
		abort();
}

static const char *name_at(struct perf_map *map, uint64_t address, uint64_t time_ns)
{
	const struct code_range *range;

	expect(code_ranges_find(&map->ranges, address, time_ns, &range) == 0);
	if (!range)
		return NULL;
	expect(range->start <= address && address < range->end);
	expect(code_range_name(&map->ranges, range)[0] != '\0');
	for (size_t i = (size_t)(range - map->ranges.ranges) + 1; i < map->ranges.n; i++) {
		const struct code_range *newer = &map->ranges.ranges[i];

		expect(newer->since_ns > time_ns || newer->start > address || newer->end <= address);
	}
	return code_range_name(&map->ranges, range);
}

static void compare(struct perf_map *whole, struct perf_map *cut)
{
	expect(whole->ranges.n == cut->ranges.n);
	for (size_t i = 0; i < whole->ranges.n && i < MAX_CHECKED; i++) {
		uint64_t address = whole->ranges.ranges[i].start;

		expect(strcmp(name_at(whole, address, UINT64_MAX), name_at(cut, address, UINT64_MAX)) == 0);
		name_at(cut, address, 0);
		name_at(cut, whole->ranges.ranges[i].end - 1, 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(perf_map_done) struct perf_map whole = {};
	CLEANUP(perf_map_done) struct perf_map cut = {};
	const char *text = (const char *)data;
	size_t n_first = n_bytes > 0 ? data[0] * n_bytes / 256 : 0;
	const struct code_range *found;

	expect(perf_map_add(&whole, text, n_bytes, 0) == 0);
	expect(perf_map_add(&cut, text, n_first, 0) == 0);
	expect(code_ranges_find(&cut.ranges, 0x1000, 0, &found) == 0); /* sorts the ranges */
	expect(perf_map_add(&cut, text + n_first, n_bytes - n_first, 1) == 0);
	compare(&whole, &cut);
	return 0;
}
