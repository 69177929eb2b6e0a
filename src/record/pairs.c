/* pairs.c - see pairs.h. */
#include "src/record/pairs.h"

#include <errno.h>
#include <stdlib.h>

#include "src/record/decode.h"

int pairs_init(struct pairs *pairs, size_t n_rings)
{
	*pairs = (struct pairs){ .rings = calloc(n_rings, sizeof *pairs->rings) };
	if (!pairs->rings)
		return -ENOMEM;
	for (; pairs->n < n_rings; pairs->n++) {
		pairs->rings[pairs->n].record = malloc(PYTHON_RECORD_BYTES);
		if (!pairs->rings[pairs->n].record)
			return -ENOMEM;
	}
	return 0;
}

void pairs_done(struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++)
		free(pairs->rings[i].record);
	free(pairs->rings);
	*pairs = (struct pairs){ 0 };
}

void pairs_keep(struct pairs *pairs, size_t ring, uint64_t n_malformed, const struct perf_event_header *record)
{
	struct pending *pending = &pairs->rings[ring];

	pairs->unpaired += pending->is_full;
	pending->is_full = record_decode_python(record, pending->record) == 0;
	pending->n_malformed = n_malformed;
	pairs->malformed += !pending->is_full;
}

const struct python_record *pairs_take(struct pairs *pairs, size_t ring, uint64_t n_malformed,
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
	pairs->unpaired++;
	return NULL;
}
