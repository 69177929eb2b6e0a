/* SPDX-License-Identifier: MIT */
/* import.h - profiles of other profilers, converted to recordings.
 *
 * An importer is a const descriptor in import_<name>.c and one word in meson.build, which generates
 * the table. It parses foreign bytes, and passes their contents to a sink, which makes
 * rows of them; docs/extending.md.
 */
#ifndef PROBING_IMPORT_H
#define PROBING_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/store/store.h"

struct sink;

/* How far an import is. */
struct import_progress {
	uint64_t n_rows;  /* put */
	const char *what; /* "read" or "written", one address each */
	uint64_t n_done,
		n_all; /* of the file, in the importer's own unit; then of the rows to write; n_all 0: unknown */
};

/* A complete file in memory. */
struct import_input {
	const char *name; /* its path, for messages */
	uint8_t *bytes;   /* may be changed: private copy */
	size_t n_bytes;
	uint64_t modified_ns; /* CLOCK_REALTIME: time of its last change, for contents without a time of their own */
	/* Called now and then; false ends it with -ECANCELED. May be NULL. */
	bool (*keep_going)(void *data, const struct import_progress *progress);
	void *data;
};

struct importer {
	const char *name;    /* "folded" */
	const char *summary; /* one line for --help */
	bool joins_files;    /* several files become one recording: one of each rank */
	bool has_gpu;        /* it has nothing but tables of GPUs: a recording that is there may be given them, too */
	/* Whether it looks like the format; cheap. */
	bool (*recognise)(const uint8_t *bytes, size_t n_bytes);
	/*
	 * Errors: -EBADMSG damaged, -EPROTONOSUPPORT an unsupported variant, each with sink_explain();
	 * -ENOMEM and what the store reports.
	 */
	int (*read)(const struct import_input *input, struct sink *sink);
};

/* All importers, ending with NULL, the pickier before the others. */
extern const struct importer *const importers[];
const struct importer *importer_by_name(const char *name);
const struct importer *importer_recognise(const uint8_t *bytes, size_t n_bytes); /* NULL: none */

struct import_result {
	uint64_t n_samples; /* with a time or without */
	uint64_t n_timed;   /* with one */
	uint64_t n_gpu;     /* rows of gpu_* */
	uint64_t ended_ns;  /* CLOCK_REALTIME: for store_finish() */
	bool has_places;    /* there are native frames that files may name: pipeline_resymbolize() */
	uint64_t n_skipped; /* entries that could not be parsed */
	char why[256];      /* the reason of a failure; else "" */
};

/*
 * Files one after the other. next: fills @ret, which is valid until the next call; returns 1, 0 there is no more, or
 * negative errno.
 */
struct import_files {
	int (*next)(void *data, struct import_input *ret);
	void *data;
};

/*
 * import_read - write the contents of files into a recording.
 * @files: of importers that do not join files, one.
 * @store: new and without rows; or, with @into, an existing one, which only gets tables of GPUs.
 * @version: of this program, for the table run. @ret: filled on failure, too.
 * Errors: those of importer.read; -ENODATA it is empty. The caller drops rows written before a failure.
 */
int import_read(const struct importer *importer, const struct import_files *files, struct store *store, bool into,
		const char *version, struct import_result *ret);

/* import_read_one - the same of one file. */
int import_read_one(const struct importer *importer, const struct import_input *input, struct store *store, bool into,
		    const char *version, struct import_result *ret);

#endif
