/* SPDX-License-Identifier: MIT */
/* name_files.h - the files that the recorder opens for the process that finds names. Private. */
#ifndef PROBING_NAME_FILES_H
#define PROBING_NAME_FILES_H

#include <stddef.h>

enum { NAME_FILE_MAX_PATH = 4096 };

/*
 * name_file_resolve - a path without "." and "..", from its text alone.
 * @to: of NAME_FILE_MAX_PATH bytes. Errors: -EINVAL not absolute, or above the root; -ENAMETOOLONG.
 */
int name_file_resolve(const char *path, char *to);

/*
 * name_file_open - open a possible debug file of a module.
 * Only a regular ELF file below /usr/lib/debug, or in the module's folder or below it. A process that a
 * crafted file has taken over can read nothing else this way, although the recorder may read everything.
 * @module_path: in the process' mount namespace; @root: its prefix for us: "/proc/12/root"; "": none.
 * @ret: owned by the caller. Errors: -EACCES another place; -ENOEXEC another kind of file; of open(2).
 */
int name_file_open(const char *path, const char *module_path, const char *root, int *ret);

#endif
