/* SPDX-License-Identifier: MIT */
/* extension.h - the path of the SQLite extension that reads recordings without probing. */
#ifndef PROBING_CLI_EXTENSION_H
#define PROBING_CLI_EXTENSION_H

/* Where libraries are installed: from the root, and below the folder that has bin (libdir.c.in). */
extern const char extension_libdir[], extension_libdir_below[];

/*
 * library_path - a library of ours, where it was installed, or beside this program in a build.
 * @built_in: the folder of src where it is built. To be freed; NULL: in neither place.
 */
char *library_path(const char *name, const char *built_in);

/* The path, to be freed: where it was installed, or beside this program in a build. NULL: in neither place. */
char *extension_path(void);

#endif
