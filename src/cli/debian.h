/* debian.h - which Debian package would help. */
#ifndef PROBING_CLI_DEBIAN_H
#define PROBING_CLI_DEBIAN_H

#include <stddef.h>

/*
 * debian_debug_package - the package with the debug information of an installed file.
 * Asks dpkg's lists in /var/lib/dpkg/info; where that is not there, nothing is known.
 * @to: "libc6-dbg"; "" where no package owns the file.
 */
void debian_debug_package(const char *path, char *to, size_t n_bytes);

#endif
