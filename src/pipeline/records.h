/* SPDX-License-Identifier: MIT */
/* records.h - data of tracepoints, from samples to the table of the tracepoint. Private.
 *
 * The capturing thread copies the bytes into the batch; the writing thread decodes them.
 */
#ifndef PROBING_PIPELINE_RECORDS_H
#define PROBING_PIPELINE_RECORDS_H

#include "src/pipeline/batch.h"
#include "src/capture/capture.h"
#include "src/store/store.h"

/* records_add - copy the tracepoint's data of the sample in the batch's last row, if any. -ENOMEM. */
int records_add(struct batch *batch, const struct sample *sample);

struct records {
	const struct tracepoint *tracepoint; /* borrowed; NULL: none, and nothing is put */
	struct field_value *values;          /* of one row */
	char *room;                          /* for values that are written out, of one row */
};

/* records_init - make the tracepoint's table, in a transaction. NULL is fine. Ended with records_done(). */
int records_init(struct records *records, struct store *store, const struct tracepoint *tracepoint);
void records_done(struct records *records);

/* records_put - the row of the sample that was put last. */
int records_put(struct records *records, struct store *store, const struct batch *batch,
		const struct new_record *record);

#endif
