/* SPDX-License-Identifier: MIT */
/* apt_lists.h - apt's package lists: which package has a debug file. */
#ifndef PROBING_CLI_APT_LISTS_H
#define PROBING_CLI_APT_LISTS_H

#include <stdbool.h>

#define APT_LISTS_FOLDER "/var/lib/apt/lists"

enum { APT_PACKAGE_BYTES = 256, APT_MAX_CANDIDATES = 4 };

/* A debug file, and the package that contains it. */
struct apt_query {
	const char *build_id;                       /* hexadecimal; NULL: unknown */
	const char *candidates[APT_MAX_CANDIDATES]; /* packages that may have it, the likeliest first; NULL: no more */
	char package[APT_PACKAGE_BYTES]; /* that has the file, else the first candidate that is listed; "": none */
	bool has_file;                   /* its list of build-ids has this one */
};

/*
 * apt_lists_search - search several debug files in one pass.
 * Packages of debug files list the build-ids of their files.
 * @folder: APT_LISTS_FOLDER. Reads plain and LZ4 lists; skips others.
 * @queries: sets package and has_file.
 * Source: deb822(5), dh_strip(1) "Build-Ids"; apt.conf(5), Acquire::GzipIndexes.
 */
void apt_lists_search(const char *folder, struct apt_query *queries, unsigned n_queries);

#endif
