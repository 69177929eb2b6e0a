/* SPDX-License-Identifier: MIT */
/* extension.h - constants of the build for the SQLite extension. */
#ifndef PROBING_EXTENSION_H
#define PROBING_EXTENSION_H

extern const char extension_version[]; /* "0.1.0" */

#endif
