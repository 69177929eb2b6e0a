/* SPDX-License-Identifier: MIT */
/* name_files.h - the files that the recorder opens for the process that finds names. Private. */
#ifndef PROBING_NAME_FILES_H
#define PROBING_NAME_FILES_H

#include <stddef.h>

enum { NAME_FILE_MAX_PATH = 4096 };

/*
 * name_file_resolve - a path without "." and "..", by its text alone.
 * @to: of NAME_FILE_MAX_PATH bytes. Errors: -EINVAL not absolute, or leads above the root; -ENAMETOOLONG.
 */
int name_file_resolve(const char *path, char *to);

/*
 * name_file_open - open a debug file that a module may have.
 * Only an ELF file, a regular one, below /usr/lib/debug, or in the module's folder or below it. A process that a
 * file has made its own gets nothing else to read by this, though the recorder may read everything.
 * @module_path: as the process names it; @root: in front of it, where it sees it: "/proc/12/root"; "": nothing.
 * @ret: the caller's. Errors: -EACCES not such a place; -ENOEXEC not such a file; of open(2).
 */
int name_file_open(const char *path, const char *module_path, const char *root, int *ret);

#endif
