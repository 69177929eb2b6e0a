/* SPDX-License-Identifier: MIT */
/* import.c - selects an importer, and runs it from bytes to rows. */
#include "src/import/import.h"

#include <errno.h>
#include <string.h>

#include "src/import/sink_private.h"

const struct importer *importer_by_name(const char *name)
{
	for (size_t i = 0; importers[i]; i++)
		if (strcmp(importers[i]->name, name) == 0)
			return importers[i];
	return NULL;
}

const struct importer *importer_recognise(const uint8_t *bytes, size_t n_bytes)
{
	for (size_t i = 0; importers[i]; i++)
		if (importers[i]->recognise(bytes, n_bytes))
			return importers[i];
	return NULL;
}

static void sink_done(struct sink *sink)
{
	struct ids *all[] = { &sink->modules,   &sink->functions, &sink->frames, &sink->stacks,
			      &sink->processes, &sink->threads,   &sink->totals };

	for (size_t i = 0; i < N_ELEMENTS(all); i++)
		ids_done(all[i]);
	gpu_writer_free(sink->gpu);
	free(sink->sums);
	free(sink->depths);
	free(sink->samples);
	free((char *)sink->key.at);
}

int import_read(const struct importer *importer, const struct import_input *input, struct store *store, bool into,
		const char *version, struct import_result *ret)
{
	CLEANUP(sink_done) struct sink sink = { .store = store, .input = input, .result = ret, .into = into };
	int r;

	*ret = (struct import_result){ 0 };
	r = store_begin(store);
	if (r < 0)
		return r;
	r = importer->read(input, &sink);
	if (r >= 0)
		r = sink_end(&sink, importer->name, version);
	if (r >= 0)
		r = store_commit(store);
	else
		store_rollback(store);
	return r;
}
