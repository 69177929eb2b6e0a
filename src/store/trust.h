/* SPDX-License-Identifier: MIT */
/* trust.h - restrictions of a connection to a foreign file. Private. */
#ifndef PROBING_STORE_TRUST_H
#define PROBING_STORE_TRUST_H

#include <sqlite3.h>

/* trust_read_only - from now on the connection opens no other file, loads no code, and changes none of its own
 * settings; and SQLite's memory is limited in this process. */
void trust_read_only(sqlite3 *db);

#endif
