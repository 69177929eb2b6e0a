/* SPDX-License-Identifier: MIT */
/* attach.c - functions and schemas beyond the tables of the file. */
#include <errno.h>

#include "src/catalogue/catalogue.h"
#include "src/sql/functions.h"
#include "src/sql/sql.h"
#include "src/sql/hot.h"
#include "src/store/store.h"

int sql_attach(sqlite3 *db)
{
	int code;

	code = sql_functions_register(db);
	if (code == SQLITE_OK)
		code = metric_tables_attach(db);
	if (code == SQLITE_OK)
		code = catalogue_register(db);
	if (code == SQLITE_OK)
		code = row_tables_attach(db);
	if (code == SQLITE_OK)
		code = hot_register(db);
	if (code == SQLITE_OK)
		return 0;
	return (code & 0xff) == SQLITE_NOMEM ? -ENOMEM : -EIO;
}
