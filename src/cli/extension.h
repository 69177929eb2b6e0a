/* extension.h - where the module lies that SQLite loads to read recordings without probing. */
#ifndef PROBING_CLI_EXTENSION_H
#define PROBING_CLI_EXTENSION_H

/* The path, to be freed: where it was installed, or beside this program in a build. NULL: in neither place. */
char *extension_path(void);

#endif
