/* SPDX-License-Identifier: MIT */
/* debian.h - which Debian package has a module's debug file. */
#ifndef PROBING_CLI_DEBIAN_H
#define PROBING_CLI_DEBIAN_H

#include "src/cli/apt_lists.h"

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
