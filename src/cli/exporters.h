/* SPDX-License-Identifier: MIT */
/* exporters.h - availability of formats in this build, and exporting a recording. */
#ifndef PROBING_CLI_EXPORTERS_H
#define PROBING_CLI_EXPORTERS_H

#include <argp.h>

#include "src/export/export.h"

/* A view of a recording to export. */
struct exporting {
	const char *recording, *out;
	const struct exporter *exporter;
	const struct profile *profile;
	const struct export_options *options;
	mode_t mode; /* of out; 0: default */
};

/* Write it and report that, unless @quiet, or out is stdout. Returns 0, or prints a message and returns an exit
 * status. */
int exporters_write(const struct exporting *exporting, bool quiet);

struct view;

/*
 * exporters_tracks - read what the recording has beside stacks, if the format shows it: steps, modules of torch and others.
 * @ret: NULL where it does not; ended with tracks_free().
 * Returns 0, or prints a message and returns an exit status.
 */
int exporters_tracks(const struct exporting *exporting, const struct view *view, struct sqlite3 *db,
		     struct tracks **ret);

/*
 * exporters_named - the format of that name, ours or another tool's ("raw"); for an unknown one a usage error that
 * lists all.
 * exporters_of_path - the same by a file's extension; NULL: the path has none, or is "-".
 * @views_only: only pictures of stacks and profiles; no copies of whole recordings.
 */
const struct exporter *exporters_named(struct argp_state *state, const char *name, bool views_only);
const struct exporter *exporters_of_path(struct argp_state *state, const char *path, bool views_only);

/* The last ending of a file's name, ".svg", which has a letter; "" none. Borrowed from the path. */
const char *exporters_ending(const char *path);

/* exporters_check - 0, or prints what is missing and returns an exit status. */
int exporters_check(const struct exporter *exporter);

#endif
