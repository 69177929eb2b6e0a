/* SPDX-License-Identifier: MIT */
/* records.c - see records.h. */
#include "src/pipeline/records.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

/* Size limit of an array of numbers as text. */
enum { ROOM_BYTES = 1024 };

int records_add(struct batch *batch, const struct sample *sample)
{
	struct new_record *record;
	int r;

	if (!sample->raw)
		return 0;
	r = grow(&batch->raw, batch->n_raw + sample->raw_bytes, &batch->raw_allocated, 1);
	if (r < 0)
		return r;
	record = BATCH_ADD(batch, records);
	if (!record)
		return -ENOMEM;
	*record = (struct new_record){ batch->n_samples - 1, batch->n_raw, sample->raw_bytes };
	memcpy(batch->raw + batch->n_raw, sample->raw, sample->raw_bytes);
	batch->n_raw += sample->raw_bytes;
	return 0;
}

static const char *column_type(enum tracepoint_type type)
{
	return type == TRACEPOINT_INTEGER ? "INTEGER" : type == TRACEPOINT_BYTES ? "BLOB" : "TEXT";
}

static int create_table(struct store *store, const struct tracepoint *tracepoint)
{
	CLEANUP(freep) struct field_column *columns = calloc(tracepoint->n_fields + 1, sizeof *columns);
	int r;

	if (!columns)
		return -ENOMEM;
	for (size_t i = 0; i < tracepoint->n_fields; i++)
		columns[i] = (struct field_column){ tracepoint->fields[i].name,
						    column_type(tracepoint->fields[i].type) };
	r = store_begin(store);
	if (r < 0)
		return r;
	r = store_create_fields(store, tracepoint->name, columns, tracepoint->n_fields);
	if (r >= 0)
		return store_commit(store);
	store_rollback(store);
	return r;
}

int records_init(struct records *records, struct store *store, const struct tracepoint *tracepoint)
{
	*records = (struct records){ .tracepoint = tracepoint };
	if (!tracepoint)
		return 0;
	records->values = calloc(tracepoint->n_fields + 1, sizeof *records->values);
	records->room = calloc(tracepoint->n_fields + 1, ROOM_BYTES);
	if (!records->values || !records->room)
		return -ENOMEM;
	return create_table(store, tracepoint);
}

void records_done(struct records *records)
{
	free(records->values);
	free(records->room);
	*records = (struct records){ 0 };
}

static struct field_value to_column(const struct tracepoint_value *value)
{
	struct field_value column = { .integer = value->integer, .bytes = value->bytes, .n_bytes = value->n_bytes };

	switch (value->type) {
	case VALUE_INTEGER:
		column.type = FIELD_INTEGER;
		break;
	case VALUE_TEXT:
		column.type = FIELD_TEXT;
		break;
	case VALUE_BYTES:
		column.type = FIELD_BLOB;
		break;
	case VALUE_NONE:
		column.type = FIELD_NULL;
		break;
	}
	return column;
}

int records_put(struct records *records, struct store *store, const struct batch *batch,
		const struct new_record *record)
{
	const struct tracepoint *tracepoint = records->tracepoint;

	if (!tracepoint)
		return 0;
	for (size_t i = 0; i < tracepoint->n_fields; i++) {
		struct tracepoint_value value = tracepoint_decode(&tracepoint->fields[i], batch->raw + record->start,
								  record->n_bytes, records->room + i * ROOM_BYTES,
								  ROOM_BYTES);

		records->values[i] = to_column(&value);
	}
	return store_put_fields(store, records->values, tracepoint->n_fields);
}
