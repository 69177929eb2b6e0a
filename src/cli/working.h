/* working.h - verbs that make a file: how far they are, on a terminal, and ending them leaves nothing behind. */
#ifndef PROBING_CLI_WORKING_H
#define PROBING_CLI_WORKING_H

#include <stdbool.h>
#include <stdint.h>

struct working {
	bool on; /* a terminal */
	bool is_dirty;
	uint64_t next_ns;
};

/* From here on signals that end a program are remembered. */
void working_begin(struct working *working, bool quiet);

/* The same, where nothing is left behind: signals stay as they are. */
void working_begin_shown(struct working *working, bool quiet);

/* Show it, ten times a second. @n_all 0: not known. Returns false when it is time to stop. */
bool working_show(struct working *working, const char *what, uint64_t n_done, uint64_t n_all);

/* Take the line away, and end as a shell would see it, where a signal came and the work was not done. */
int working_end(struct working *working, int status);

/* Whether such a signal came. */
bool working_is_stopped(void);

#endif
