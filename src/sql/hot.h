/* SPDX-License-Identifier: MIT */
/* hot.h - hot_function, hot_line and caller_callee without SQL.
 *
 * The views of these names in the file walk every stack in SQL, which takes seconds for
 * 100,000 stacks. On our connections, temporary tables of the same names and columns
 * hide them, with the same rows, added up here.
 */
#ifndef PROBING_SQL_HOT_H
#define PROBING_SQL_HOT_H

#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"
#include "src/store/store.h"

enum hot_by { HOT_BY_FUNCTION, HOT_BY_LINE, HOT_BY_CALL };

struct hot_sum {
	int32_t frame;  /* of the profile: a frame of the function, the line, the callee; -1: no stack */
	int32_t caller; /* a frame of the calling function; -1: none */
	uint64_t self_samples, self_weight, total_samples, total_weight;
	size_t stamp; /* the last stack that contains it */
};

struct hot {
	struct hot_sum *items; /* in the order of the view */
	size_t n, allocated;
	uint64_t weight; /* of all samples */
};

/* hot_make - add up a profile. @ret: ended with hot_done(). Errors: -ENOMEM. */
int hot_make(const struct profile *profile, enum hot_by by, struct hot *ret);
void hot_done(struct hot *sums);

/* hot_register - make the tables of a connection to a recording. SQLite's result code. */
int hot_register(sqlite3 *db);

#endif
