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
	flight_writer_free(sink->flight);
	free(sink->sums);
	free(sink->depths);
	free(sink->samples);
	free((char *)sink->key.at);
}

static int read_files(const struct importer *importer, const struct import_files *files, struct sink *sink,
		      const char *version)
{
	struct import_input input = { 0 };
	int r;

	while ((r = files->next(files->data, &input)) > 0) {
		sink->input = &input;
		r = importer->read(&input, sink);
		if (r < 0)
			break;
	}
	if (r >= 0 && input.name)
		r = sink_end(sink, importer->name, version);
	sink->input = NULL;
	return r < 0 ? r : input.name ? 0 : -ENODATA;
}

int import_read(const struct importer *importer, const struct import_files *files, struct store *store, bool into,
		const char *version, struct import_result *ret)
{
	CLEANUP(sink_done) struct sink sink = { .store = store, .result = ret, .into = into };
	int r;

	*ret = (struct import_result){ 0 };
	r = store_begin(store);
	if (r < 0)
		return r;
	r = read_files(importer, files, &sink, version);
	if (r >= 0)
		r = store_commit(store);
	else
		store_rollback(store);
	return r;
}

struct one_file {
	const struct import_input *input;
	bool is_taken;
};

static int take_one(void *data, struct import_input *ret)
{
	struct one_file *file = data;

	if (file->is_taken)
		return 0;
	file->is_taken = true;
	*ret = *file->input;
	return 1;
}

int import_read_one(const struct importer *importer, const struct import_input *input, struct store *store, bool into,
		    const char *version, struct import_result *ret)
{
	struct one_file file = { .input = input };

	return import_read(importer, &(struct import_files){ take_one, &file }, store, into, version, ret);
}
