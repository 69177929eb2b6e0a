/* SPDX-License-Identifier: MIT */
/* info.h - the description of a file for probing info, and its two forms of output. */
#ifndef PROBING_CLI_INFO_H
#define PROBING_CLI_INFO_H

#include <stdbool.h>
#include <stdio.h>

#include "src/archive/archive.h"

struct info {
	const char *path;
	struct about about;
	bool is_checked;
	struct check_result check;
	char **wrong; /* sentences; owned */
	size_t n_wrong, wrong_allocated;
};

/* As text, for people. */
void info_print(const struct info *info, FILE *out);
/* All descriptions as one JSON array. -ENOMEM. */
int info_print_json(const struct info *infos, size_t n, FILE *out);

#endif
