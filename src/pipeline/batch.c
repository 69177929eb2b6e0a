/* SPDX-License-Identifier: MIT */
/* batch.c - see batch.h. */
#include "src/pipeline/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

int batch_new(struct batch **ret)
{
	struct batch *batch = calloc(1, sizeof *batch);

	if (!batch)
		return -ENOMEM;
	*ret = batch;
	return 0;
}

void batch_clear(struct batch *batch)
{
	for (size_t i = 0; i < batch->n_processes; i++) {
		free(batch->processes[i].name);
		free(batch->processes[i].command);
		free(batch->processes[i].python);
		free(batch->processes[i].rank);
	}
	for (size_t i = 0; i < batch->n_frames; i++)
		free(batch->frames[i].name);
	for (size_t i = 0; i < batch->n_dumps; i++)
		closep(&batch->dumps[i].fd);
	for (size_t i = 0; i < batch->n_row_tables; i++) {
		free(batch->row_tables[i].name);
		free(batch->row_tables[i].columns);
	}
	for (size_t i = 0; i < batch->n_rows; i++)
		free(batch->rows[i].rows.at);
#define X(type, name) batch->n_##name = 0;
	BATCH_ARRAYS(X)
#undef X
	batch->old_stacks = batch->old_frames = 0;
	batch->next = NULL;
}

void batch_free(struct batch *batch)
{
	if (!batch)
		return;
	batch_clear(batch);
#define X(type, name) free(batch->name);
	BATCH_ARRAYS(X)
#undef X
	free(batch);
}

bool batch_is_empty(const struct batch *batch)
{
#define X(type, name)                                                                                                  \
	if (batch->n_##name > 0)                                                                                       \
		return false;
	BATCH_ARRAYS(X)
#undef X
	return true;
}
