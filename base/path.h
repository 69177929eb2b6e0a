/* SPDX-License-Identifier: MIT */
/* path.h - parts of a path. */
#ifndef PROBING_BASE_PATH_H
#define PROBING_BASE_PATH_H

#include <stddef.h>

/* The part after the last slash; the whole path if that part is empty. Borrowed. */
const char *path_base_name(const char *path);

/* Bytes of a path without the extension of its last part, such as ".db"; all bytes if it has none. A leading dot of a
 * name is part of the name. */
size_t path_stem_bytes(const char *path);

/* path_make_folders - make the missing folders above a file, for our user alone. Errors: -ENOMEM; of mkdir(2). */
int path_make_folders(const char *path);

#endif
