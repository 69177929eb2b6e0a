/* SPDX-License-Identifier: MIT */
/* extension.h - what the build says to the module that SQLite loads. */
#ifndef PROBING_EXTENSION_H
#define PROBING_EXTENSION_H

extern const char extension_version[]; /* "0.1.0" */

#endif
