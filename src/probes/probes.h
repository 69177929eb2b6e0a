/* SPDX-License-Identifier: MIT */
/* probes.h - a file that names probes: functions to time, variables to watch. It is YAML; docs/rings.md has its schema.
 *
 * The parser knows no process. It checks the form of each name, and gives errors with line and column.
 */
#ifndef PROBING_PROBES_H
#define PROBING_PROBES_H

#include <stdbool.h>
#include <stddef.h>

#include "src/config/config.h"

enum {
	PROBES_MAX_BYTES = 1 << 20, /* of a file */
	PROBES_MAX_NAMES = 256,     /* of each kind */
	PROBES_MAX_NAME = CONFIG_MAX_NAME,
	PROBES_WHY_BYTES = 512,
};

struct probes {
	char **functions; /* "train.step" */
	size_t n_functions;
	char **variables; /* "loss@train.step" */
	size_t n_variables;
	double interval_s; /* between two reads of the variables */
	bool torch;        /* time the modules of torch */
	/* Keys of the agent's configuration. */
	struct config config;
	char *assignments[CONFIG_MAX_KEYS]; /* "sample_rate=0.1" */
	size_t n_assignments;
};

/*
 * probes_parse - read the text of a file.
 * @why: PROBES_WHY_BYTES; on failure "LINE:COLUMN: a sentence", both counted from 1.
 * @ret: untouched on failure; ended with probes_done().
 * Errors: -EINVAL with why; -EFBIG more than PROBES_MAX_BYTES; -ENOMEM.
 * Source: yaml.org/spec/1.1; libyaml's yaml.h, "Parser".
 */
int probes_parse(const char *text, size_t n_bytes, char why[PROBES_WHY_BYTES], struct probes *ret);
void probes_done(struct probes *probes);

#endif
