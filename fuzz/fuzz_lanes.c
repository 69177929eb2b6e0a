/* SPDX-License-Identifier: MIT */
/* fuzz_lanes.c - a line with a query, and intervals of one thread at any times and of any lengths.
 *
 * Columns of each width are those of the intervals themselves, and an answer is within its limits.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/lanes/lanes_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { RECORD_BYTES = 8, MAX_INTERVALS = 4096, N_PATHS = 8, N_COLUMNS = 40 };
#define MAX_TIME_NS (UINT64_C(1) << 61)
#define MAX_LENGTH_NS ((UINT64_C(1) << 55) - 1)

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void make_calls(struct calls *calls, uint32_t *paths)
{
	uint32_t name;

	must(lane_calls_init(calls) == 0);
	for (uint32_t i = 0; i < N_PATHS; i++) {
		char text[2] = { (char)('a' + i), '\0' };

		must(lane_calls_name(calls, NAME_PYTHON, text, "", &name) == 0);
		must(lane_calls_enter(calls, i < 2 ? 0 : paths[i - 2], name, &paths[i]) == 0);
	}
}

/* A record: two bytes of gap, two of length, their shifts, the path, state and GIL. As load.c they do not overlap. */
static void make_intervals(const uint8_t *data, size_t n, const uint32_t *paths, struct lane_thread *thread)
{
	uint64_t at = 1;

	for (size_t i = 0; i < n && thread->n < MAX_INTERVALS; i++, data += RECORD_BYTES) {
		uint64_t gap = (uint64_t)(data[0] | data[1] << 8) << data[4] % 48;
		uint64_t length = (uint64_t)(1 + data[2] + (data[3] << 8)) << data[5] % 40;

		if (at + gap > MAX_TIME_NS)
			break;
		at += gap;
		thread->items[thread->n++] = (struct interval){ .start_ns = at,
								.length_ns = MIN(length, MAX_LENGTH_NS),
								.state = data[7] % STATE_N,
								.gil = data[7] >> 6,
								.call = paths[data[6] % N_PATHS] };
		at += MIN(length, MAX_LENGTH_NS);
	}
}

static void compare(const struct lane_thread *thread, const struct calls *calls)
{
	struct lane_thread plain = *thread;
	struct column one[N_COLUMNS], other[N_COLUMNS];

	plain.n_levels = 0;
	for (unsigned level = thread->first_level; level < thread->first_level + thread->n_levels; level += 3) {
		uint64_t first = thread->items[thread->n / 2].start_ns >> level;

		first -= MIN(first, N_COLUMNS / 2);
		must(columns_fold(thread, calls, level, first, N_COLUMNS, one) == 0);
		must(columns_fold(&plain, calls, level, first, N_COLUMNS, other) == 0);
		must(memcmp(one, other, sizeof one) == 0);
	}
}

static void answer(struct lane_thread *thread, struct calls *calls, const char *text)
{
	struct lanes lanes = { .calls = *calls, .threads = &thread, .n_threads = 1, .started_ns = 1 };
	char sentence[LANES_SENTENCE_BYTES];
	CLEANUP(freep) char *body = NULL;
	struct lanes_query query;
	size_t n;
	FILE *out;

	thread->name = thread->process = (char *)"";
	lanes_reach(&lanes, thread->items[0].start_ns, interval_end(&thread->items[thread->n - 1]));
	if (lanes_query_parse(text, &query, sentence) < 0)
		return;
	out = open_memstream(&body, &n);
	must(out && lanes_write(&lanes, &query, out) == 0 && fclose(out) == 0);
	must(n > 2 && body[0] == '{' && body[n - 2] == '}');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	const uint8_t *end = memchr(data, '\n', n_bytes);
	struct lane_thread thread = { .pid = 1, .tid = 1 };
	uint32_t paths[N_PATHS] = { 0 };
	struct calls calls = { 0 };
	char text[LANES_QUERY_BYTES] = "";

	if (!end || end - data >= LANES_QUERY_BYTES)
		return 0;
	memcpy(text, data, (size_t)(end - data));
	make_calls(&calls, paths);
	thread.items = calloc(MAX_INTERVALS, sizeof *thread.items);
	must(thread.items != NULL);
	make_intervals(end + 1, (n_bytes - (size_t)(end + 1 - data)) / RECORD_BYTES, paths, &thread);
	if (thread.n > 0) {
		must(columns_make(&thread, &calls) == 0);
		compare(&thread, &calls);
		answer(&thread, &calls, text);
	}
	columns_drop(&thread);
	free(thread.items);
	lane_calls_done(&calls);
	return 0;
}
