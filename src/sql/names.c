/* SPDX-License-Identifier: MIT */
/* names.c - similarity of names, for suggestions.
 *
 * The distance is the one of Damerau and Levenshtein with adjacent swaps
 * (optimal string alignment): three rows of the table of prefixes are enough.
 */
#include <ctype.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/sql.h"

enum { MAX_NAME = 63 };

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

unsigned name_distance(const char *a, const char *b)
{
	size_t n_a = strnlen(a, MAX_NAME), n_b = strnlen(b, MAX_NAME);
	unsigned rows[3][MAX_NAME + 1];
	unsigned *before = rows[0], *above = rows[1], *row = rows[2];

	for (size_t j = 0; j <= n_b; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= n_a; i++) {
		unsigned *oldest = before;

		before = above;
		above = row;
		row = oldest;
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= n_b; j++) {
			unsigned best = above[j - 1] + !same_letter(a[i - 1], b[j - 1]);

			best = MIN(best, above[j] + 1);
			best = MIN(best, row[j - 1] + 1);
			if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
				best = MIN(best, before[j - 2] + 1);
			row[j] = best;
		}
	}
	return row[n_b];
}

bool name_is_near(const char *typed, const char *meant)
{
	size_t n = strlen(typed);

	/* A prefix counts as similar: samp, sample. */
	if (n >= 3 && strncasecmp(typed, meant, n) == 0)
		return true;
	return name_distance(typed, meant) <= (n <= 3 ? 1 : n <= 7 ? 2 : 3);
}
