/* trust.h - what a connection to a file that others made may do. Private. */
#ifndef PROBING_STORE_TRUST_H
#define PROBING_STORE_TRUST_H

#include <sqlite3.h>

/*
 * trust_nothing - set a connection up before the first look at its file: nothing that stands in the file is run
 * but its views, and how large, wide and deep things may be is limited. Returns SQLite's code.
 */
int trust_nothing(sqlite3 *db);

/*
 * trust_check_schema - whether all that sqlite_schema describes is what a recording may hold: tables with pages
 * and plain columns, their indexes, views, triggers (which are never run).
 * Errors: -EMEDIUMTYPE something else; -EBADMSG damaged; -ENOMEM.
 */
int trust_check_schema(sqlite3 *db);

/* trust_read_only - from now on the connection opens no other file, loads no code, and changes none of its own settings. */
void trust_read_only(sqlite3 *db);

#endif
