/* SPDX-License-Identifier: MIT */
/*
 * progress.h - long work: how far it is and how long it still takes, in one line on a terminal; and a signal that ends it leaves
 * nothing behind.
 *
 * The line is on stderr, appears after a tenth of a second, and is gone when the work is done. A pipe or a file gets none.
 */
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

/* The same for work without temporary files, or with a handler of its own: does not change signal handling. */
void progress_begin_shown(struct progress *progress, bool quiet);

/*
 * progress_show - "12,000 of 90,000 samples, 12 s left". @n_all 0: not known.
 * Each @what is a part of the work, with an estimate of its own. Returns false when it is time to stop.
 */
bool progress_show(struct progress *progress, const char *what, uint64_t n_done, uint64_t n_all);

/* Work whose results and whose progress are of two units: "12,000 rows, 42 % read, 12 s left". */
struct progress_share {
	uint64_t n;
	const char *unit;       /* "rows" */
	const char *what;       /* "read" */
	uint64_t n_done, n_all; /* the share; n_all 0: not known */
};
bool progress_show_share(struct progress *progress, const struct progress_share *share);

/* progress_show() with a text behind it, such as the file in work; bytes that a terminal obeys must not be in it. */
bool progress_show_item(struct progress *progress, const char *what, uint64_t n_done, uint64_t n_all, const char *item);

/* Remove the line before another message is printed; the next call shows it again. */
void progress_clear(struct progress *progress);

/* Remove the line for good; if a signal came and the work is incomplete, end as a shell expects it. */
int progress_end(struct progress *progress, int status);

/* Whether such a signal came. */
bool progress_is_stopped(void);

#endif
