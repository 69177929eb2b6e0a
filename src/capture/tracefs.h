/* SPDX-License-Identifier: MIT */
/* tracefs.h - where the kernel describes its tracepoints. Private. */
#ifndef PROBING_CAPTURE_TRACEFS_H
#define PROBING_CAPTURE_TRACEFS_H

#include <stddef.h>

#include "src/capture/event.h"

/*
 * tracepoint_describe - fields, out of the text of a "format" file (tracepoint_format.c).
 * @ret: NULL where this build cannot read it; ended with tracepoint_free(). Untouched on failure.
 * Errors: -EBADMSG; -ENOMEM.
 */
int tracepoint_describe(const char *name, const char *text, size_t n_bytes, struct tracepoint **ret);

#endif
