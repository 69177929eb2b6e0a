/* comparing.h - which recordings are compared with which, and how: what diff and check share. */
#ifndef PROBING_CLI_COMPARING_H
#define PROBING_CLI_COMPARING_H

#include <argp.h>

#include "base/words.h"
#include "src/cli/cli.h"
#include "src/cli/new_file_options.h"
#include "src/cli/view.h"
#include "src/compare/compare.h"

struct comparing {
	struct words files[N_SIDES]; /* as they were given: a file, a list with commas, a glob */
	struct view view;
	struct compare_options options;
	mode_t mode; /* of the files that are written; 0: not asked for */
};

enum { KEY_COMPARING_PER = 0x700, KEY_COMPARING_MIN_SHARE };

#define COMPARING_OPTION_ROWS                                                                              \
	CHMOD_OPTION_ROW,                                                                                  \
	{ "per", KEY_COMPARING_PER, "WHAT", 0,                                                             \
	  "Normalise by: run (default), wall (per second of wall time), samples (share of all samples), rest (ratio " \
	  "to all other code of the same run, independent of the machine's speed), or a counter of the table " \
	  "counter", 0 },                                                                                  \
	{ "min-change-share", KEY_COMPARING_MIN_SHARE, "PERCENT", 0,                                       \
	  "Ignore functions below PERCENT of the total on both sides (default: 1)", 0 }

void comparing_init(struct comparing *comparing);
void comparing_done(struct comparing *comparing);

/* One option of these, or of the view's; ARGP_ERR_UNKNOWN: it is neither. A mistake ends the process. */
error_t comparing_parse(int key, char *argument, struct argp_state *state, struct comparing *comparing);

/* comparing_add - recordings of a side: the name of a file, else a list with commas of files and globs. */
void comparing_add(struct comparing *comparing, enum side side, const char *argument, struct argp_state *state);

/*
 * comparing_run - read all of them and compare. Returns 0, or an exit status after having said why.
 * @ret: ended with compare_free().
 */
int comparing_run(struct comparing *comparing, struct compare **ret);

/* comparing_write - a file, or - for stdout, of what put writes. Returns 0, or an exit status after having said why. */
int comparing_write(const struct comparing *comparing, const char *path, output_put *put, const void *data);

#endif
