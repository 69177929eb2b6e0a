/* SPDX-License-Identifier: MIT */
/* fuzz_sketch.c - sketches of percentiles, as another machine sends them: any text.
 *
 * It is refused, or its percentiles are numbers in order. A sketch of ours, with -3 and 7, is always among them.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>

#include "src/sql/sql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAX_BYTES = 65536 };

static const char question[] =
	"SELECT percentile_disc_of_sketches(s, 0), approx_percentile_of_sketches(s, 0.5), percentile_cont_of_sketches(s, 1) "
	"FROM (SELECT ?1 AS s UNION ALL SELECT percentile_sketch(x) FROM (SELECT -3 AS x UNION ALL SELECT 7))";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static sqlite3 *db;
	sqlite3_stmt *statement = NULL;

	if (n_bytes > MAX_BYTES)
		return 0;
	if (!db && (sqlite3_open(":memory:", &db) != SQLITE_OK || sql_attach(db) < 0))
		abort();
	if (sqlite3_prepare_v2(db, question, -1, &statement, NULL) != SQLITE_OK)
		abort();
	sqlite3_bind_text(statement, 1, (const char *)data, (int)n_bytes, SQLITE_TRANSIENT);
	if (sqlite3_step(statement) == SQLITE_ROW) {
		double low = sqlite3_column_double(statement, 0), middle = sqlite3_column_double(statement, 1),
		       high = sqlite3_column_double(statement, 2);

		if (!isfinite(low) || !isfinite(high) || low > -2.97 || high < 6.93 || middle < low || middle > high)
			abort();
	}
	sqlite3_finalize(statement);
	return 0;
}
