/* SPDX-License-Identifier: MIT */
/* path.h - parts of a path. */
#ifndef PROBING_BASE_PATH_H
#define PROBING_BASE_PATH_H

#include <stddef.h>

/* The part after the last slash; the whole path if that part is empty. Borrowed. */
const char *path_base_name(const char *path);

/* Bytes of a path without the ending of its last part, such as ".db"; all of it where that has none. A dot that begins a
 * name begins no ending. */
size_t path_stem_bytes(const char *path);

#endif
