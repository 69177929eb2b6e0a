/* SPDX-License-Identifier: MIT */
/* image_file.h - bytes in memory as a file without a name, to be handed to another process. Private. */
#ifndef PROBING_IMAGE_FILE_H
#define PROBING_IMAGE_FILE_H

#include <stddef.h>

/* image_file_make - @ret: the caller's. Errors: of memfd_create(2) and write(2). */
int image_file_make(const void *image, size_t n_bytes, int *ret);

#endif
