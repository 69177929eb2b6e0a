/* SPDX-License-Identifier: MIT */
/* progress.h - verbs that make a file: how far they are, on a terminal, and ending them leaves nothing behind. */
#ifndef PROBING_CLI_PROGRESS_H
#define PROBING_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool on; /* a terminal */
	bool is_dirty;
	uint64_t next_ns;
	const char *what; /* of the last call; compared by address */
	uint64_t since_ns, n_begun, n_done;
};

/* From here on signals that end a program are remembered. */
void progress_begin(struct progress *progress, bool quiet);

/* The same for work without temporary files: does not change signal handling. */
void progress_begin_shown(struct progress *progress, bool quiet);

/* Show it, ten times a second, with the time left. @n_all 0: not known. Returns false when it is time to stop. */
bool progress_show(struct progress *progress, const char *what, uint64_t n_done, uint64_t n_all);

/* Remove the line; if a signal came and the work is incomplete, end as a shell expects it. */
int progress_end(struct progress *progress, int status);

/* Whether such a signal came. */
bool progress_is_stopped(void);

#endif
