/* SPDX-License-Identifier: MIT */
/* gzip.h - a stream whose bytes arrive compressed at another one. */
#ifndef PROBING_EXPORT_GZIP_H
#define PROBING_EXPORT_GZIP_H

#include <stdio.h>

/*
 * gzip_open - begin a gzip file (RFC 1952) on out, without name and time: the same bytes give the same file.
 * @ret: fclose(3) ends it, and returns EOF where out could not be written. It does not flush out.
 * Errors: -ENOMEM.
 */
int gzip_open(FILE *out, FILE **ret);

#endif
