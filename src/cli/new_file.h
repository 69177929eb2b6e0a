/* new_file.h - a file that others make by its name, and that appears only when it is whole.
 *
 * As struct output (cli.h) for what is not written through a FILE: SQLite opens its files itself.
 */
#ifndef PROBING_CLI_NEW_FILE_H
#define PROBING_CLI_NEW_FILE_H

#include <stdbool.h>

struct new_file {
	const char *path;
	char *temporary; /* write here; NULL: it has been finished or abandoned */
	bool replaces;
};

/*
 * new_file_open - choose a place beside the path.
 * @replaces: what is at path goes when the new one is whole; else it is refused now, and at the end, too.
 * Errors: -EEXIST; -EISDIR; -ENXIO it is no file; -EACCES and others of its folder.
 */
int new_file_open(struct new_file *file, const char *path, bool replaces);
/* Synced to the disk, renamed. -EBUSY: a log lies there that belongs to another recording; what fsync(2) and
 * rename(2) report. */
int new_file_finish(struct new_file *file);
void new_file_abandon(struct new_file *file); /* leaves nothing behind; harmless after a finish */

#endif
