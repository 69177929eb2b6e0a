/* SPDX-License-Identifier: MIT */
/* exporters.h - whether this build has what a format needs, and a recording written as one. */
#ifndef PROBING_CLI_EXPORTERS_H
#define PROBING_CLI_EXPORTERS_H

#include <argp.h>

#include "src/export/export.h"

/* A view of a recording on its way out. */
struct exporting {
	const char *recording, *out;
	const struct exporter *exporter;
	const struct profile *profile;
	const struct export_options *options;
	mode_t mode; /* of out; 0: not asked for */
};

/* Write it and say so, unless @quiet, or out is stdout. Returns 0, or an exit status after having said why. */
int exporters_write(const struct exporting *exporting, bool quiet);

/*
 * exporters_named - the format of that name, ours or another tool's ("raw"); a usage error that lists all where there is none.
 * exporters_of_path - the one that a file's ending means, likewise; NULL: the file has no ending, "-" neither.
 * @views_only: a picture of stacks, or a profile; not a copy of all that a recording holds.
 */
const struct exporter *exporters_named(struct argp_state *state, const char *name, bool views_only);
const struct exporter *exporters_of_path(struct argp_state *state, const char *path, bool views_only);

/* The last ending of a file's name, ".svg", which has a letter; "" none. Borrowed from the path. */
const char *exporters_ending(const char *path);

/* exporters_check - 0, or an exit status after having said what it lacks. */
int exporters_check(const struct exporter *exporter);

#endif
