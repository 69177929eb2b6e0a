/* SPDX-License-Identifier: MIT */
/* frame_sample_match.c - see frame_sample_match.h. */
#include "src/capture/frame_sample_match.h"

#include <errno.h>
#include <stdlib.h>

#include "src/capture/decode.h"

int frame_sample_match_init(struct frame_sample_match *pairs, size_t n_rings)
{
	*pairs = (struct frame_sample_match){ .rings = calloc(n_rings, sizeof *pairs->rings) };
	if (!pairs->rings)
		return -ENOMEM;
	for (; pairs->n < n_rings; pairs->n++) {
		pairs->rings[pairs->n].record = malloc(PYTHON_RECORD_BYTES);
		if (!pairs->rings[pairs->n].record)
			return -ENOMEM;
	}
	return 0;
}

void frame_sample_match_done(struct frame_sample_match *pairs)
{
	for (size_t i = 0; i < pairs->n; i++)
		free(pairs->rings[i].record);
	free(pairs->rings);
	*pairs = (struct frame_sample_match){ 0 };
}

static void count_unpaired(struct frame_sample_match *pairs, const struct pending *pending)
{
	pairs->unpaired += pending->record->time_ns >= pairs->began_ns;
}

void frame_sample_match_keep(struct frame_sample_match *pairs, size_t ring, uint64_t n_malformed,
			     const struct perf_event_header *record)
{
	struct pending *pending = &pairs->rings[ring];

	if (pending->is_full)
		count_unpaired(pairs, pending);
	pending->is_full = record_decode_python(record, pending->record) == 0;
	pending->n_malformed = n_malformed;
	pairs->malformed += !pending->is_full;
}

const struct python_record *frame_sample_match_take(struct frame_sample_match *pairs, size_t ring, uint64_t n_malformed,
						    const struct perf_event_header *record)
{
	struct pending *pending = &pairs->rings[ring];
	struct record_origin origin;

	if (!pending->is_full)
		return NULL;
	pending->is_full = false;
	if (record->type == PERF_RECORD_SAMPLE && record_origin(record, &origin) == 0 &&
	    (uint32_t)origin.tid == pending->record->tid && pending->n_malformed == n_malformed)
		return pending->record;
	count_unpaired(pairs, pending);
	return NULL;
}
