/* extension.h - where the module lies that SQLite loads to read recordings without probing. */
#ifndef PROBING_CLI_EXTENSION_H
#define PROBING_CLI_EXTENSION_H

/* Where libraries are installed: from the root, and below the folder that has bin (libdir.c.in). */
extern const char extension_libdir[], extension_libdir_below[];

/* The path, to be freed: where it was installed, or beside this program in a build. NULL: in neither place. */
char *extension_path(void);

#endif
