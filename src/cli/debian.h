/* SPDX-License-Identifier: MIT */
/* debian.h - which Debian package has a module's debug file, by apt's lists and dpkg's database. */
#ifndef PROBING_CLI_DEBIAN_H
#define PROBING_CLI_DEBIAN_H

#include <stdbool.h>

/* ---- apt_lists.c: apt's lists ---- */

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

/* ---- debian.c ---- */

enum debug_package_trust {
	DEBUG_PACKAGE_UNKNOWN,  /* no package owns the module */
	DEBUG_PACKAGE_GUESSED,  /* by its owner's name; apt lists no such package */
	DEBUG_PACKAGE_OUTDATED, /* apt lists the package with debug files of another build only */
	DEBUG_PACKAGE_SURE,     /* apt lists it with this build-id */
};

struct debug_package {
	const char *path, *build_id; /* of the module; build_id in hexadecimal, NULL: unknown */
	char name[APT_PACKAGE_BYTES];
	enum debug_package_trust trust;
};

/*
 * debian_find_debug_packages - the packages with the debug files of some modules.
 * By build-id in apt's lists; if these lack it, by the file's package, in dpkg's database. Takes 0.1 to 0.4 s.
 * @packages: input: path and build_id; output: name ("": unknown) and trust.
 */
void debian_find_debug_packages(struct debug_package *packages, unsigned n);

#endif
