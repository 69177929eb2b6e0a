/* SPDX-License-Identifier: MIT */
/* rings.h - rings of a process as tables of SQL: those that its program writes. Private. */
#ifndef PROBING_LIVE_RINGS_H
#define PROBING_LIVE_RINGS_H

#include "src/catalogue/catalogue.h"
#include "src/live/live.h"
#include "src/live/rows.h"

/* A table of one file, or of several of one name. */
struct live_ring {
	struct catalogue_table described; /* its columns: those of its files */
	const struct ring_files *files;   /* borrowed of struct live_rings */
	size_t n_files;
};

/*
 * live_rings_find - the rings of a process.
 * @has_ended: find those of the latest process with that PID.
 * @ret:       ended with live_rings_done(); without tables if the process has no rings.
 * Folders that are refused are no error; live_note() gets the reason. Errors: -ENOMEM.
 */
int live_rings_find(struct live *live, bool has_ended, struct live_rings *ret);
void live_rings_done(struct live_rings *rings);

/* The ring whose rows are a part of python.variables (python_probes.c): it is no table of its own. NULL: there is none. */
const struct live_ring *live_rings_variables(const struct live_rings *rings);

/* live_ring_read - all rows of a table, the oldest first. Negative errno. */
int live_ring_read(struct live *live, const struct live_ring *ring, struct live_rows *rows);

#endif
